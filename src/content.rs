//! The parts of messages and tool calls. ACP and the model protocols convert to and from these
//! types at their edges.

mod agent_status;
mod budget;
mod check;
mod cost;
mod plan;
mod review;
pub(crate) mod server_request;
mod tool;
mod work_problems;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

pub(crate) use agent_status::AgentStatus;
pub use budget::BudgetLimits;
pub(crate) use budget::{BudgetLimit, Resource};
pub use check::CheckResult;
pub use cost::Cost;
pub(crate) use plan::PLAN;
pub use plan::{PlanEntry, PlanPriority, PlanStatus};
pub(crate) use review::{FileDecision, HunkDecision, REVIEW, ReviewAnswer, ReviewDetails, ReviewEdit, ReviewResult};
pub use review::{ReviewFile, ReviewHunk, ReviewOffer};
pub(crate) use server_request::{Form, FormAnswer, FormLink, ModelQuery, ModelReply, QueryMessage};
pub use tool::{CallDetails, Location, ToolCategory, ToolContent, ToolKind, ToolLabel, ToolStatus};
pub use work_problems::WorkProblems;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MessageRole")]
#[non_exhaustive]
pub enum Role {
    /// A person, or the client that prompts.
    User,
    /// The model.
    Assistant,
    /// The model's reasoning, if its provider returns it.
    Thought,
    /// Instructions that neither a person nor the model wrote, for example the report of a
    /// subagent.
    System,
    /// A message between clients: stored and shown, and never sent to a model.
    Custom,
}

/// A piece of a message or of a tool's output.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Part {
    /// Text, usually Markdown.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// For example `image/png`.
        mime_type: String,
        /// Base64 (RFC 4648, section 4).
        data: String,
    },
    /// A recording.
    Audio {
        /// For example `audio/wav`.
        mime_type: String,
        /// Base64 (RFC 4648, section 4).
        data: String,
    },
    /// A binary document, such as a PDF file.
    Document {
        /// For example `application/pdf`.
        mime_type: String,
        /// The file name; missing if it is unknown.
        name: Option<String>,
        /// Base64 (RFC 4648, section 4).
        data: String,
        /// The text of the document, extracted for a model that does not read the document itself.
        text: Option<String>,
    },
    /// A document with its text.
    Resource {
        /// Identifies the document.
        uri: String,
        /// Missing if it is unknown.
        mime_type: Option<String>,
        /// The text of the document.
        text: String,
    },
    /// A reference to a document.
    ResourceLink {
        /// Identifies the document.
        uri: String,
        /// The name for display.
        name: String,
        /// Missing if it is unknown.
        mime_type: Option<String>,
        /// A sentence about the document.
        description: Option<String>,
    },
    /// Text that nuncio adds for the model, for example to a tool's output. In the message of a
    /// client it is a text as any other.
    Note {
        /// The text, which says nothing that a file, a program or a page said.
        text: String,
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

    /// Creates a note.
    pub(crate) fn note(text: impl Into<String>) -> Part {
        Part::Note { text: text.into() }
    }

    /// Turns a note into text, because its author is not nuncio.
    pub(crate) fn untagged(self) -> Part {
        if let Part::Note { .. } = &self { Part::text(self.as_text().into_owned()) } else { self }
    }

    /// Returns the part as text, for models that do not support this kind of input.
    pub fn as_text(&self) -> Cow<'_, str> {
        Cow::Owned(match self {
            Part::Text { text } => return text.into(),
            Part::Note { text } => format!("[{text}]"),
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
        })
    }
}

/// Converts all parts to text, joined by newlines.
pub fn plain_text(parts: &[Part]) -> String {
    joined(parts.iter().map(Part::as_text)).into_owned()
}

/// Joins texts by newlines. A single text is not copied.
pub(crate) fn joined<'a>(texts: impl IntoIterator<Item = Cow<'a, str>>) -> Cow<'a, str> {
    let mut texts = texts.into_iter();
    let mut joined = texts.next().unwrap_or_default();
    for text in texts {
        let all = joined.to_mut();
        all.push('\n');
        all.push_str(&text);
    }
    joined
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

/// How a model request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
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

/// Data that a provider requires back unchanged with its block: a thinking signature, encrypted
/// reasoning, an item id. It is sent only to the protocol and the model that produced it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderState {
    /// The wire format of the provider.
    pub protocol: String,
    /// The data, as the provider sent it.
    pub value: Value,
    /// The model that sent it, as `PROVIDER/NAME`; missing in logs of earlier versions. It is sent
    /// back only to this model.
    pub model: Option<String>,
}

/// The kind of an option of a permission request (ACP `PermissionOptionKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PermissionOptionKind {
    /// The call runs.
    AllowOnce,
    /// The call runs, and so do later ones like it in the session.
    AllowAlways,
    /// The call does not run.
    RejectOnce,
    /// The call does not run, nor do later ones like it in the session.
    RejectAlways,
}

/// The option that allows the call, and later ones like it in the session's directory, by a rule in
/// the user's settings. Only local clients and the owner's token may choose it.
pub(crate) const ALLOW_PROJECT: &str = "allow_project";

/// An option of a permission request (ACP `PermissionOption`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionOption {
    /// Identifies the option in the answer.
    pub option_id: String,
    /// One line for users.
    pub name: String,
    /// The effect of the option.
    pub kind: PermissionOptionKind,
}

impl PermissionOption {
    /// Returns whether only a client that may change the user's settings may choose the option.
    pub(crate) fn needs_owner(&self) -> bool {
        self.option_id == ALLOW_PROJECT
    }
}

/// Tokens of one model request, as counted by the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TokenUsage")]
pub struct Usage {
    /// All input tokens, cached or not.
    pub input_tokens: u64,
    /// Tokens of the answer, including those of thinking.
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
#[non_exhaustive]
pub enum StopReason {
    /// The answer is complete.
    EndTurn,
    /// The answer reached a token limit.
    MaxTokens,
    /// The turn reached a limit of model requests, or its budget.
    MaxTurnRequests,
    /// The model refused to answer.
    Refusal,
    /// The turn was cancelled.
    Cancelled,
}
