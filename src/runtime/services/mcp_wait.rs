//! The wait of a session's first turn for MCP servers that are starting.

use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::config::ToolSettings;
use crate::session::clock::now_ms;

/// `nuncio run` shows a wait for MCP servers that is longer than this.
const MCP_WAIT_QUIET: Duration = Duration::from_secs(1);

/// The waits of the sessions of this process. A turn waits longer if a command line shows the wait,
/// because its user can end the wait.
#[derive(Default)]
pub(crate) struct McpWait {
    shown: watch::Sender<Option<StartingServers>>,
    skipped: Notify,
}

/// The servers that a turn waits for.
#[derive(Clone, Debug)]
pub(crate) struct StartingServers {
    pub names: Vec<String>,
    /// The end of the wait, in milliseconds since the Unix epoch.
    pub until_ms: u64,
}

impl StartingServers {
    /// Returns the seconds until the end of the wait.
    pub(crate) fn seconds_left(&self) -> u64 {
        self.until_ms.saturating_sub(now_ms()).div_ceil(1000)
    }
}

impl McpWait {
    /// Returns the servers that a turn waits for. As long as the receiver exists, a turn waits for
    /// `tools.mcp_wait_run_s`.
    pub(crate) fn watch(&self) -> watch::Receiver<Option<StartingServers>> {
        self.shown.subscribe()
    }

    /// Ends the wait: the turn continues without the servers.
    pub(crate) fn skip(&self) {
        self.skipped.notify_waiters();
    }

    /// Waits until `started` completes, but not longer than the settings allow. `names` returns the
    /// servers that are still starting. Returns false if the wait was cancelled.
    pub(in crate::runtime) async fn wait(
        &self,
        settings: &ToolSettings,
        started: impl Future,
        names: impl Fn() -> Vec<String>,
        cancel: &CancellationToken,
    ) -> bool {
        let watched = self.shown.receiver_count() > 0;
        let most = Duration::from_secs(if watched { settings.mcp_wait_run_s } else { settings.mcp_wait_s });
        let begun = Instant::now();
        let mut started = std::pin::pin!(started);
        // Registered before the wait is shown: a call of `skip` wakes only registered futures.
        let mut skipped = std::pin::pin!(self.skipped.notified());
        skipped.as_mut().enable();
        for (end, shows) in [(most.min(MCP_WAIT_QUIET), false), (most, watched)] {
            if shows && end > MCP_WAIT_QUIET {
                let until_ms = now_ms() + (most - MCP_WAIT_QUIET).as_millis() as u64;
                self.shown.send_replace(Some(StartingServers { names: names(), until_ms }));
            }
            let ended = tokio::select! {
                biased;
                () = cancel.cancelled() => Some(false),
                waited = timeout_at(begun + end, &mut started) => waited.ok().map(|_| true),
                () = &mut skipped, if shows => Some(true),
            };
            if let Some(ended) = ended {
                self.hide();
                return ended;
            }
        }
        self.hide();
        true
    }

    fn hide(&self) {
        self.shown.send_if_modified(|shown| shown.take().is_some());
    }
}
