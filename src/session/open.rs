//! A session that is open in this process: its log, its worker, the right to write, and the turn that runs.

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
use super::room::Running;
use super::turn::{TurnHandle, failed};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Severity};
use crate::id::{MessageId, TurnId};
use crate::limits;
use crate::store::Store;

pub struct Session {
    pub log: Arc<SessionLog>,
    pub broker: Arc<Broker>,
    /// What its clients lend to its tools.
    pub lending: Arc<Lending>,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) tasks: TaskTracker,
    pub(super) running: Arc<Running>,
    /// When it was asked for last; milliseconds since the Unix epoch.
    pub(super) used_ms: AtomicU64,
    pub(super) shutdown: CancellationToken,
    /// Cancelled when it is not open any more: whoever follows it goes on with the next opening.
    pub(super) gone: CancellationToken,
    pub(super) store: Arc<Store>,
    pub(super) locks: PathBuf,
    pub(super) owner: tokio::sync::Mutex<Option<SessionLock>>,
    pub(super) owned: AtomicBool,
    pub(super) slot: Mutex<Slot>,
}

/// What runs in a session.
#[derive(Default)]
pub(super) struct Slot {
    pub turn: Option<TurnHandle>,
    /// It is being closed or deleted: nothing new begins.
    pub closing: bool,
    /// A turn has just ended, and messages or prompts wait that come next: `settle` will be called.
    pub settling: bool,
    /// Prompts that wait for the running turn to end.
    pub prompts: Prompts,
    /// Messages that begin to wait: in the log's queue, and maybe not yet in the state.
    pub arriving: Vec<MessageId>,
    /// Messages that wait no more: in the log's queue, and still in the state.
    pub leaving: Vec<MessageId>,
}

impl Session {
    pub(super) fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn release_claim(&self, id: &TurnId) {
        self.slot().turn.take_if(|running| running.id == *id);
    }

    pub(super) fn is_closing(&self) -> Error {
        Error::new(Kind::SessionBusy, format!("session {} is being closed", self.log.id)).hint("open it again")
    }

    /// The turn that runs in this process.
    pub fn turn(&self) -> Option<TurnHandle> {
        self.slot().turn.clone()
    }

    /// Cancels the running turn and the prompts that wait behind it; nothing happens when there is
    /// none.
    pub fn cancel(&self) {
        let mut slot = self.slot();
        slot.prompts.cancel();
        if let Some(turn) = &slot.turn {
            turn.cancel();
        }
    }

    /// Makes sure that this process may write: it has the session's lock, or takes it if its owner is gone, and then closes what that one
    /// left open. Else `session_busy`, naming the owner. After a lost append it begins anew the same way.
    pub async fn own(&self) -> Result<()> {
        let mut owner = self.owner.lock().await;
        let lost = self.log.failed();
        if owner.is_some() && lost.is_none() {
            return Ok(());
        }
        if owner.is_none() && self.slot().closing {
            return Err(self.is_closing());
        }
        if lost.is_some() {
            // What was on its way is refused with it, and nothing of it comes after the new beginning.
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

    /// Starts a new generation and reads what other processes wrote. May wait for the store.
    async fn take(&self) -> Result<i64> {
        let (store, log) = (self.store.clone(), self.log.clone());
        let taken = tokio::task::spawn_blocking(move || {
            let generation = store.take_session(log.key, std::process::id())?;
            log.catch_up().map(|()| generation)
        });
        taken.await.map_err(|_| Error::internal("taking a session panicked"))?
    }

    /// After a lost append: owns the session again once the store can be written, which closes what
    /// was left open.
    pub(super) fn recover(self: &Arc<Self>) {
        let session = self.clone();
        // A session that another process has taken is left to it.
        let ours = |error: &Error| error.kind != Kind::SessionBusy && error.kind != Kind::NotFound;
        self.tasks.spawn(async move {
            while session.log.failed().as_ref().is_some_and(ours) {
                tokio::select! {
                    () = session.shutdown.cancelled() => return,
                    () = session.gone.cancelled() => return,
                    () = tokio::time::sleep(limits::STORE_RECOVERY) => {}
                }
                // A running turn closes itself, which starts the next recovery.
                let running = session.slot().turn.is_some();
                if !running && session.own().await.as_ref().is_err_and(|error| !ours(error)) {
                    return;
                }
            }
        });
    }

    /// Closes what a dead owner left open, and leaves the session to whoever works in it next.
    pub(super) async fn close_orphan(&self) -> Result<()> {
        self.own().await?;
        let mut owner = self.owner.lock().await;
        let slot = self.slot();
        if slot.turn.is_none() && !slot.settling {
            self.owned.store(false, Ordering::Release);
            owner.take();
        }
        Ok(())
    }

    /// The same at once, if nobody uses the lock now.
    pub(super) fn disown_now(&self) {
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

    /// Returns when it is not open any more.
    pub async fn closed(&self) {
        self.gone.cancelled().await;
    }

    pub fn is_closed(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Whether this process has the session's lock.
    pub fn is_owned(&self) -> bool {
        self.owned.load(Ordering::Acquire)
    }

    /// Appends outside of a turn: a mode, a setting.
    pub async fn append(&self, body: Body) -> Result<u64> {
        if let (Some(error), Some(_)) = (self.log.failed(), self.turn()) {
            // The turn that runs will meet it too, and end.
            return Err(error);
        }
        self.own().await?;
        self.log.commit(None, body).await
    }

    /// Lets nothing new begin, ends the running turn and the prompts that wait, and waits for the
    /// end of the turn.
    pub(super) async fn wind_up(&self) {
        let turn = {
            let mut slot = self.slot();
            slot.closing = true;
            slot.prompts.cancel();
            slot.turn.clone()
        };
        if let Some(mut turn) = turn {
            turn.cancel();
            turn.end().await;
        }
    }

    /// Gives the session up: others may take it.
    pub(super) async fn disown(&self) {
        self.owned.store(false, Ordering::Release);
        self.owner.lock().await.take();
    }
}
