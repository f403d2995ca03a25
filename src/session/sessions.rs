//! All sessions: those that are open here, and those that wait on the disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agent::Agents;
use super::broker::Broker;
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
use crate::store::{SessionPage, SessionRow, Store, Watch};

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
        sessions.tasks.spawn(watch_others(Arc::downgrade(&sessions), sessions.foreign.clone(), sessions.shutdown.clone()));
        Ok(sessions)
    }

    pub(super) fn map(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session, if it is open here.
    pub fn opened(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.map().get(id).cloned().inspect(|session| session.used())
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
            self.store.delete_session(log.key)?;
            let _ = self.remove_files(id).await;
            return Err(Error::not_found(format!("no session {id}")));
        }
        let session = self.session(log, None);
        if own || session.log.state(|state| state.turn.is_some()) {
            // Where its owner lives, it can be read and followed here.
            unless_busy(session.own().await)?;
        }
        let foreign = !session.is_owned();
        self.map().insert(id.clone(), session.clone());
        if foreign {
            // What its owner wrote since it was read; told once it can be found.
            let held = session.owner.lock().await;
            session.log.catch_up()?;
            drop(held);
            self.foreign.notify_one();
        }
        Ok(session)
    }

    fn session(&self, log: Arc<SessionLog>, lock: Option<SessionLock>) -> Arc<Session> {
        Arc::new(Session {
            agent: log.state(|state| self.agents.open(&log.id, state)),
            broker: Arc::new(Broker::default()),
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
        row.ok_or_else(|| Error::not_found(format!("no session {id}")))
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
        let mut closed = Ok(());
        if session.is_owned() {
            closed = session.append(Body::SessionClosed {}).await.and_then(|_| session.log.prune().map(drop));
        }
        self.let_go(&session).await;
        closed
    }

    async fn let_go(&self, session: &Session) {
        self.map().remove(&session.log.id);
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
        let deleted = match session.append(Body::SessionDeleted {}).await {
            Ok(_) => self.store.delete_session(session.log.key),
            Err(error) => Err(error),
        };
        self.let_go(&session).await;
        deleted?;
        self.remove_files(id).await
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
        for session in open {
            session.disown().await;
        }
    }
}

fn unless_busy(owned: Result<()>) -> Result<()> {
    match owned {
        Err(error) if error.kind == Kind::SessionBusy => Ok(()),
        owned => owned,
    }
}

/// While a session of another process is open here, or all are followed, looks for what that one wrote.
async fn watch_others(sessions: Weak<Sessions>, opened: Arc<Notify>, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = opened.notified() => {}
        }
        let Some(watch) = sessions.upgrade().map(|sessions| sessions.store.watch()) else { return };
        match watch {
            Ok(watch) => follow_others(&sessions, watch, &shutdown).await,
            Err(error) => tracing::warn!(error = %error, "following another process's session"),
        }
    }
}

/// Returns when no session of another process is open any more, and nobody follows all of them.
async fn follow_others(sessions: &Weak<Sessions>, watch: Watch, shutdown: &CancellationToken) {
    let mut seen = None;
    for round in 0_u64.. {
        if shutdown.is_cancelled() {
            return;
        }
        let Some(open) = sessions.upgrade().map(|sessions| sessions.all_open()) else { return };
        let version = Some(watch.version());
        let news = version != seen;
        seen = version;
        let mut orphans = Vec::new();
        let mut foreign = false;
        if let Some(sessions) = sessions.upgrade() {
            let commits = sessions.log.commits();
            foreign = commits.receiver_count() > 0;
            if news && foreign {
                commits.send_modify(|count| *count += 1);
            }
        }
        for session in open {
            // Held while it catches up: whoever takes the session meanwhile, and then writes to its log, waits.
            match session.owner.try_lock() {
                Ok(owner) if owner.is_some() => continue,
                Ok(_nobody) => {
                    if news && let Err(error) = session.log.catch_up() {
                        tracing::warn!(session = %session.log.id, error = %error, "following another process's session");
                    }
                    if round % limits::FOREIGN_ORPHANS == 0 && session.log.state(|state| state.turn.is_some()) {
                        orphans.push(session.clone());
                    }
                }
                // Somebody just tries to take it: it is looked at again.
                Err(_) => seen = None,
            }
            foreign = true;
        }
        for session in orphans {
            // Where its owner is gone, what that one left open is closed.
            if let Err(error) = unless_busy(session.own().await) {
                tracing::warn!(session = %session.log.id, error = %error, "closing what another process left");
            }
        }
        if !foreign {
            return;
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(limits::FOREIGN_POLL) => {}
        }
    }
}
