//! A handle to the process of a hosted agent: what it is, and its end. It does not keep the process
//! running.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::process::ProcessTree;

/// The process of a session's agent, also while the process starts.
pub(super) type ProcessSlot = Arc<Mutex<Option<ProcessHandle>>>;

/// A process that was started.
#[derive(Clone)]
pub(super) struct ProcessHandle {
    pub cwd: PathBuf,
    /// When it was started, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    pub processes: ProcessTree,
    /// Cancelled to end the process.
    pub stop: CancellationToken,
    pub ended: watch::Receiver<Option<ProcessEnd>>,
}

#[derive(Clone, Debug)]
pub(super) struct ProcessEnd {
    /// nuncio ended the process.
    pub stopped: bool,
    /// Missing if the process could not be ended.
    pub code: Option<i32>,
    /// The reason, for people.
    pub why: String,
}

impl ProcessHandle {
    /// Waits until the process has ended.
    pub(super) async fn exit(&self) -> ProcessEnd {
        let mut ended = self.ended.clone();
        let end = ended.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        end.unwrap_or_else(|| ProcessEnd { stopped: true, code: None, why: "it was stopped".into() })
    }

    /// Waits until the process has ended. Returns the reason, for people.
    pub(super) async fn ended(&self) -> String {
        self.exit().await.why
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Closes the standard input of the process, and kills the process if it does not exit in time.
    pub(super) async fn end(&self) {
        self.stop.cancel();
        self.exit().await;
    }

    /// Returns the process id. Waits until it is known, or until the process has ended.
    pub(super) async fn pid(&self) -> u32 {
        tokio::select! {
            () = self.processes.started() => {}
            _ = self.exit() => {}
        }
        self.processes.command()
    }
}
