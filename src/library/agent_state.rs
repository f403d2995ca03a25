//! The state that an agent shares with its sessions.

use super::question::Decide;
use super::store::TemporaryDirectory;
use crate::client::SessionClient;

/// The state that an agent shares with its sessions.
pub(super) struct AgentState {
    pub client: SessionClient,
    pub decide: Option<Decide>,
    /// Removed last.
    pub _temporary: Option<TemporaryDirectory>,
}
