//! The MCP server for one client.

use std::sync::Arc;

use crate::api::App;
use crate::client::SessionClient;
use crate::options::Mode;
use crate::runtime::McpAccess;

/// The identity of the clients of the server in the logs of sessions.
pub(super) const PRINCIPAL: &str = "mcp";

/// The MCP server for one client.
#[derive(Clone)]
pub(crate) struct ToolServer {
    pub(super) app: Arc<App>,
    pub(super) client: SessionClient,
    pub(super) access: Arc<McpAccess>,
}

impl ToolServer {
    pub(crate) fn new(app: Arc<App>, access: Arc<McpAccess>) -> ToolServer {
        let client = SessionClient::for_model(app.clone(), PRINCIPAL, access.cwd.clone(), access.roots.clone());
        ToolServer { app, client, access }
    }

    /// Returns the most permissive mode for sessions of calls: the mode of the client's session, or
    /// else of the process. A session that cannot be read counts as one in mode `plan`.
    pub(super) async fn mode(&self) -> Mode {
        let Some(id) = &self.access.session else { return self.app.mode };
        let read = async { self.app.sessions().await?.open_read_only(id).await };
        read.await.map_or(Mode::Plan, |session| session.mode())
    }
}
