//! A session that is open in this process: its log, agent, ownership and running turn.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agent::Agent;
use super::broker::Broker;
use super::hands::Lending;
use super::lock::SessionLock;
use super::log::SessionLog;
use super::now_ms;
use super::prompts::Prompts;
use super::queue::Message;
use super::room::TurnSlots;
use super::turn::{TurnHandle, failed};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Severity};
use crate::id::{MessageId, TurnId};
use crate::limits;
use crate::store::Store;

/// A session that is open in this process. It may be owned by another one.
pub struct Session {
    pub log: Arc<SessionLog>,
    pub broker: Arc<Broker>,
    /// Files and terminals that its clients provide.
    pub lending: Arc<Lending>,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) tasks: TaskTracker,
    pub(super) turn_slots: Arc<TurnSlots>,
    /// Time of the last request for it, in milliseconds since the Unix epoch.
    pub(super) used_ms: AtomicU64,
    pub(super) shutdown: CancellationToken,
    /// Cancelled when the session is no longer open. Its followers continue with the next opening.
    pub(super) gone: CancellationToken,
    pub(super) store: Arc<Store>,
    pub(super) locks: PathBuf,
    pub(super) owner: tokio::sync::Mutex<Option<SessionLock>>,
    pub(super) owned: AtomicBool,
    pub(super) turn_queue: Mutex<TurnQueue>,
}

/// The running turn and the work that waits for its end.
#[derive(Default)]
pub(super) struct TurnQueue {
    pub turn: Option<TurnHandle>,
    /// The session is being closed or deleted: no turn starts.
    pub closing: bool,
    /// A turn has ended and queued messages or prompts come next: a call of `promote` is due.
    pub promoting: bool,
    /// Prompts that wait for the running turn to end.
    pub prompts: Prompts,
    /// Messages whose `message.queued` is in the log's queue and may not be in the state yet.
    pub enqueuing: Vec<MessageId>,
    /// Messages whose completion is in the log's queue while the state still lists them as queued.
    pub dequeuing: Vec<MessageId>,
}

impl Session {
    pub(super) fn turn_queue(&self) -> MutexGuard<'_, TurnQueue> {
        self.turn_queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn release_claim(&self, id: &TurnId) {
        self.turn_queue().turn.take_if(|running| running.id == *id);
    }

    pub(super) fn is_closing(&self) -> Error {
        Error::new(Kind::SessionBusy, format!("session {} is being closed", self.log.id)).hint("retry: the session opens again")
    }

    /// The turn that runs in this process.
    pub fn turn(&self) -> Option<TurnHandle> {
        self.turn_queue().turn.clone()
    }

    /// Cancels the running turn, if any, and the waiting prompts.
    pub fn cancel(&self) {
        let mut turn_queue = self.turn_queue();
        turn_queue.prompts.cancel();
        if let Some(turn) = &turn_queue.turn {
            turn.cancel();
        }
    }

    /// Ensures that this process owns the session. If the owner has ended, takes its lock and ends
    /// the turn and calls it left open; if the owner is alive, returns `session_busy`. After a lost
    /// append, ownership is acquired again in the same way.
    pub async fn own(&self) -> Result<()> {
        let mut owner = self.owner.lock().await;
        let lost = self.log.failed();
        if owner.is_some() && lost.is_none() {
            return Ok(());
        }
        if owner.is_none() && self.turn_queue().closing {
            return Err(self.is_closing());
        }
        if lost.is_some() {
            // Flush: pending appends fail too, so none of them lands after ownership is
            // re-acquired.
            let _ = self.log.commit(None, Body::notice(Severity::Error, "Events were lost", "the log could not be written")).await;
        }
        let lock = match owner.take() {
            Some(lock) => lock,
            None => SessionLock::take(&self.locks, &self.log.id)?,
        };
        self.owned.store(false, Ordering::Release);
        let generation = match self.take().await {
            Ok(generation) => generation,
            Err(error) => {
                // After a lost append the lock is kept until the store can be written again.
                *owner = Some(lock).filter(|_| lost.is_some());
                return Err(error);
            }
        };
        if self.log.state(|state| state.deleted) {
            return Err(Error::not_found(format!("session {} not found", self.log.id)));
        }
        self.log.own(generation);
        let turn = self.log.state(|state| state.turn.clone());
        for body in self.log.state(|state| state.closing()) {
            let body = match (body, &lost) {
                // The turn's process still runs and knows the reason.
                (Body::TurnInterrupted {}, Some(error)) => failed(error),
                (body, _) => body,
            };
            self.log.commit(turn.clone(), body).await?;
        }
        let silent: Vec<Message> = self.log.state(|state| state.silent().cloned().collect());
        for message in silent {
            self.log.commit(None, message.completed()).await?;
        }
        *owner = Some(lock);
        self.owned.store(true, Ordering::Release);
        Ok(())
    }

