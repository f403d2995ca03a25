//! All MCP servers of this process, shared by its sessions.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::launch::McpLaunch;
use super::server::{McpServerHandle, Resources};
use super::tokens::McpTokens;
use crate::process::ProcessLauncher;
use crate::task::TaskTracker;
use crate::web::HttpClients;

/// Maximum number of concurrent MCP servers of a process.
const MCP_SERVERS_MAX: usize = 256;

/// All MCP servers of this process.
pub struct McpServers {
    resources: Resources,
    running: Mutex<HashMap<McpLaunch, Weak<McpServerHandle>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl McpServers {
    /// Creates the set without starting a server.
    pub fn new(launcher: ProcessLauncher, web: HttpClients, tokens: McpTokens) -> McpServers {
        let resources = Resources { launcher, web, tokens };
        McpServers { resources, running: Mutex::default(), tasks: TaskTracker::default(), stop: CancellationToken::new() }
    }

    /// Returns the server for `launch`, and starts it if no session uses it or if it is no longer
    /// restarted. Must be called within a tokio runtime. The error is a message.
    pub fn server(&self, launch: McpLaunch) -> Result<Arc<McpServerHandle>, String> {
        let mut running = self.running.lock();
        running.retain(|_, server| server.strong_count() > 0);
        if let Some(server) = running.get(&launch).and_then(Weak::upgrade).filter(|server| server.is_supervised()) {
            return Ok(server);
        }
        if self.tasks.len() >= MCP_SERVERS_MAX {
            return Err(format!("{} MCP servers are running already", self.tasks.len()));
        }
        let (server, supervision) = McpServerHandle::new(launch.clone(), self.resources.clone(), self.stop.child_token());
        self.tasks.spawn(supervision);
        let server = Arc::new(server);
        running.insert(launch, Arc::downgrade(&server));
        Ok(server)
    }

    /// Stops all servers and waits until they have ended. Each has its own timeout.
    pub async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
