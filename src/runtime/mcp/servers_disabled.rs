//! The MCP servers of one session in a program without the Cargo feature `mcp`: each is reported as
//! failed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::config::McpServer;
use crate::event::{Body, Severity};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::workspace::one_line;

/// The MCP servers of one session.
#[derive(Default)]
pub(crate) struct SessionMcp {
    /// The servers that the client gave.
    given: Mutex<BTreeMap<String, McpServer>>,
    reported: Mutex<BTreeSet<String>>,
}

impl SessionMcp {
    /// Replaces the servers that the client gave.
    pub(crate) fn set_client_servers(&self, servers: BTreeMap<String, McpServer>) {
        *self.given.lock() = servers;
    }

    /// Does nothing: no server runs.
    pub(crate) fn close(&self) {}

    /// Returns a notice about each server that was not reported before.
    pub(crate) async fn update(&self, environment: &Arc<SessionEnvironment>, _: &CancellationToken) -> Vec<Body> {
        let mut wanted = environment.loaded.settings.mcp.clone();
        wanted.extend(self.given.lock().clone());
        let mut reported = self.reported.lock();
        let new = wanted.into_iter().filter(|(name, server)| server.enabled && reported.insert(name.clone()));
        let why = "this program was built without MCP (the Cargo feature `mcp` of nuncio)";
        new.map(|(name, _)| Body::notice(Severity::Warning, format!("MCP server {} failed", one_line(name)), why)).collect()
    }
}
