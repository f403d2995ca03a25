//! The refusal of a request by an agent that works, as the source of an error.

use std::fmt;

use crate::error::Error;

/// The cause, as far as a response tells it.
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
