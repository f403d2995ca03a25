//! Model requests in events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::content::{Cost, StepOutcome, Usage};

/// A model request that starts.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct StepStart {
    /// Number in the turn, from 1; a request that is sent again has a number of its own.
    pub step: u32,
    /// `PROVIDER/NAME`.
    pub model: String,
    /// The digest of what the log does not have of the request, such as the system prompt and
    /// the tools, which nuncio keeps with the session. Missing in logs of earlier versions.
    pub request: Option<String>,
}

/// The end of a model request.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct StepEnd {
    /// The number in `step.started`.
    pub step: u32,
    /// `PROVIDER/NAME`.
    pub model: String,
    /// How the request ended.
    pub outcome: StepOutcome,
    /// Missing if the provider reported none.
    pub usage: Option<Usage>,
    /// US dollars; missing without `usage`, or if the model's price is unknown.
    pub cost: Option<Cost>,
    /// Why the request failed or is sent again.
    pub error: Option<String>,
    /// When the request is sent again, in milliseconds since the Unix epoch.
    pub retry_at_ms: Option<u64>,
    /// As in `step.started`, if the request was sent in another form, such as without a part
    /// that the provider refused.
    pub request: Option<String>,
}

/// Usage of one model request.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
#[non_exhaustive]
pub struct UsageUpdate {
    /// `PROVIDER/NAME`.
    pub model: String,
    /// The tokens of the request.
    #[serde(flatten)]
    pub usage: Usage,
    /// US dollars; missing if the model's price is unknown.
    pub cost: Option<Cost>,
    /// Tokens of the context window that are in use.
    pub context_tokens: u64,
    /// Size of the model's context window in tokens.
    pub context_window: u64,
    /// True if the request was not one of the conversation, for example for the title. The context
    /// is that of the conversation, and `model` can be another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
}
