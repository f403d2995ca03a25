//! The parts of messages and tool calls. ACP and the model protocols convert to and from these
//! types at their edges.

mod agent_status;
mod budget;
mod check;
mod cost;
mod review;
mod server_request;
mod work_problems;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

pub use agent_status::AgentStatus;
pub use budget::BudgetLimits;
pub(crate) use budget::{BudgetLimit, Resource};
pub use check::CheckResult;
pub use cost::Cost;
pub(crate) use review::REVIEW;
pub use review::{HunkDecision, ReviewAnswer, ReviewEdit, ReviewFile, ReviewHunk, ReviewOffer};
pub use server_request::{Form, FormAnswer, FormLink, ModelQuery, ModelReply, QueryMessage};
pub use work_problems::WorkProblems;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MessageRole")]
pub enum Role {
    User,
    Assistant,
    /// The model's reasoning, if its provider returns it.
    Thought,
    System,
    /// A message between clients: stored and shown, and never sent to a model.
    Custom,
}

/// A piece of a message or of a tool's output.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Part {
    Text {
        text: String,
    },
    /// `data` is base64 (RFC 4648, section 4).
    Image {
        mime_type: String,
        data: String,
    },
    /// `data` is base64 (RFC 4648, section 4).
    Audio {
        mime_type: String,
        data: String,
    },
    /// A binary document, such as a PDF file. `data` is base64 (RFC 4648, section 4). `text` is its
    /// text, extracted for a model that does not read the document itself.
    Document {
        mime_type: String,
        name: Option<String>,
        data: String,
        text: Option<String>,
    },
    /// A document with its text.
    Resource {
        uri: String,
        mime_type: Option<String>,
        text: String,
    },
    /// A reference to a document.
    ResourceLink {
        uri: String,
        name: String,
        mime_type: Option<String>,
        description: Option<String>,
    },
}

/// The media type of PDF documents.
pub(crate) const PDF: &str = "application/pdf";
/// The media type of HTML pages.
pub(crate) const HTML: &str = "text/html";
/// The media type of Word documents.
pub(crate) const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
/// The media type of Excel workbooks.
pub(crate) const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
/// The media type of OpenDocument texts.
pub(crate) const ODT: &str = "application/vnd.oasis.opendocument.text";
/// The media type of OpenDocument sheets.
pub(crate) const ODS: &str = "application/vnd.oasis.opendocument.spreadsheet";

impl Part {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Part {
        Part::Text { text: text.into() }
    }

    /// Returns the part as text, for models that do not support this kind of input.
    pub fn as_text(&self) -> String {
        match self {
            Part::Text { text } => text.clone(),
            Part::Image { mime_type, .. } => format!("[{mime_type} image]"),
            Part::Audio { mime_type, .. } => format!("[{mime_type} audio, which you cannot hear]"),
            Part::Document { mime_type, name, text, .. } => {
                let name = name.as_deref().unwrap_or("document");
                match text {
                    Some(text) => format!("<document name=\"{name}\" type=\"{mime_type}\">\n{text}\n</document>"),
                    None => format!("[{mime_type} document {name:?}, which you cannot read]"),
                }
            }
            Part::Resource { uri, text, .. } => format!("<document uri=\"{uri}\">\n{text}\n</document>"),
            Part::ResourceLink { uri, name, description, .. } => match description {
                Some(description) => format!("[{name}]({uri}): {description}"),
                None => format!("[{name}]({uri})"),
            },
        }
    }
}

/// Converts all parts to text, joined by newlines.
pub fn plain_text(parts: &[Part]) -> String {
    let texts: Vec<String> = parts.iter().map(Part::as_text).collect();
    texts.join("\n")
}

/// Formats names for display: `a, b and 3 more`. Shows at most `shown_max` names.
pub(crate) fn listed<T: AsRef<str>>(names: &[T], shown_max: usize) -> String {
    let shown: Vec<&str> = names.iter().take(shown_max).map(T::as_ref).collect();
    let more = names.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}

/// Cuts off the end of a text that has more than `bytes_max` bytes.
pub(crate) fn shortened(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

/// The kind of a tool call (ACP `ToolKind`), from which clients choose an icon. Permissions and
/// [`ToolCategory`] use `permission::Access` instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Search,
    Execute,
    Think,
    Fetch,
    Other,
}

/// The resources that a tool call accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolCategory {
    /// Runs a command.
    Command,
    /// Reads, lists or writes files.
    File,
    /// Connects to a host.
    Network,
    /// Calls a tool of an MCP server.
    Mcp,
    /// Accesses none of these, for example a plan, or has an invalid input.
    Other,
}

/// The tool of a call, as in the call's `tool.started`: the name that the model used, the title of
/// the call and its category. Events of older versions lack the category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolLabel {
    pub name: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<ToolCategory>,
}

/// How a model request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// The answer is complete and has no tool calls.
    EndTurn,
    /// The answer is complete and has tool calls.
    ToolCalls,
    /// The answer reached a token limit. Its tool calls are dropped.
    MaxTokens,
    /// The model refused to answer.
    Refusal,
    /// The request failed and is sent again, in the next step. The text received so far is
    /// discarded.
    Retried,
    /// The request failed, and so did the turn.
    Failed,
    /// The turn was cancelled during the request.
    Cancelled,
    /// The process that sent the request died, or the agent had an internal error.
    Interrupted,
}

/// The status of a tool call (ACP `ToolCallStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// A file, and optionally a line, that a tool call works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// Absolute path.
    pub path: PathBuf,
    /// Line number, starting at 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Content of a tool call that is shown to users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ToolContent {
    Content {
        content: Part,
    },
    /// A file before (absent for a new file) and after the change.
    Diff {
        path: PathBuf,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old_text: Option<String>,
        new_text: String,
    },
    /// A command in a terminal of a client. The id is valid only for that client.
    Terminal {
        client: String,
        terminal_id: String,
        /// Output of the command so far, if known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
}

impl ToolContent {
    /// Creates text content.
    pub(crate) fn text(text: impl Into<String>) -> ToolContent {
        ToolContent::Content { content: Part::text(text) }
    }
}

/// Data that a provider requires back unchanged with its block: a thinking signature, encrypted
/// reasoning, an item id. It is sent only to the protocol that produced it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderState {
    pub protocol: String,
    pub value: Value,
}

/// The kind of an option of a permission request (ACP `PermissionOptionKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

/// An option of a permission request (ACP `PermissionOption`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    pub option_id: String,
    pub name: String,
    pub kind: PermissionOptionKind,
}

/// A step of the agent's plan (ACP `PlanEntry`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEntry {
    pub content: String,
    pub priority: PlanPriority,
    pub status: PlanStatus,
}

/// The priority of a plan step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanPriority {
    High,
    Medium,
    Low,
}

/// The status of a plan step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

/// Tokens of one model request, as counted by the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TokenUsage")]
pub struct Usage {
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Input tokens read from the provider's cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Input tokens written to the provider's cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
}

impl Usage {
    /// Returns the tokens of the input and of the output.
    pub fn total(self) -> u64 {
        self.input_tokens + self.output_tokens
    }

    /// Returns this usage without a part of it.
    pub(crate) fn without(self, part: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_sub(part.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(part.output_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_sub(part.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_sub(part.cache_write_tokens),
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
    }
}

/// Why a turn stopped (ACP `StopReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}
