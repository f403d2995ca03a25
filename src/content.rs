//! What messages and tool calls consist of. Inside the house these are the only shapes; ACP's and the models' own stop at their doors.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MessageRole")]
pub enum Role {
    User,
    Assistant,
    /// The model's reasoning, as far as its provider shows it.
    Thought,
    System,
}

/// A piece of a message or of a tool's output.
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
    /// A document whose text came along with the prompt.
    Resource {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        text: String,
    },
    /// A document that is only named.
    ResourceLink {
        uri: String,
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
}

impl Part {
    pub fn text(text: impl Into<String>) -> Part {
        Part::Text { text: text.into() }
    }

    /// The part as a model without that kind of input would read it.
    pub fn as_text(&self) -> String {
        match self {
            Part::Text { text } => text.clone(),
            Part::Image { mime_type, .. } => format!("[{mime_type} image]"),
            Part::Resource { uri, text, .. } => format!("<document uri=\"{uri}\">\n{text}\n</document>"),
            Part::ResourceLink { uri, name, description, .. } => match description {
                Some(description) => format!("[{name}]({uri}): {description}"),
                None => format!("[{name}]({uri})"),
            },
        }
    }
}

/// All parts as one text, a line apart.
pub fn plain_text(parts: &[Part]) -> String {
    let texts: Vec<String> = parts.iter().map(Part::as_text).collect();
    texts.join("\n")
}

/// What a tool call is about, in ACP's words (ToolKind): what clients choose an icon by. What may run is decided by
/// `permission::Access`, not by this.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// A place in a file that a tool call is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// Absolute.
    pub path: PathBuf,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// What a tool call shows to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ToolContent {
    Content {
        content: Part,
    },
    /// A file as it was (none: it is new) and as it will be or is.
    Diff {
        path: PathBuf,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old_text: Option<String>,
        new_text: String,
    },
    /// A command in the terminal of a client, which alone knows that one by its id.
    Terminal {
        client: String,
        terminal_id: String,
        /// What the command wrote so far, as far as it is known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
    },
}

impl ToolContent {
    pub fn text(text: impl Into<String>) -> ToolContent {
        ToolContent::Content { content: Part::text(text) }
    }
}

/// What a provider wants handed back unchanged with the block it came with: a thinking signature, encrypted reasoning, an item's id.
/// Only the protocol that wrote it reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderState {
    pub protocol: String,
    pub value: Value,
}

/// One option of a permission question, in ACP's words (PermissionOptionKind).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    pub option_id: String,
    pub name: String,
    pub kind: PermissionOptionKind,
}

/// A step of the agent's plan, in ACP's words (PlanEntry).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEntry {
    pub content: String,
    pub priority: PlanPriority,
    pub status: PlanStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanPriority {
    High,
    Medium,
    Low,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

/// Tokens of one model request, as its provider counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// All input, cached or not.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The part of the input that came from the provider's cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// The part of the input that was written to the provider's cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
    }
}

/// Why a turn stopped, in ACP's words (StopReason).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
}
