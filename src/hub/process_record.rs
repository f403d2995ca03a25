//! Records in the log of a session when it begins to use a process of its agent, and when the use
//! ends.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::process_handle::{ProcessEnd, ProcessHandle};
use crate::event::{AgentEndReason, Body};
use crate::session::{HostedProcess, SessionLog, Turn};
use crate::task;

/// The use of a process by a session. Several sessions can use one process; each of them records
/// it.
pub(super) struct ProcessRecord {
    /// Sent once `agent.started` is in the log's queue. Without it, no end is recorded.
    begun: Option<oneshot::Sender<()>>,
    /// Cancelled when the session no longer uses the process.
    released: CancellationToken,
    watch: JoinHandle<()>,
}

impl ProcessRecord {
    /// Watches a process, to record its end.
    pub(super) fn new(log: Arc<SessionLog>, process: &ProcessHandle, view: &HostedProcess) -> ProcessRecord {
        let (begun, recorded) = oneshot::channel();
        let released = CancellationToken::new();
        let (process, agent, pid, release) = (process.clone(), view.agent.clone(), view.pid, released.clone());
        let watch = task::spawn(async move {
            if recorded.await.is_err() {
                return;
            }
            let end = tokio::select! {
                biased;
                end = process.exit() => Some(end),
                // A process that must stop has ended soon, whichever session releases it first.
                () = release.cancelled() => match process.stop.is_cancelled() {
                    true => Some(process.exit().await),
                    false => None,
                },
            };
            if let Err(error) = log.commit(None, ended(agent, pid, end)).await {
                tracing::debug!(session = %log.id, %error, "the end of an agent's process was not recorded");
            }
        });
        ProcessRecord { begun: Some(begun), released, watch }
    }

    /// Records the start. `shared`: other sessions already used the process.
    pub(super) async fn begin(&mut self, turn: &Turn, view: HostedProcess, shared: bool) {
        let HostedProcess { agent, pid, version, port, .. } = view;
        turn.emit(Body::AgentStarted { agent, pid, version, port, shared }).await;
        // The receiver waits for it.
        let _ = self.begun.take().map(|begun| begun.send(()));
    }

    /// Waits until the end of the process, or of its use, is recorded.
    pub(super) async fn end(self) {
        let ProcessRecord { begun, released, watch } = self;
        drop(begun);
        released.cancel();
        // Fails only if the task panicked.
        let _ = watch.await;
    }
}

/// Creates the event for the end of a process; without an end, other sessions continue to use it.
fn ended(agent: String, pid: u32, end: Option<ProcessEnd>) -> Body {
    let (reason, exit_code, error) = match end {
        None => (AgentEndReason::Released, None, None),
        Some(ProcessEnd { stopped: true, code, .. }) => (AgentEndReason::Stopped, code, None),
        Some(ProcessEnd { code, why, .. }) => (AgentEndReason::Exited, code, Some(why)),
    };
    Body::AgentEnded { agent, pid, reason, exit_code, error }
}
