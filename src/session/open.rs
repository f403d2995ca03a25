//! A session that is open in this process: its log, its worker, the right to write, and the turn that runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agent::Agent;
use super::broker::Broker;
use super::lock::SessionLock;
use super::log::SessionLog;
use super::turn::TurnHandle;
use crate::error::{Error, Kind, Result};
use crate::event::Body;
use crate::id::TurnId;
use crate::store::Store;

pub struct Session {
    pub log: Arc<SessionLog>,
    pub broker: Arc<Broker>,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) tasks: TaskTracker,
    pub(super) shutdown: CancellationToken,
    pub(super) store: Arc<Store>,
    pub(super) locks: PathBuf,
    pub(super) owner: tokio::sync::Mutex<Option<SessionLock>>,
    pub(super) turn: Mutex<Option<TurnHandle>>,
}

impl Session {
    fn running(&self) -> MutexGuard<'_, Option<TurnHandle>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn claim(&self, turn: TurnHandle) -> Result<()> {
        let mut running = self.running();
        if let Some(running) = &*running {
            let message = format!("session {} is working on turn {}", self.log.id, running.id);
            return Err(Error::new(Kind::SessionBusy, message).hint("wait for it to end, or cancel it"));
        }
        *running = Some(turn);
        Ok(())
    }

    pub(super) fn release_claim(&self, id: &TurnId) {
        self.running().take_if(|running| running.id == *id);
    }

    /// The turn that runs in this process.
    pub fn turn(&self) -> Option<TurnHandle> {
        self.running().clone()
    }

    /// Cancels the running turn; nothing happens when there is none.
    pub fn cancel(&self) {
        if let Some(turn) = &*self.running() {
            turn.cancel();
        }
    }

    /// Makes sure that this process may write: it has the session's lock, or takes it if its owner is gone, and then closes what that one
    /// left open. Else `session_busy`, naming the owner.
    pub async fn own(&self) -> Result<()> {
        let mut owner = self.owner.lock().await;
        if owner.is_some() {
            return Ok(());
        }
        let lock = SessionLock::take(&self.locks, &self.log.id)?;
        let generation = self.store.take_session(self.log.key, std::process::id())?;
        self.log.catch_up()?;
        self.log.own(generation);
        let turn = self.log.state(|state| state.turn.clone());
        for body in self.log.state(|state| state.closing()) {
            self.log.commit(turn.clone(), body).await?;
        }
        *owner = Some(lock);
        Ok(())
    }

    pub async fn is_owned(&self) -> bool {
        self.owner.lock().await.is_some()
    }

    /// Appends outside of a turn: a mode, a setting.
    pub async fn append(&self, body: Body) -> Result<u64> {
        self.own().await?;
        self.log.commit(None, body).await
    }

    /// Ends the running turn and waits for its end.
    pub async fn stop(&self) {
        let turn = self.turn();
        if let Some(mut turn) = turn {
            turn.cancel();
            turn.end().await;
        }
    }

    /// Gives the session up: others may take it.
    pub(super) async fn disown(&self) {
        self.owner.lock().await.take();
    }
}
