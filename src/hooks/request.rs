//! The request to a hook: one JSON object on the standard input of a command.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::content::{Part, ToolStatus, plain_text};
use crate::event::HookEvent;
use crate::id::{SessionId, ToolCallId, TurnId};
use crate::model::Messages;
use crate::options::{Mode, OptionValue};

/// The request to a hook.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookRequest {
    /// The event of the hook.
    pub hook_event: HookEvent,
    /// Absent for `nuncio tool`, like `turnId`.
    pub session_id: Option<SessionId>,
    /// Absent outside of a turn.
    pub turn_id: Option<TurnId>,
    /// The directory of the session, in which the command runs.
    pub cwd: PathBuf,
    /// The permission mode of the session.
    pub mode: OptionValue<Mode>,
    /// `PROVIDER/NAME`.
    pub model: Option<String>,
    /// The tool call (`tool` events).
    pub tool: Option<HookTool>,
    /// The system prompt (`prompt.system.transform`).
    pub system: Option<String>,
    /// The conversation (`prompt.messages.transform`).
    pub messages: Option<Messages>,
    /// The summary that is about to be requested (`session.compacting`).
    pub compaction: Option<HookCompaction>,
}

/// A tool call. After the call, `status` and `output` are set.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookTool {
    /// The id in the events of the call.
    pub tool_call_id: ToolCallId,
    /// The tool's own name, even if the model used another one.
    pub name: String,
    /// The input of the call with the tool's own names and types of the arguments, as changed by
    /// earlier hooks.
    pub input: Value,
    /// `completed` or `failed`.
    pub status: Option<ToolStatus>,
    /// The output for the model, as text.
    pub output: Option<String>,
    /// The output for the model, if it is more than one text.
    pub parts: Option<Vec<Part>>,
}

impl HookTool {
    pub(crate) fn set_output(&mut self, parts: &[Part]) {
        self.output = Some(plain_text(parts));
        self.parts = (!matches!(parts, [Part::Text { .. }])).then(|| parts.to_vec());
    }
}

/// A summary that is about to be requested from the model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct HookCompaction {
    /// The prompt for the summary.
    pub prompt: String,
    /// The text after `/compact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}
