//! One request to a model.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::Message;

/// One request to a model.
#[derive(Clone, Debug)]
pub struct Request {
    pub system: String,
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolSpec]>,
    pub thinking: Thinking,
    /// Identical for all requests of a session: providers use it to route to a warm cache.
    pub cache_key: String,
}

/// The description of a tool for models. `input_schema` is a JSON Schema (draft 2020-12) of an
/// object.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

/// How much a model may think before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    #[default]
    Off,
    Minimal,
    Low,
    Medium,
    High,
}

impl Thinking {
    pub const ALL: [Thinking; 5] = [Thinking::Off, Thinking::Minimal, Thinking::Low, Thinking::Medium, Thinking::High];

    pub fn as_str(self) -> &'static str {
        match self {
            Thinking::Off => "off",
            Thinking::Minimal => "minimal",
            Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
        }
    }

    pub fn parse(text: &str) -> Option<Thinking> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }
}
