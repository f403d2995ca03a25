//! All sessions: those that are open here, and those that wait on the disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agent::Agents;
use super::artifacts;
use super::broker::Broker;
use super::foreign;
use super::lock::SessionLock;
use super::log::{Log, SessionLog};
use super::now_ms;
use super::open::Session;
use super::room::{Room, Running};
use super::state::SessionState;
use crate::config::Durability;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event, SessionChange};
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::store::{SessionPage, SessionRow, Store};

pub struct Sessions {
    pub(super) store: Arc<Store>,
    pub(super) log: Log,
    pub(super) locks: PathBuf,
    /// Artifacts and attachments: a directory for each session in each.
    files: [PathBuf; 2],
    pub(super) agents: Arc<dyn Agents>,
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// Taken in the order of the calls by whoever needs a session that may not be open yet.
    opening: tokio::sync::Mutex<()>,
    /// Told when somebody follows what another process may write.
    pub(super) foreign: Arc<Notify>,
    pub(super) room: Room,
    pub(super) running: Arc<Running>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Sessions {
    /// Sessions kept in `dir` (`nuncio.db`, `locks/`, `artifacts/`, `attachments/`).
    pub fn open_store(dir: &Path, agents: Arc<dyn Agents>, durability: Durability, room: Room) -> Result<Arc<Sessions>> {
        let store = Arc::new(Store::open(dir)?);
        if !store.is_read_only()
            && let Err(error) = store.forget_deleted(now_ms().saturating_sub(limits::DELETED_KEPT.as_millis() as u64))
        {
            // Another process may lock the store; the next start tries again.
            tracing::warn!(%error, "deleted sessions are still there");
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
            running: Running::new(room.turns),
            room,
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
        });
        if !sessions.store.is_read_only() {
            let (store, artifacts) = (sessions.store.clone(), sessions.files[0].clone());
            sessions.tasks.spawn_blocking(move || artifacts::remove_old(&store, &artifacts));
        }
        sessions.tasks.spawn(foreign::watch_others(Arc::downgrade(&sessions), sessions.foreign.clone(), sessions.shutdown.clone()));
        Ok(sessions)
    }

    pub(super) fn map(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session, if it is open here.
    pub fn opened(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.map().get(id).cloned()
    }

    /// A new session, owned by this process. `session.created` is committed when this returns.
    pub async fn create(&self, cwd: PathBuf, mode: String, change: SessionChange) -> Result<Arc<Session>> {
        let id = SessionId::new();
        // Settings of the project that cannot be read make no session.
        let state = SessionState { cwd: cwd.clone(), mode: mode.clone(), ..SessionState::default() };
        self.agents.check(&state)?;
        self.make_room().await?;
        let lock = SessionLock::take(&self.locks, &id)?;
        let row = self.store.create_session(&id, &cwd, std::process::id(), now_ms())?;
        let log = self.log.session(&row)?;
        log.commit(None, Body::SessionCreated { cwd, mode, change }).await?;
        Ok(self.opened_anew(log, lock))
    }

    /// A session that was just made, and belongs to this process.
    pub(super) fn opened_anew(&self, log: Arc<SessionLog>, lock: SessionLock) -> Arc<Session> {
        let session = self.session(log, Some(lock));
        self.map().insert(session.log.id.clone(), session.clone());
        session
    }

    /// Runs `work` on the session, opening it first if it is only on the disk. For a session that is open, `work` runs before the first
    /// `.await`; calls that meet one that is being opened are served in their order.
    pub async fn with<T>(&self, id: &SessionId, work: impl FnOnce(&Arc<Session>) -> T) -> Result<T> {
        if let Some(session) = self.opened(id) {
            session.used();
            return Ok(work(&session));
        }
        let _turn = self.opening.lock().await;
        if let Some(session) = self.opened(id) {
            return Ok(work(&session));
        }
        let session = self.restore(id, true).await?;
        Ok(work(&session))
    }

    /// The same, for whoever needs just the session. One that another process owns can be read and followed.
    pub async fn get(&self, id: &SessionId) -> Result<Arc<Session>> {
        let session = self.with(id, Arc::clone).await?;
        if !session.is_owned() {
            unless_busy(session.own().await)?;
        }
        Ok(session)
    }

    /// For whoever only reads: the session is not taken, unless its owner died in the midst of a turn, which is then closed.
    pub async fn look(&self, id: &SessionId) -> Result<Arc<Session>> {
        if let Some(session) = self.opened(id) {
            session.used();
            return Ok(session);
        }
        let _turn = self.opening.lock().await;
        match self.opened(id) {
            Some(session) => Ok(session),
            None => self.restore(id, false).await,
        }
    }

    /// Runs `work` on the session if it is open, once whoever opens one now is through.
    pub async fn if_opening<T>(&self, id: &SessionId, work: impl FnOnce(&Arc<Session>) -> T) -> Option<T> {
        let _turn = self.opening.lock().await;
        self.opened(id).map(|session| work(&session))
    }

    async fn restore(&self, id: &SessionId, own: bool) -> Result<Arc<Session>> {
        let row = self.row(id)?;
        self.make_room().await?;
        let log = self.log.clone();
        let opened = tokio::task::spawn_blocking(move || log.session(&row)).await;
        let log = opened.map_err(|_| Error::internal("opening a session panicked"))??;
        if log.state(|state| state.deleted) {
            // Its deletion was cut short.
            self.remove_files(id).await?;
            self.store.delete_session(log.key)?;
            return Err(Error::not_found(format!("session {id} not found")));
        }
        let session = self.session(log, None);
        // Where its owner lives, it can be read and followed here.
        if own {
            unless_busy(session.own().await)?;
        } else if session.log.state(|state| state.turn.is_some()) {
            unless_busy(session.close_orphan().await)?;
        }
        let foreign = !session.is_owned();
        self.map().insert(id.clone(), session.clone());
        if foreign {
            // What its owner wrote since it was read; told once it can be found.
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
            agent: log.state(|state| self.agents.open(&log.id, state)),
            broker: Arc::new(Broker::default()),
            lending: Arc::default(),
            tasks: self.tasks.clone(),
            running: self.running.clone(),
            used_ms: AtomicU64::new(now_ms()),
            shutdown: self.shutdown.child_token(),
            gone: CancellationToken::new(),
            store: self.store.clone(),
            locks: self.locks.clone(),
            owned: AtomicBool::new(lock.is_some()),
            owner: tokio::sync::Mutex::new(lock),
            slot: Mutex::default(),
            log,
        })
    }

