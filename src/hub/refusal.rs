//! A response with which a hosted agent refuses a request: the source of the error.

use std::fmt;

use crate::error::Error;

/// How the response refuses the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentRefusal {
    /// The code of an error object of JSON-RPC; `None` if it has none.
    Code(Option<i64>),
    /// The status of a response over HTTP.
    Status(u16),
}

impl AgentRefusal {
    /// Returns the refusal that an error came from; `None` if there was no response.
    pub(super) fn of(error: &Error) -> Option<AgentRefusal> {
        error.source.as_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for AgentRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentRefusal::Code(Some(code)) => write!(formatter, "error code {code}"),
            AgentRefusal::Code(None) => write!(formatter, "an error without a code"),
            AgentRefusal::Status(status) => write!(formatter, "status {status}"),
        }
    }
}

impl std::error::Error for AgentRefusal {}
