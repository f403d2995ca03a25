//! The error of a failed request, with its retry policy.

use std::time::Duration;

/// The retry policy of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    Never,
    Backoff,
    /// Like `Backoff`, with fewer attempts: a loopback address refused the connection, and waiting
    /// rarely helps.
    Briefly,
    /// Retry after the delay that the provider requested (Retry-After).
    After(Duration),
}

/// A failed request. `message` contains the model and the cause, `hint` a remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelError {
    pub message: String,
    pub hint: Option<String>,
    pub retry: Retry,
    /// The provider cannot be reached or rejects the API key. Another provider may work.
    pub unreachable: bool,
}

impl ModelError {
    /// Creates an error without a hint. The provider counts as reachable.
    pub(crate) fn new(retry: Retry, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, retry, unreachable: false }
    }

    /// Sets the hint.
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
