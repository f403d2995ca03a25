//! All language servers of this process, shared by its sessions.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::server::{Launch, Server};
use crate::limits;
use crate::process::ProcessLauncher;
use crate::task::TaskTracker;

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
        Servers { launcher, running: Mutex::default(), tasks: TaskTracker::default(), stop: CancellationToken::new() }
    }

    /// Returns the running server for `launch`, or starts one. While a program runs confined in a
    /// directory, it does not run unconfined there, also not for other sessions: the model of one
    /// may write files without a question that the program of another would execute. Must be called
    /// within a tokio runtime.
    pub(super) fn server(&self, launch: &Launch) -> Result<Arc<Server>, String> {
        let mut running = self.running.lock();
        running.retain(|_, server| server.upgrade().is_some_and(|server| !server.is_stopped()));
        if let Some(server) = running.get(launch).and_then(Weak::upgrade) {
            return Ok(server);
        }
        let others = running.iter().filter(|(other, _)| other.is_same_program(launch));
        let mut others = others.filter(|(other, _)| other.confinement.is_some() != launch.confinement.is_some());
        match launch.confinement {
            None => {
                if let Some(confined) = others.find_map(|(_, server)| server.upgrade()) {
                    return Ok(confined);
                }
            }
            Some(_) => others.filter_map(|(_, server)| server.upgrade()).for_each(|unconfined| unconfined.stop()),
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
