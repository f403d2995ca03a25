//! All sessions: the open ones, and the ones that are only in the store.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agent::{Agents, SessionSetup};
use super::artifacts;
use super::broker::Broker;
use super::foreign;
use super::lock::SessionLock;
use super::log::{Log, SessionLog};
use super::now_ms;
use super::open::Session;
use super::room::{Room, TurnSlots};
use crate::config::Durability;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event, SessionChange};
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::options::{Mode, OptionValue};
use crate::store::{SessionPage, SessionRow, Store};

/// Creates, opens, closes and deletes sessions.
pub struct Sessions {
    pub(super) store: Arc<Store>,
    pub(super) log: Log,
    pub(super) locks: PathBuf,
    /// Artifacts and attachments: a directory for each session in each.
    files: [PathBuf; 2],
    pub(super) agents: Arc<dyn Agents>,
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// Serializes the opening of sessions, in the order of the calls.
    opening: tokio::sync::Mutex<()>,
    /// Notified when a client follows events that another process may write.
    pub(super) foreign: Arc<Notify>,
    pub(super) room: Room,
    pub(super) turn_slots: Arc<TurnSlots>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Sessions {
    /// Opens the sessions in `dir` (`nuncio.db`, `locks/`, `artifacts/`, `attachments/`).
    pub fn open_store(dir: &Path, agents: Arc<dyn Agents>, durability: Durability, room: Room) -> Result<Arc<Sessions>> {
        let store = Arc::new(Store::open(dir)?);
        if !store.is_read_only()
            && let Err(error) = store.forget_deleted(now_ms().saturating_sub(limits::DELETED_KEPT.as_millis() as u64))
        {
            // Another process may lock the store. The next start retries.
            tracing::warn!(%error, "removing deleted sessions failed");
        }
        let sessions = Arc::new(Sessions {
            log: Log::open(store.clone(), durability)?,
            store,
            locks: dir.join("locks"),
            files: ["artifacts", "attachments"].map(|name| dir.join(name)),
            agents,
            open: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            foreign: Arc::default(),
            turn_slots: TurnSlots::new(room.turns),
            room,
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
        });
        if !sessions.store.is_read_only() {
            let (store, artifacts) = (sessions.store.clone(), sessions.files[0].clone());
            sessions.tasks.spawn_blocking(move || artifacts::remove_old(&store, &artifacts));
        }
        sessions.tasks.spawn(foreign::watch_external_writers(
            Arc::downgrade(&sessions),
            sessions.foreign.clone(),
            sessions.shutdown.clone(),
        ));
        Ok(sessions)
    }

    pub(super) fn map(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session if it is open in this process.
    pub fn opened(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.map().get(id).cloned()
    }

    /// Creates a session that this process owns. `session.created` is committed when this returns.
    pub async fn create(&self, cwd: PathBuf, mode: Mode, change: SessionChange) -> Result<Arc<Session>> {
        let id = SessionId::new();
        // Invalid project settings are an error before the session exists.
        self.agents.check(&SessionSetup {
            id: id.clone(),
            cwd: cwd.clone(),
            directories: change.additional_directories.clone().unwrap_or_default(),
        })?;
        self.ensure_capacity().await?;
        let lock = SessionLock::take(&self.locks, &id)?;
        let row = self.store.create_session(&id, &cwd, std::process::id(), now_ms())?;
        let log = self.log.session(&row)?;
        log.commit(None, Body::SessionCreated { cwd, mode: OptionValue::Known(mode), change }).await?;
        Ok(self.insert_owned(log, lock))
    }

    /// Registers a new session that this process owns.
    pub(super) fn insert_owned(&self, log: Arc<SessionLog>, lock: SessionLock) -> Arc<Session> {
        let session = self.session(log, Some(lock));
        self.map().insert(session.log.id.clone(), session.clone());
        session
    }

    /// Runs `work` on the session, opening it first if it is only in the store. For an open
    /// session, `work` runs before the first `.await`. Calls that wait for an opening are served in
    /// order.
    pub async fn with<T>(&self, id: &SessionId, work: impl FnOnce(&Arc<Session>) -> T) -> Result<T> {
        if let Some(session) = self.opened(id) {
            session.used();
            return Ok(work(&session));
        }
        let _opening = self.opening.lock().await;
        if let Some(session) = self.opened(id) {
            return Ok(work(&session));
        }
        let session = self.restore(id, true).await?;
        Ok(work(&session))
    }

    /// Returns the session and takes ownership, unless another process owns it: then it can be read
    /// and followed.
    pub async fn get(&self, id: &SessionId) -> Result<Arc<Session>> {
        let session = self.with(id, Arc::clone).await?;
        if !session.is_owned() {
            ignore_busy(session.own().await)?;
        }
        Ok(session)
    }

    /// Opens the session read-only. Ownership is taken only to end a turn whose owner has died.
    pub async fn look(&self, id: &SessionId) -> Result<Arc<Session>> {
        if let Some(session) = self.opened(id) {
            session.used();
            return Ok(session);
        }
        let _opening = self.opening.lock().await;
        match self.opened(id) {
            Some(session) => Ok(session),
            None => self.restore(id, false).await,
        }
    }

    /// Waits for an opening in progress, then runs `work` on the session if it is open.
    pub async fn if_opening<T>(&self, id: &SessionId, work: impl FnOnce(&Arc<Session>) -> T) -> Option<T> {
        let _opening = self.opening.lock().await;
        self.opened(id).map(|session| work(&session))
    }

    async fn restore(&self, id: &SessionId, own: bool) -> Result<Arc<Session>> {
        let row = self.row(id)?;
        self.ensure_capacity().await?;
        let log = self.log.clone();
        let opened = tokio::task::spawn_blocking(move || log.session(&row)).await;
        let log = opened.map_err(|_| Error::internal("opening a session panicked"))??;
        if log.state(|state| state.deleted) {
            // Complete an interrupted deletion.
            self.remove_files(id).await?;
            self.store.delete_session(log.key)?;
            return Err(Error::not_found(format!("session {id} not found")));
        }
        let session = self.session(log, None);
        // If another process owns the session, it is opened read-only.
        if own {
            ignore_busy(session.own().await)?;
        } else if session.log.state(|state| state.turn.is_some()) {
            ignore_busy(session.close_orphan().await)?;
        }
        let foreign = !session.is_owned();
        self.map().insert(id.clone(), session.clone());
        if foreign {
            // Publish the events that the owner wrote since the log was read, now that the session
            // is in the map.
            let held = session.owner.lock().await;
            let caught_up = session.log.catch_up();
            drop(held);
            self.foreign.notify_one();
            caught_up?;
        }
        Ok(session)
    }

    fn session(&self, log: Arc<SessionLog>, lock: Option<SessionLock>) -> Arc<Session> {
        Arc::new(Session {
            agent: self.agents.open(log.state(|state| SessionSetup {
                id: log.id.clone(),
                cwd: state.cwd.clone(),
                directories: state.additional_directories.clone(),
            })),
            broker: Arc::new(Broker::default()),
            lending: Arc::default(),
            tasks: self.tasks.clone(),
            turn_slots: self.turn_slots.clone(),
            used_ms: AtomicU64::new(now_ms()),
            shutdown: self.shutdown.child_token(),
            gone: CancellationToken::new(),
            store: self.store.clone(),
            locks: self.locks.clone(),
            owned: AtomicBool::new(lock.is_some()),
            owner: tokio::sync::Mutex::new(lock),
            turn_queue: Mutex::default(),
            log,
        })
    }

    /// Returns the sessions that are open in this process.
    pub fn all_open(&self) -> Vec<Arc<Session>> {
        self.map().values().cloned().collect()
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The working directory of a session.
    pub fn cwd(&self, id: &SessionId) -> Result<PathBuf> {
        match self.opened(id) {
            Some(session) => Ok(session.log.state(|state| state.cwd.clone())),
            None => self.row(id).map(|row| row.cwd),
        }
    }

    /// The stored row of a session, or `not_found`.
    pub fn row(&self, id: &SessionId) -> Result<SessionRow> {
        let row = self.store.session(id)?.filter(|row| row.head > 0);
        row.ok_or_else(|| Error::not_found(format!("session {id} not found")))
    }

    /// Returns a page of stored events after `after`, regardless of which process owns the session.
    pub fn events(&self, id: &SessionId, after: Seq) -> Result<Vec<Event>> {
        let row = self.row(id)?;
        self.store.events(id, row.key, after, limits::PAGE_EVENTS, true)
    }

    pub fn list(&self, cwd: Option<&Path>, after: Option<(u64, i64)>) -> Result<SessionPage> {
        self.store.sessions(cwd, after, limits::SESSIONS_PAGE)
    }

    /// Ends the running turn, removes message deltas and releases ownership, even if a step fails.
    /// Does nothing for a session that is not open.
    pub async fn close(&self, id: &SessionId) -> Result<()> {
        let Some(session) = self.opened(id) else { return self.row(id).map(drop) };
        session.drain().await;
        session.agent.close().await;
        let mut closed = Ok(());
        if session.is_owned() {
            self.trim_artifacts(&session).await;
            closed = session.append(Body::SessionClosed {}).await.and_then(|_| session.log.prune().map(drop));
        }
        self.remove_open(&session).await;
        closed
    }

    /// Removes the session from the map and releases ownership.
    pub(super) async fn remove_open(&self, session: &Arc<Session>) {
        {
            let mut map = self.map();
            // The session may have been removed and opened again in the meantime.
            if map.get(&session.log.id).is_some_and(|open| Arc::ptr_eq(open, session)) {
                map.remove(&session.log.id);
            }
        }
        session.release_ownership().await;
        session.gone.cancel();
    }

    /// Deletes a session with its events and files. An unknown session is not an error. Returns
    /// `session_busy` if another process owns the session.
    pub async fn delete(&self, id: &SessionId) -> Result<()> {
        match self.row(id) {
            Err(error) if error.kind == Kind::NotFound => return Ok(()),
            row => row?,
        };
        let session = self.get(id).await?;
        session.own().await?;
        session.drain().await;
        session.agent.close().await;
        let deleted = async {
            session.append(Body::SessionDeleted {}).await?;
            // If this is interrupted, the next opening completes the deletion.
            self.remove_files(id).await?;
            self.store.delete_session(session.log.key)
        };
        let deleted = deleted.await;
        self.remove_open(&session).await;
        deleted
    }

    async fn remove_files(&self, id: &SessionId) -> Result<()> {
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
    pub async fn shut_down(&self) {
        self.shutdown.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        let open: Vec<Arc<Session>> = self.map().drain().map(|(_, session)| session).collect();
        futures_util::future::join_all(open.iter().map(|session| session.agent.close())).await;
        for session in open {
            if session.is_owned() {
                self.trim_artifacts(&session).await;
            }
            session.release_ownership().await;
        }
    }

    /// The artifact directory of a session.
    pub(super) fn artifacts(&self, id: &SessionId) -> PathBuf {
        self.files[0].join(id.as_str())
    }
}

/// Treats `session_busy` as success: the session stays with its owner.
pub(super) fn ignore_busy(owned: Result<()>) -> Result<()> {
    match owned {
        Err(error) if error.kind == Kind::SessionBusy => Ok(()),
        owned => owned,
    }
}
