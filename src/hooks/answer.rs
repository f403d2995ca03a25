//! The answer of a command: an optional JSON object on its standard output. Each event has its own
//! type of answer. An unknown field is an error, because a misspelled field would have no effect.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::hook::{HookEffect, HookError};
use crate::content::Part;
use crate::event::HookEvent;
use crate::json;
use crate::model::Message;

/// The decision of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookDecision {
    /// Continue. Permission rules still apply.
    Approve,
    /// Do not continue, for the reason in `reason`.
    Block,
}

/// An answer to `tool.execute.before`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InputAnswer {
    pub decision: Option<HookDecision>,
    /// The model receives it as the result of the call.
    pub reason: Option<String>,
    /// Replaces the input of the call.
    pub input: Option<Value>,
}

/// An answer to `tool.execute.after`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputAnswer {
    /// `block` withholds the output.
    pub decision: Option<HookDecision>,
    pub reason: Option<String>,
    /// Replaces the output by a text.
    pub output: Option<String>,
    /// Replaces the output by these parts.
    pub parts: Option<Vec<Part>>,
}

/// An answer to `tool.result.validate`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValidationAnswer {
    /// `block` adds the reason as a message.
    pub decision: Option<HookDecision>,
    pub reason: Option<String>,
    /// Messages to the model, which the next request contains.
    pub messages: Option<Vec<String>>,
}

/// An answer to `prompt.system.transform`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SystemAnswer {
    /// `block` fails the turn.
    pub decision: Option<HookDecision>,
    pub reason: Option<String>,
    /// Replaces the system prompt.
    pub system: Option<String>,
    /// Text to append to the system prompt.
    pub append: Option<String>,
}

/// An answer to `prompt.messages.transform`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MessagesAnswer {
    /// `block` fails the turn.
    pub decision: Option<HookDecision>,
    pub reason: Option<String>,
    /// Replaces the messages of the request.
    pub messages: Option<Vec<Message>>,
}

/// An answer to `session.compacting`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompactionAnswer {
    /// `block` prevents the summary.
    pub decision: Option<HookDecision>,
    pub reason: Option<String>,
    /// Replaces the prompt for the summary.
    pub prompt: Option<String>,
    /// Text to append to the prompt for the summary.
    pub instructions: Option<String>,
}

/// Converts the standard output of a command. `system` is the system prompt of the request.
pub(super) fn parse(event: HookEvent, output: &[u8], system: Option<&str>) -> Result<HookEffect, HookError> {
    if output.trim_ascii().is_empty() {
        return Ok(HookEffect::Unchanged);
    }
    let (decision, reason, effect) = match event {
        HookEvent::ToolExecuteBefore => {
            let InputAnswer { decision, reason, input } = read(output)?;
            (decision, reason, input.map(HookEffect::Input))
        }
        HookEvent::ToolExecuteAfter => {
            let OutputAnswer { decision, reason, output, parts } = read(output)?;
            (decision, reason, parts.or(output.map(|text| vec![Part::text(text)])).map(HookEffect::Output))
        }
        HookEvent::ToolResultValidate => {
            let ValidationAnswer { decision, reason, messages } = read(output)?;
            (decision, reason, messages.map(HookEffect::Messages))
        }
        HookEvent::PromptSystemTransform => {
            let SystemAnswer { decision, reason, system: replaced, append } = read(output)?;
            let before = replaced.as_deref().or(system).unwrap_or_default();
            let appended = append.map(|append| format!("{}\n\n{append}", before.trim_end()));
            (decision, reason, appended.or(replaced).map(HookEffect::System))
        }
        HookEvent::PromptMessagesTransform => {
            let MessagesAnswer { decision, reason, messages } = read(output)?;
            (decision, reason, messages.map(HookEffect::Conversation))
        }
        HookEvent::SessionCompacting => {
            let CompactionAnswer { decision, reason, prompt, instructions } = read(output)?;
            let changes = prompt.is_some() || instructions.is_some();
            (decision, reason, changes.then_some(HookEffect::Compaction { prompt, instructions }))
        }
    };
    Ok(match decision {
        Some(HookDecision::Block) => HookEffect::Block(reason.unwrap_or_else(|| "no reason given".into())),
        Some(HookDecision::Approve) | None => effect.unwrap_or(HookEffect::Unchanged),
    })
}

fn read<T: DeserializeOwned>(output: &[u8]) -> Result<T, HookError> {
    json::from_slice(output).map_err(|error| HookError(format!("invalid answer: {error}")))
}
