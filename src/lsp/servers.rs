//! All language servers of this process, shared by its sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::server::{Launch, Server};
use crate::limits;
use crate::process::ProcessLauncher;

/// All language servers of this process.
pub struct Servers {
    launcher: ProcessLauncher,
    running: Mutex<HashMap<Launch, Weak<Server>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Servers {
    /// Creates the set without starting a server. `launcher` will start the server processes.
    pub(crate) fn new(launcher: ProcessLauncher) -> Servers {
        Servers { launcher, running: Mutex::default(), tasks: TaskTracker::new(), stop: CancellationToken::new() }
    }

    /// Returns the running server for `launch`, or starts one. Must be called within a tokio
    /// runtime.
    pub(super) fn server(&self, launch: &Launch) -> Result<Arc<Server>, String> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, server| server.strong_count() > 0);
        if let Some(server) = running.get(launch).and_then(Weak::upgrade) {
            return Ok(server);
        }
        if self.tasks.len() >= limits::LSP_SERVERS_MAX {
            return Err(format!("{} language servers are running already", self.tasks.len()));
        }
        let (server, supervision) = Server::new(launch.clone(), self.launcher.clone(), self.stop.child_token());
        self.tasks.spawn(supervision);
        let server = Arc::new(server);
        running.insert(launch.clone(), Arc::downgrade(&server));
        Ok(server)
    }

    /// Stops all servers and waits until they have exited. Each server has its own timeout.
    pub(crate) async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
