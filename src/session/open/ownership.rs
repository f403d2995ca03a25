//! Ownership of a session: the right to write its events.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::{Mutex, MutexGuard, TryLockError, watch};

use crate::error::{Error, Result};
use crate::event::{Body, Severity};
use crate::id::Seq;
use crate::session::events::log::SessionLog;
use crate::session::events::signer::dropped_notice;
use crate::session::folds::state::SessionState;
use crate::session::message::IncomingMessage;
use crate::session::owner::claims::{ClaimPurpose, Claims, SessionClaim};
use crate::session::owner::lock;
use crate::session::turn::failed;

/// Ownership of an open session: the claim on it, and the generation of its log.
///
/// Invariants:
///
/// - Only the process that has claimed the session appends. The claim ends when that process dies
///   or when its lease ends, so a dead owner does not block the session.
/// - Each owner starts a new generation in the session's row, and each commit checks the
///   generation. So an append by a former owner is refused, whatever happened to that owner's
///   claim.
/// - A new owner reads all events, and ends the turn and the tool calls that the previous owner
///   left open, and the use of its agent's process. Only then does [`Ownership::is_held`] return
///   true, so that other tasks can append.
/// - After a lost append, the log refuses appends until a new generation starts. The claim is
///   kept during that time, so that no other process continues the session from an older state.
/// - The mutex serializes acquiring, releasing and reading events of another owner.
pub(in crate::session) struct Ownership {
    log: Arc<SessionLog>,
    claims: Arc<Claims>,
    claim: Mutex<Option<SessionClaim>>,
    held: watch::Sender<bool>,
}

impl Ownership {
    /// Creates the ownership of an open session. With `claim`, which a new session has, ownership
    /// is held from the start.
    pub(crate) fn new(log: Arc<SessionLog>, claims: Arc<Claims>, claim: Option<SessionClaim>) -> Ownership {
        Ownership { log, claims, held: watch::Sender::new(claim.is_some()), claim: Mutex::new(claim) }
    }

    /// Returns whether this process owns the session.
    pub(crate) fn is_held(&self) -> bool {
        *self.held.borrow()
    }

    /// Waits until this process does not own the session.
    pub(crate) async fn released(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.held.subscribe().wait_for(|held| !held).await;
    }

    /// Ensures that this process owns the session. If another process owns the session, returns
    /// `session_busy`. If the previous owner has exited, claims the session, and ends the turn and
    /// the tool calls that the previous owner left open. After a lost append, ownership is acquired
    /// again in the same way.
    ///
    /// `may_take` is called before that, with the error of the lost append, and whether this
    /// process still has the claim. While the guard that it returns exists, no other task appends
    /// because it found the session owned. `taken` is called when the log is complete, before other
    /// tasks find the session owned. Returns whether this process did not own the session before.
    pub(crate) async fn acquire<G>(
        &self,
        may_take: impl FnOnce(Option<&Error>, bool) -> Result<G>,
        taken: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        let before = self.is_held();
        let mut held = self.claim.lock().await;
        let lost = self.log.failed();
        if held.is_some() && lost.is_none() {
            return Ok(!before);
        }
        {
            let _guard = may_take(lost.as_ref(), held.is_some())?;
            self.held.send_replace(false);
        }
        if lost.is_some() {
            // Flush the queue: pending appends fail too, so that none of them is written after
            // ownership is acquired again.
            let _ = self.log.commit(None, Body::notice(Severity::Error, "Events were lost", "the log could not be written")).await;
        }
        let mut claim = match held.take() {
            Some(claim) => claim,
            None => self.claims.prepare(&self.log.id, ClaimPurpose::Own).await?,
        };
        let generation = match self.start_generation(&mut claim).await {
            Ok(generation) => generation,
            Err(error) => {
                // After a lost append the claim is kept until the store can be written again.
                *held = Some(claim).filter(|_| lost.is_some() && !lock::is_not_owner(&error));
                return Err(error);
            }
        };
        self.close_open_items(generation, lost.as_ref()).await?;
        self.sign_anew().boxed().await?;
        *held = Some(claim);
        let taken = taken();
        self.held.send_replace(true);
        taken.map(|()| !before)
    }

