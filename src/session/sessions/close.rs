//! Closing sessions: on request, on deletion, at shutdown, and to free capacity.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::Sessions;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Severity};
use crate::id::SessionId;
use crate::limits;
use crate::session::artifacts;
use crate::session::clock::now_ms;
use crate::session::files::check_name;
use crate::session::open::owned_session::OwnedSession;
use crate::session::open::{OpenSession, Session};

impl Sessions {
    /// Closes a session: ends the running turn, removes message deltas and releases ownership.
    /// Ownership is released even if an earlier step fails. Does nothing for a session that is not
    /// open.
    pub async fn close(self: &Arc<Self>, id: &SessionId) -> Result<()> {
        let Some(session) = self.opened(id) else { return self.row(id).await.map(drop) };
        let sessions = self.clone();
        let close = async move {
            session.drain().await;
            let answered = session.core().unwritten_answer();
            if let Some((answered, owned)) = answered.zip(session.owned().ok()) {
                // The next owner may start a turn at once.
                owned.answer_written(&answered).await;
            }
            session.agent.close().await;
            let mut closed = Ok(());
            if let Ok(owned) = session.owned() {
                sessions.trim_artifacts(&owned).await;
                closed = match owned.append(Body::SessionClosed {}).await {
                    Ok(_) => owned.log.prune().await.map(drop),
                    Err(error) => Err(error),
                };
            }
            sessions.remove_open(&session).await;
            closed
        };
        self.detached(close).await
    }

