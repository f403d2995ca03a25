//! Turns in events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// Error of a failed turn.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Failure")]
#[non_exhaustive]
pub struct TurnFailure {
    /// A code of the error table.
    pub code: String,
    /// The failed operation and the reason.
    pub message: String,
    /// A remedy for users.
    pub hint: Option<String>,
    /// Facts for programs, as `info` of the error. For a failed model request, `info.cause` is
    /// `context_overflow` (with `requestTokens` and `contextWindow` if the provider reported
    /// them), `rate_limit`, `quota`, `authentication`, `unknown_model`, `overloaded`,
    /// `content_filter`, `bad_request`, `invalid_answer` or `other`. Later requests leave out a
    /// turn that ended with `context_overflow`.
    pub info: Option<Value>,
}