    /// Starts a new ownership generation and reads the events of other processes. May wait for the
    /// store.
    async fn take(&self) -> Result<i64> {
        let (store, log) = (self.store.clone(), self.log.clone());
        let taken = tokio::task::spawn_blocking(move || {
            let generation = store.take_session(log.key, std::process::id())?;
            log.catch_up().map(|()| generation)
        });
        taken.await.map_err(|_| Error::internal("taking ownership of a session panicked"))?
    }

    /// After a lost append: acquires ownership again once the store is writable, which ends the
    /// turn and calls that were left open.
    pub(super) fn recover(self: &Arc<Self>) {
        let session = self.clone();
        // Stop if another process took the session or deleted it.
        let ours = |error: &Error| error.kind != Kind::SessionBusy && error.kind != Kind::NotFound;
        self.tasks.spawn(async move {
            while session.log.failed().as_ref().is_some_and(ours) {
                tokio::select! {
                    () = session.shutdown.cancelled() => return,
                    () = session.gone.cancelled() => return,
                    () = tokio::time::sleep(limits::STORE_RECOVERY) => {}
                }
                // A running turn closes itself, which starts the next recovery.
                let running = session.turn_queue().turn.is_some();
                if !running && session.own().await.as_ref().is_err_and(|error| !ours(error)) {
                    return;
                }
            }
        });
    }

    /// Ends the turn and calls that a dead owner left open, then releases ownership.
    pub(super) async fn close_orphan(&self) -> Result<()> {
        self.own().await?;
        let mut owner = self.owner.lock().await;
        let turn_queue = self.turn_queue();
        if turn_queue.turn.is_none() && !turn_queue.promoting {
            self.owned.store(false, Ordering::Release);
            owner.take();
        }
        Ok(())
    }

    /// Releases ownership without waiting. The lock stays if it is in use.
    pub(super) fn release_ownership_now(&self) {
        self.owned.store(false, Ordering::Release);
        if let Ok(mut owner) = self.owner.try_lock() {
            owner.take();
        }
    }

    pub(super) fn used(&self) {
        self.used_ms.store(now_ms(), Ordering::Relaxed);
    }

    pub(super) fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    /// Waits until the session is no longer open.
    pub async fn closed(&self) {
        self.gone.cancelled().await;
    }

    pub fn is_closed(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Returns whether this process holds the session's lock.
    pub fn is_owned(&self) -> bool {
        self.owned.load(Ordering::Acquire)
    }

    /// Appends an event outside of a turn, such as a mode change.
    pub async fn append(&self, body: Body) -> Result<u64> {
        if let (Some(error), Some(_)) = (self.log.failed(), self.turn()) {
            // The running turn fails with the same error and ends.
            return Err(error);
        }
        self.own().await?;
        self.log.commit(None, body).await
    }

    /// Refuses new turns, cancels the running turn and the waiting prompts, and waits until the
    /// turn ends.
    pub(super) async fn drain(&self) {
        let turn = {
            let mut turn_queue = self.turn_queue();
            turn_queue.closing = true;
            turn_queue.prompts.cancel();
            turn_queue.turn.clone()
        };
        if let Some(mut turn) = turn {
            turn.cancel();
            turn.end().await;
        }
    }

    /// Releases ownership: another process may take the session.
    pub(super) async fn release_ownership(&self) {
        self.owned.store(false, Ordering::Release);
        self.owner.lock().await.take();
    }
}