    /// Those that are open here.
    pub fn all_open(&self) -> Vec<Arc<Session>> {
        self.map().values().cloned().collect()
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Where a session works.
    pub fn cwd(&self, id: &SessionId) -> Result<PathBuf> {
        match self.opened(id) {
            Some(session) => Ok(session.log.state(|state| state.cwd.clone())),
            None => self.row(id).map(|row| row.cwd),
        }
    }

    pub fn row(&self, id: &SessionId) -> Result<SessionRow> {
        let row = self.store.session(id)?.filter(|row| row.head > 0);
        row.ok_or_else(|| Error::not_found(format!("session {id} not found")))
    }

    /// A page of what is on the disk after `after`, whoever owns the session.
    pub fn events(&self, id: &SessionId, after: Seq) -> Result<Vec<Event>> {
        let row = self.row(id)?;
        self.store.events(id, row.key, after, limits::PAGE_EVENTS, true)
    }

    pub fn list(&self, cwd: Option<&Path>, after: Option<(u64, i64)>) -> Result<SessionPage> {
        self.store.sessions(cwd, after, limits::SESSIONS_PAGE)
    }

    /// Ends its turn, forgets what only streaming needed, and gives it up, whatever else fails. One that is not open is closed already.
    pub async fn close(&self, id: &SessionId) -> Result<()> {
        let Some(session) = self.opened(id) else { return self.row(id).map(drop) };
        session.wind_up().await;
        session.agent.close().await;
        let mut closed = Ok(());
        if session.is_owned() {
            self.trim_artifacts(&session).await;
            closed = session.append(Body::SessionClosed {}).await.and_then(|_| session.log.prune().map(drop));
        }
        self.let_go(&session).await;
        closed
    }

    pub(super) async fn let_go(&self, session: &Arc<Session>) {
        {
            let mut map = self.map();
            // Somebody may have let it go before, and opened it anew.
            if map.get(&session.log.id).is_some_and(|open| Arc::ptr_eq(open, session)) {
                map.remove(&session.log.id);
            }
        }
        session.disown().await;
        session.gone.cancel();
    }

    /// Removes a session with its events and its files. An unknown one is no error; one that another process owns is `session_busy`.
    pub async fn delete(&self, id: &SessionId) -> Result<()> {
        match self.row(id) {
            Err(error) if error.kind == Kind::NotFound => return Ok(()),
            row => row?,
        };
        let session = self.get(id).await?;
        session.own().await?;
        session.wind_up().await;
        session.agent.close().await;
        let deleted = async {
            session.append(Body::SessionDeleted {}).await?;
            // Cut short here, the next who opens it goes on.
            self.remove_files(id).await?;
            self.store.delete_session(session.log.key)
        };
        let deleted = deleted.await;
        self.let_go(&session).await;
        deleted
    }

    async fn remove_files(&self, id: &SessionId) -> Result<()> {
        for files in &self.files {
            match tokio::fs::remove_dir_all(files.join(id.as_str())).await {
                // Most sessions leave none.
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("removing files", error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Cancels all turns and waits for their ends.
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
            session.disown().await;
        }
    }

    /// Where the artifacts of a session are.
    pub(super) fn artifacts(&self, id: &SessionId) -> PathBuf {
        self.files[0].join(id.as_str())
    }
}

pub(super) fn unless_busy(owned: Result<()>) -> Result<()> {
    match owned {
        Err(error) if error.kind == Kind::SessionBusy => Ok(()),
        owned => owned,
    }
}