    /// Runs `work` to its end, even if the caller is dropped: a session that is being closed
    /// refuses all requests until it is closed.
    async fn detached<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        self.tasks.spawn(work).await.map_err(|error| Error::internal(format!("closing a session failed: {error}")))?
    }

    /// Releases a session without a running turn and without background work of its agent. Clients
    /// continue to follow the session. Returns whether the session was released.
    pub(crate) async fn release_idle(&self, session: &Session) -> bool {
        let released = !session.has_background_work() && session.release_idle().await;
        if released {
            self.external.notify_one();
        }
        released
    }

    /// Closes a session that another process owns in this process. Clients that follow it continue
    /// when a process writes to it again.
    pub(crate) async fn forget(&self, id: &SessionId) {
        let Some(session) = self.opened(id) else { return };
        {
            // A call that is taking the session continues to use it.
            let Ok(lock) = session.ownership.try_lock() else { return };
            if lock.is_some() {
                return;
            }
            session.core().close();
            session.settled.notify_waiters();
        }
        self.remove_open(&session).await;
    }

    /// Removes the session from the map and releases ownership.
    pub(super) async fn remove_open(&self, session: &Session) {
        {
            let mut map = self.map();
            // The session may have been removed and opened again in the meantime.
            if map.get(&session.log.id).is_some_and(|open| Arc::ptr_eq(open, &session.open)) {
                map.remove(&session.log.id);
            }
        }
        session.ownership.release().await;
        session.gone.cancel();
    }

    /// Deletes a session with its events, files and child sessions. An unknown session is not an
    /// error. Returns `session_busy` if another process owns the session.
    pub(crate) async fn delete(self: &Arc<Self>, id: &SessionId) -> Result<()> {
        let (sessions, id) = (self.clone(), id.clone());
        self.detached(async move { sessions.delete_with_children(&id).await }).await
    }

    async fn delete_with_children(&self, id: &SessionId) -> Result<()> {
        match self.row(id).await {
            Err(error) if error.kind == Kind::NotFound => return Ok(()),
            row => row?,
        };
        let session = self.get(id).await?.own().await?;
        session.drain().await;
        let deleted = async {
            for child in self.store.children(id, usize::MAX >> 1).await? {
                Box::pin(self.delete_with_children(&child.id)).await?;
            }
            session.agent.close().await;
            session.append(Body::SessionDeleted {}).await?;
            // If this is interrupted, the next opening completes the deletion.
            self.remove_files(id).await?;
            self.store.delete_session(session.log.key).await
        };
        let deleted = deleted.await;
        self.remove_open(&session).await;
        deleted
    }

    /// Removes the artifacts, attachments, drafts and recorded requests of a session.
    pub(super) async fn remove_files(&self, id: &SessionId) -> Result<()> {
        // Users of a shared database must not be able to name other directories of this machine.
        check_name(id.as_str())?;
        for files in &self.files {
            match tokio::fs::remove_dir_all(files.join(id.as_str())).await {
                // Most sessions have no files.
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("removing files", error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Cancels all turns, waits until they end, and releases all sessions.
    pub(crate) async fn shut_down(&self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        let open: Vec<Session> = self.map().drain().map(|(_, session)| Session::new(session)).collect();
        futures_util::future::join_all(open.iter().map(|session| session.agent.close())).await;
        for session in &open {
            if let Ok(session) = session.owned() {
                self.trim_artifacts(&session).await;
            }
        }
        // This releases all sessions of a node at once.
        if let Some(lease) = self.claims.lease() {
            lease.leave().await;
        }
        for session in open {
            session.ownership.release().await;
        }
    }

    /// Removes a session's oldest artifacts in excess of the size limit before the session is
    /// closed, and records the removal in the session's log.
    async fn trim_artifacts(&self, session: &OwnedSession) {
        let dir = self.files[0].join(session.log.id.as_str());
        let removed = tokio::task::spawn_blocking(move || artifacts::trim(&dir)).await.unwrap_or_default();
        if removed.is_empty() {
            return;
        }
        if let Err(error) = session.log.shared.files.remove_artifacts(&session.log.id, &removed).await {
            tracing::warn!(session = %session.log.id, %error, "removing artifacts from the database failed");
        }
        let description =
            format!("the artifacts of this session exceeded {} MiB: {}", limits::ARTIFACTS_BYTES_MAX >> 20, removed.join(", "));
        let notice = Body::notice(Severity::Warning, "The oldest artifacts were removed", description);
        if let Err(error) = session.append(notice).await {
            tracing::warn!(session = %session.log.id, %error, ?removed, "recording removed artifacts failed");
        }
    }

    /// Prepares the end of this process, after its own work: prompts that other processes forwarded
    /// and that wait for the end of a turn then run in those processes.
    pub(crate) fn leave(&self) {
        self.leaving.cancel();
    }

    /// Waits until no session has a running turn or a message that starts one. Other processes can
    /// take each session that is idle.
    pub(crate) async fn finish(&self) {
        let finish = async |session: Session| {
            let mut worked = false;
            while let Some(mut turn) = session.next_turn().await {
                turn.end().await;
                worked = true;
            }
            self.release_idle(&session).await;
            worked
        };
        while futures_util::future::join_all(self.all_open().into_iter().map(finish)).await.contains(&true) {}
    }

    /// Waits until no turn runs, and starts no turn from that moment on.
    pub(crate) async fn turns_ended(&self) {
        self.turn_slots.close_when_empty().await;
    }

    /// Refuses new turns from now on.
    pub(crate) fn refuse_turns(&self) {
        self.turn_slots.close();
    }

    /// Refuses new turns and waits for the running ones. Other nodes can take the idle sessions.
    pub(crate) async fn drain_turns(&self) {
        self.refuse_turns();
        if self.store.has_nodes() {
            self.leave();
            for session in self.all_open() {
                self.release_idle(&session).await;
            }
        }
        self.turn_slots.empty().await;
    }

    /// Closes the sessions that were unused for `idle`. The next request opens them again.
    pub(crate) async fn close_idle(&self, idle: Duration) {
        let before_ms = now_ms().saturating_sub(idle.as_millis() as u64);
        let unused = |session: &&Arc<OpenSession>| session.is_unused(before_ms);
        let unused: Vec<SessionId> = self.map().values().filter(unused).map(|session| session.log.id.clone()).collect();
        for id in unused {
            self.close_unused(&id, before_ms).await;
        }
    }

    /// Ensures capacity for one more open session by closing the least recently used session that
    /// has no handles. If all sessions have handles, waits at most [`limits::CAPACITY_WAIT`] for
    /// one to become unused.
    pub(super) async fn ensure_capacity(&self) -> Result<()> {
        let deadline = Instant::now() + limits::CAPACITY_WAIT;
        while self.sessions_open() >= self.capacity.sessions {
            // Created before the sessions are checked, so that no notification is missed.
            let became_unused = self.unused.notified();
            let before_ms = now_ms() + 1;
            let oldest = {
                let map = self.map();
                let unused = map.values().filter(|session| session.is_unused(before_ms));
                unused.min_by_key(|session| session.used_ms()).map(|session| session.log.id.clone())
            };
            if let Some(id) = oldest {
                self.close_unused(&id, before_ms).await;
            } else if timeout_at(deadline, became_unused).await.is_err() {
                let message = format!("{} sessions are already open", self.capacity.sessions);
                return Err(Error::new(Kind::Overloaded, message).hint("close one, or raise http.max_sessions"));
            }
        }
        Ok(())
    }

    /// Closes a session unless it was used since `before_ms`. The next opening waits for the end.
    pub(super) async fn close_unused(&self, id: &SessionId, before_ms: u64) {
        let removed = {
            let mut map = self.map();
            let unused = map.get(id).is_some_and(|session| session.is_unused(before_ms));
            let removed = if unused { map.remove(id).map(Session::new) } else { None };
            if let Some(session) = &removed {
                self.closing().insert(id.clone(), session.gone.clone());
            }
            removed
        };
        // The guard is dropped after the session, whose lock is then free.
        let Some((_closed, session)) = removed.map(|session| (session.gone.clone().drop_guard(), session)) else { return };
        session.agent.close().await;
        let owned = session.owned();
        if let Ok(session) = &owned {
            self.trim_artifacts(session).await;
        }
        session.ownership.release().await;
        if owned.is_err() {
            return;
        }
        // Pruning is safe even if another process owns the session now, because it removes only
        // deltas of messages that are already complete.
        if let Err(error) = session.log.prune().await {
            tracing::warn!(session = %id, error = %error, "removing message deltas failed");
        }
    }

    /// Locks the map of the sessions that [`Sessions::close_unused`] is closing. Each token is
    /// cancelled when its session is closed; entries of closed sessions are removed first.
    fn closing(&self) -> MutexGuard<'_, HashMap<SessionId, CancellationToken>> {
        let mut closing = self.closing.lock();
        closing.retain(|_, gone| !gone.is_cancelled());
        closing
    }

    /// Waits until a session that was unused is closed.
    pub(super) async fn closed_unused(&self, id: &SessionId) {
        let gone = self.closing().get(id).cloned();
        if let Some(gone) = gone {
            gone.cancelled().await;
        }
    }
}
