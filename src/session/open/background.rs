//! The work of a session that continues between its turns: subagents and commands in the
//! background.

use futures_util::future::join_all;

use crate::session::open::owned_session::OwnedSession;

impl OwnedSession {
    /// Returns the title of each subagent and the line of each command that runs in the background.
    pub(crate) fn background_work(&self) -> Vec<String> {
        let subagents = self.log.state(|state| state.open_children.clone()).into_iter().map(|child| child.title);
        let jobs = self.agent.background_jobs().into_iter().map(|job| format!("`{}`", job.command));
        subagents.chain(jobs).collect()
    }

    /// Returns whether background work or a turn runs, or a turn is about to start.
    pub(crate) fn is_working(&self) -> bool {
        // A subagent counts until its report has started a turn, which may have ended since.
        let in_log = self.log.state(|state| state.turn.is_some());
        self.children.any() || self.is_busy() || in_log || !self.agent.background_jobs().is_empty()
    }

    /// Cancels the subagents that run in the background. Commands end with the session.
    pub(crate) fn cancel_subagents(&self) {
        self.children.cancel();
    }

    /// Waits until no background work runs and no turn runs. The report of a subagent can start a
    /// turn, which can start more work. Calls `on_end` with the line of each command that ended,
    /// and its result.
    pub(crate) async fn finish_background_work(&self, on_end: impl Fn(&str, &str)) {
        loop {
            self.children.ended().await;
            let on_end = &on_end;
            let ends = self.agent.background_jobs().into_iter();
            join_all(ends.map(|job| async move { on_end(&job.command, &job.finished().await.how) })).await;
            match self.next_turn().await {
                Some(mut turn) => drop(turn.end().await),
                None => {
                    self.turn_recorded().await;
                    if !self.is_working() {
                        return;
                    }
                }
            }
        }
    }
}
