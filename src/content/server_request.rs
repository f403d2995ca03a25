//! Requests of an MCP server to the user and to the model.

use serde_json::{Map, Value};

use super::{Part, StopReason};

/// A form of a server, which the user fills in.
#[derive(Clone, Debug)]
pub struct Form {
    /// Name of the server in the settings.
    pub server: String,
    /// Text of the server for the user.
    pub message: String,
    /// A JSON Schema of an object with fields of basic types.
    pub schema: Value,
    /// A page that the user opens instead of filling in fields; the schema then has none.
    pub link: Option<FormLink>,
}

impl Form {
    /// Returns the message, followed by the address of the page to open.
    pub(crate) fn text(&self) -> String {
        match &self.link {
            Some(link) => format!("{}\n\n{}", self.message, link.url),
            None => self.message.clone(),
        }
    }
}

/// A page on which the user continues, for example to sign in.
#[derive(Clone, Debug)]
pub struct FormLink {
    /// The address of the page.
    pub url: String,
    /// The server's id of the request; empty if it has none.
    pub id: String,
}

/// The user's answer to a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormAnswer {
    /// The values of the fields.
    Accepted(Map<String, Value>),
    /// The user refused to fill in the form.
    Declined,
    /// The form was dismissed, or its call ended.
    Cancelled,
}

/// A request of a server to the session's model.
#[derive(Clone, Debug)]
pub struct ModelQuery {
    /// Name of the server in the settings.
    pub server: String,
    /// Digest of the program or URL of the server.
    pub identity: String,
    /// The system prompt; empty if the server sent none.
    pub system: String,
    /// The conversation, oldest message first.
    pub messages: Vec<QueryMessage>,
    /// Maximum length of the answer in tokens.
    pub max_tokens: u32,
}

/// A message of a [`ModelQuery`].
#[derive(Clone, Debug)]
pub struct QueryMessage {
    /// True for an answer of the model, false for a message of the user.
    pub by_model: bool,
    /// The content.
    pub parts: Vec<Part>,
}

/// The model's answer to a [`ModelQuery`].
#[derive(Clone, Debug)]
pub struct ModelReply {
    /// `PROVIDER/NAME`.
    pub model: String,
    /// The text of the answer.
    pub text: String,
    /// Why the answer ended.
    pub stop: StopReason,
}
