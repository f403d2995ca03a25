//! The end of a hosted agent's process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a session no longer uses the process of its hosted agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEndReason {
    /// nuncio ended it: a client asked for it, no turn ran for some time, the session was closed,
    /// or the next turn needs a process with other settings.
    Stopped,
    /// It ended by itself, or something else ended it.
    Exited,
    /// It continues to run, because other sessions use it.
    Released,
    /// The nuncio process that had started it died.
    Interrupted,
}
