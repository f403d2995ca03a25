//! Language servers (LSP 3.17), used for diagnostics only. A server is started when a file first
//! needs it, shared by the sessions of this process, and stopped when the last session releases it.

mod client;
mod detect;
mod diagnostic;
mod documents;
mod languages;
mod server;
mod uri;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use diagnostic::{Diagnostic, Severity, render};
pub use languages::{Languages, News, Terms};

use crate::limits;
use crate::process::Supervisor;
use server::{Launch, Server};

/// All language servers of this process.
pub struct Servers {
    supervisor: Supervisor,
    running: Mutex<HashMap<Launch, Weak<Server>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Servers {
    pub fn new(supervisor: Supervisor) -> Servers {
        Servers { supervisor, running: Mutex::default(), tasks: TaskTracker::new(), stop: CancellationToken::new() }
    }

    /// Returns the running server for `launch`, or starts one. Must be called within a tokio
    /// runtime.
    fn server(&self, launch: &Launch) -> Result<Arc<Server>, String> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, server| server.strong_count() > 0);
        if let Some(server) = running.get(launch).and_then(Weak::upgrade) {
            return Ok(server);
        }
        if self.tasks.len() >= limits::LSP_SERVERS_MAX {
            return Err(format!("{} language servers are running already", self.tasks.len()));
        }
        let (server, supervision) = Server::new(launch.clone(), self.supervisor.clone(), self.stop.child_token());
        self.tasks.spawn(supervision);
        let server = Arc::new(server);
        running.insert(launch.clone(), Arc::downgrade(&server));
        Ok(server)
    }

    /// Stops all servers and waits for them. Each stop has its own timeout.
    pub async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
