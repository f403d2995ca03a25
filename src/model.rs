//! Language models: one request in, a stream of chunks out. Each provider protocol is one file; none of them is known above.

mod allowance;
mod anthropic;
pub mod catalog;
pub mod endpoint;
mod gemini;
mod http;
pub mod local;
mod openai_chat;
mod openai_responses;
mod refusal;
mod retry;
pub mod scripted;
mod sse;
mod wire;

use futures_util::stream::BoxStream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

use crate::content::{Part, ProviderState, StopReason, Usage};
use crate::id::ToolCallId;

/// A conversation as models see it. Every tool call has its result in the message that follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    User(Vec<Part>),
    Assistant(Vec<Block>),
    ToolResults(Vec<ToolResult>),
}

/// A piece of a model's answer, in the order in which it came.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Thinking { text: String, state: Option<ProviderState> },
    Text { text: String, state: Option<ProviderState> },
    ToolCall { id: ToolCallId, name: String, input: Value, state: Option<ProviderState> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    pub id: ToolCallId,
    pub name: String,
    pub output: Vec<Part>,
    pub failed: bool,
}

/// A tool as models are told of it; `input_schema` is a JSON Schema (draft 2020-12) of an object.
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

/// One request to a model.
#[derive(Clone, Debug)]
pub struct Request {
    pub system: String,
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolSpec]>,
    pub thinking: Thinking,
    /// Same for all requests of a session: providers route by it to a warm cache.
    pub cache_key: String,
}

/// What comes of a request, in order. A stream that ends without [`Chunk::Stop`] was cut, and is an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Text for the open text block, which it opens if there is none.
    Text(String),
    /// The same for thinking.
    Thinking(String),
    /// Ends the open block of that kind (or makes an empty one) and gives it what the provider wants handed back.
    /// A block also ends when one of another kind begins.
    BlockEnd {
        thinking: bool,
        state: Option<ProviderState>,
    },
    /// A whole tool call. `input` is what the model wrote: it should be a JSON object, and may be anything.
    ToolCall {
        id: String,
        name: String,
        input: String,
        state: Option<ProviderState>,
    },
    Usage(Usage),
    /// The answer exceeds this bound (limits.rs) and is cut: `Stop(MaxTokens)` follows, and none
    /// of its calls may run.
    Truncated {
        bound: String,
    },
    /// What came so far of this answer is void: it is being asked for again after `delay`.
    Retry {
        attempt: u32,
        delay: Duration,
        reason: String,
    },
    /// The answer is whole; nothing follows.
    Stop(StopReason),
}

/// Whether the same request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Never,
    Backoff,
    /// The same, but only a few times: nobody listens at an address of this machine, and waiting seldom helps.
    Briefly,
    /// The provider said when (Retry-After).
    After(Duration),
}

/// A request that failed. `message` says with which model, what it answered, and `hint` what to do.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelError {
    pub message: String,
    pub hint: Option<String>,
    pub again: Again,
    /// No connection, or nobody who would take our key: another model may be reachable.
    pub unreachable: bool,
}

impl ModelError {
    pub fn new(again: Again, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, again, unreachable: false }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn unreachable(mut self) -> Self {
        self.unreachable = true;
        self
    }
}

pub type ChunkStream = BoxStream<'static, Result<Chunk, ModelError>>;

/// A model that is ready to be asked.
pub trait Model: Send + Sync + 'static {
    /// `PROVIDER/NAME`, as settings name it.
    fn id(&self) -> &str;

    /// Tokens that a conversation may take.
    fn context_window(&self) -> u64;

    /// Sends the request when the stream is first polled, once; dropping the stream drops the connection.
    fn stream(&self, request: Request) -> ChunkStream;
}