    /// Ends the turn and the tool calls that a dead owner left open. This process does not
    /// become the owner, so that lists do not show an owner for a moment. Does nothing if this
    /// process owns the session. `may_take` is called before the session is claimed.
    pub(crate) async fn close_orphan(&self, may_take: impl FnOnce() -> Result<()>) -> Result<()> {
        let held = self.claim.lock().await;
        if held.is_some() {
            return Ok(());
        }
        may_take()?;
        let mut claim = self.claims.prepare(&self.log.id, ClaimPurpose::EndTurn).await?;
        let generation = self.start_generation(&mut claim).await?;
        let closed = self.close_open_items(generation, None).await;
        claim.end().await;
        closed
    }

    /// Starts a new generation and reads the events and files that other processes wrote.
    async fn start_generation(&self, claim: &mut SessionClaim) -> Result<i64> {
        let generation = self.claims.take(claim, &self.log.id, self.log.key).await?;
        self.log.catch_up(Seq::MAX).await?;
        if let Err(error) = self.log.shared.files.fetch(&self.log.id, None).await {
            tracing::warn!(session = %self.log.id, %error, "reading the files of a session failed");
        }
        Ok(generation)
    }

    /// Ends, in a new generation, the turn and the tool calls that the previous owner left open,
    /// and appends the queued messages that do not start a turn. `lost` is the error from an append
    /// that this process lost.
    async fn close_open_items(&self, generation: i64, lost: Option<&Error>) -> Result<()> {
        if self.log.state(|state| state.deleted) {
            return Err(Error::not_found(format!("session {} not found", self.log.id)));
        }
        self.log.own(generation);
        let turn = self.log.state(|state| state.turn.clone());
        for body in self.log.state(|state| state.closing()) {
            let body = match (body, lost) {
                // This process ran the turn and knows the reason: record a failure, not an
                // interruption.
                (Body::TurnInterrupted {}, Some(error)) => failed(error),
                (body, _) => body,
            };
            self.log.commit(turn.clone(), body).await?;
        }
        // After a lost append, the process of the agent is one of this process, and may still run.
        if let Some(process) = self.log.state(|state| state.agent_process.clone()).filter(|_| lost.is_none()) {
            self.log.commit(None, process.interrupted()).await?;
        }
        let silent: Vec<IncomingMessage> = self.log.state(|state| state.silent().cloned().collect());
        for message in silent {
            self.log.commit(None, message.completed()).await?;
        }
        Ok(())
    }

    /// Signs what the session may do, unless the current key has signed it, and reports what was
    /// dropped because no key has.
    async fn sign_anew(&self) -> Result<()> {
        let Some(dropped) = self.log.dropped() else { return Ok(()) };
        if let Some(notice) = dropped_notice(&dropped) {
            self.log.emit(None, notice).await;
        }
        let granted = self.log.state(SessionState::granted);
        self.log.commit(None, granted).await.map(drop)
    }

    /// Reads the events that another owner committed, at least up to `until` if there are as many.
    /// Does nothing if this process is the owner.
    pub(crate) async fn catch_up(&self, until: Seq) -> Result<()> {
        if self.is_held() || self.log.head() >= until {
            return Ok(());
        }
        let claim = self.claim.lock().await;
        if claim.is_some() { Ok(()) } else { self.log.catch_up(until).await }
    }

    /// Prevents this process from acquiring the session while the guard exists. Fails while the
    /// session is being acquired or released.
    pub(crate) fn try_lock(&self) -> std::result::Result<MutexGuard<'_, Option<SessionClaim>>, TryLockError> {
        self.claim.try_lock()
    }

    /// Releases ownership: another process may take the session.
    pub(crate) async fn release(&self) {
        self.held.send_replace(false);
        let mut claim = self.claim.lock().await;
        // It may have been acquired again in the meantime.
        self.held.send_replace(false);
        if let Some(claim) = claim.take() {
            claim.end().await;
        }
    }

    /// Releases ownership if `unused` returns a guard, which is held until no call of this process
    /// can use the session any more. Another process can take it after `last`. Returns whether
    /// ownership was released.
    pub(crate) async fn release_if<G>(&self, unused: impl FnOnce() -> Option<G>, last: impl Future<Output = ()>) -> bool {
        let mut claim = self.claim.lock().await;
        {
            let Some(_guard) = unused() else { return false };
            self.held.send_replace(false);
        }
        last.await;
        if let Some(claim) = claim.take() {
            claim.end().await;
        }
        true
    }
}
