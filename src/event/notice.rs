//! Notices in events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Severity {
    /// No action is needed.
    Info,
    /// The work continues, with a restriction.
    Warning,
    /// Something failed.
    Error,
}

/// Code of the notice about a hook whose failure has no effect.
pub(crate) const HOOK_FAILED: &str = "hook_failed";

/// Code of the notice whose note describes the repository for the model.
pub(crate) const REPOSITORY: &str = "repository";

/// A message of nuncio to the user.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct Notice {
    /// How serious the notice is.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// The text below the title.
    pub description: Option<String>,
    /// The subject of some notices: `repeated_calls`, `repeated_text`, `hook_message`,
    /// `hook_failed`, `verify`, `review`, `image_replaced`, `tool_left_out`, `request_repaired`
    /// (a provider refused a part of the conversation, a tool or a field, and later requests
    /// are sent without it), `claims` (an answer names checks that did not pass) and
    /// `repository` (context for the model, which clients do not show).
    pub code: Option<String>,
    /// Text about it for the model, which later requests contain.
    pub note: Option<String>,
    /// A text that the note is about, for example the output of a command. It follows the note
    /// in later requests.
    pub quoted: Option<String>,
    /// Facts for programs. Of `repository`: the `branch`, the `commit` and the changed files
    /// when the session began, as in the details of `git_status`; missing above 32 KiB.
    pub details: Option<Box<Value>>,
}

impl Notice {
    /// Creates a notice without a description.
    pub(crate) fn new(severity: Severity, title: impl Into<String>) -> Notice {
        Notice { severity, title: title.into(), description: None, code: None, note: None, quoted: None, details: None }
    }
}
