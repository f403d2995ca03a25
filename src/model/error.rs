//! The error of a failed request: its cause, its retry policy, and the remedy.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// The reason why a request failed. Its JSON is part of `info` in errors and in `turn.failed`.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Cause {
    /// The conversation does not fit into the model's context window.
    ContextOverflow {
        /// Tokens of the request, if the provider reported them.
        request_tokens: Option<u64>,
        /// Tokens of the context window, if the provider reported them.
        context_window: Option<u64>,
    },
    /// Too many requests or tokens per minute.
    RateLimit,
    /// The credit or the quota of the account is used up.
    Quota,
    /// The API key is missing, invalid, or not sufficient.
    Authentication,
    /// The provider does not offer the model.
    UnknownModel,
    /// The server is overloaded, or loads the model.
    Overloaded,
    /// The provider's content filter rejected the request.
    ContentFilter,
    /// The provider does not accept the request.
    BadRequest,
    /// The answer is invalid, and a repetition probably is too.
    InvalidAnswer,
    /// Any other failure: of the connection, the server or the settings.
    #[serde(other)]
    Other,
}

/// Facts about a failed request for programs: `info` in errors and in `turn.failed`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailureInfo {
    #[serde(flatten)]
    pub cause: Cause,
    /// As in [`ModelError::unreachable`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreachable: bool,
}

impl FailureInfo {
    /// Reads the facts; `None` if a failure has another source than a request.
    pub(crate) fn read(info: Option<&Value>) -> Option<FailureInfo> {
        FailureInfo::deserialize(info?).ok()
    }
}

impl Cause {
    /// Returns the retry policy of failures with this cause.
    pub(crate) fn retry(self) -> Retry {
        match self {
            Cause::RateLimit | Cause::Overloaded => Retry::Wait(None),
            Cause::InvalidAnswer => Retry::Once,
            Cause::Other => Retry::Backoff,
            Cause::ContextOverflow { .. }
            | Cause::Quota
            | Cause::Authentication
            | Cause::UnknownModel
            | Cause::ContentFilter
            | Cause::BadRequest => Retry::Never,
        }
    }

    /// Returns what the user can do about the failure.
    pub(crate) fn hint(self) -> Option<&'static str> {
        match self {
            Cause::ContextOverflow { .. } => Some(
                "later requests leave out this turn: shorten the prompt, start a new session, \
                 or choose a model with a larger context window",
            ),
            Cause::RateLimit => Some("try again later, raise retry.wait_s, or choose another model"),
            Cause::Quota => Some("check the plan and the credit of the provider's account, or choose another model"),
            Cause::Authentication => Some("check the API key and its permissions"),
            Cause::UnknownModel => Some("check the model's name"),
            Cause::Overloaded => Some("try again later, raise retry.wait_s, or choose another model"),
            Cause::ContentFilter => Some("rephrase the prompt, or choose another model"),
            Cause::BadRequest => Some("check the settings of the provider: protocol, base_url, max_output_tokens"),
            Cause::InvalidAnswer => Some("try again, or choose another model"),
            Cause::Other => None,
        }
    }
}

/// The retry policy of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// The request is not repeated.
    Never,
    /// One more attempt, because the failure is probably the same again.
    Once,
    /// A fixed number of attempts with growing pauses.
    Backoff,
    /// A loopback address refused the connection. Retried as long as a restart takes if the server
    /// has answered before, otherwise a few times.
    Refused,
    /// Retried as long as the setting `retry.wait_s` allows, after the pause that the provider
    /// requested, if any.
    Wait(Option<Duration>),
}

/// A failed request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelError {
    /// The reason, for branching.
    pub cause: Cause,
    /// The model and the reason, for users.
    pub message: String,
    /// A remedy, for users.
    pub hint: Option<String>,
    /// The retry policy.
    pub retry: Retry,
    /// The provider cannot be reached or rejects the API key. Another provider may work.
    pub unreachable: bool,
}

impl ModelError {
    /// Creates an error without a known cause and without a hint. The provider counts as reachable.
    pub fn new(retry: Retry, message: impl Into<String>) -> Self {
        Self { cause: Cause::Other, message: message.into(), hint: None, retry, unreachable: false }
    }

    /// Creates an error with the retry policy and the hint of its cause.
    pub(crate) fn from_cause(cause: Cause, message: impl Into<String>) -> Self {
        let unreachable = cause == Cause::Authentication;
        Self { cause, message: message.into(), hint: cause.hint().map(str::to_owned), retry: cause.retry(), unreachable }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks the provider as unreachable.
    pub(crate) fn unreachable(mut self) -> Self {
        self.unreachable = true;
        self
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelError {}
