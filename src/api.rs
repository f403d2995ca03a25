//! The method table: every call that a transport serves, defined once. Transports decode requests
//! into these calls and encode their results and the events of sessions.

mod artifact;
mod attachment;
mod connection;
mod events;
mod files;
mod fork;
mod initialize;
mod message;
mod method;
mod openapi;
mod options;
mod permission;
mod prompt;
mod rest;
mod session;
mod status;
mod table;
mod turn;
mod view;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{OnceCell, oneshot};

pub use connection::{Client, Role};
pub use events::{EventStream, FOLLOW, FOLLOW_DOC, FOLLOW_ROUTES, FollowParams, Shown};
pub use method::{Entry, Follow, Method, Reply, Route};
pub use openapi::{Envelope, ErrorBody, openapi};
pub use options::{SetConfigOption, SetMode, config_options, modes};
pub use permission::{Answer, AnswerParams};
pub use prompt::Prompt;
pub use rest::to_rest;
pub use session::{CloseSession, DeleteSession, ListSessions, NewSession, ResumeSession, timestamp};
pub use table::{METHODS, entry};

use crate::agent::Services;
use crate::config::{Durability, Places};
use crate::error::{Error, Result};
use crate::id::{Seq, SessionId, TurnId};
use crate::limits;
use crate::options::Mode;
use crate::session::{Agents, Capacity, Session, Sessions};
use tokio_util::sync::CancellationToken;

/// The application, shared by all transports. The first call that needs the store opens it.
pub struct Nuncio {
    /// Settings, models and tools, which agents and methods share.
    pub services: Arc<Services>,
    /// The agents that can work in sessions.
    pub agents: Arc<dyn Agents>,
    pub places: Places,
    durability: Durability,
    /// The base of relative paths, and the working directory of sessions that are created without
    /// one.
    pub cwd: PathBuf,
    /// Mode of new sessions.
    pub mode: Mode,
    capacity: Capacity,
    /// No more turns are started.
    refusing: AtomicBool,
    /// When the application was created.
    pub started: std::time::Instant,
    sessions: OnceCell<Arc<Sessions>>,
}

impl Nuncio {
    /// Creates the application with its store closed.
    pub fn new(services: Arc<Services>, agents: Arc<dyn Agents>, cwd: PathBuf, mode: Mode, capacity: Capacity) -> Arc<Nuncio> {
        Arc::new(Nuncio {
            places: services.places.clone(),
            durability: services.user.settings.durability,
            services,
            agents,
            cwd,
            mode,
            capacity,
            refusing: AtomicBool::new(false),
            started: std::time::Instant::now(),
            sessions: OnceCell::new(),
        })
    }

    /// The sessions. The first call opens the store.
    pub async fn sessions(&self) -> Result<&Arc<Sessions>> {
        let open = || async {
            let (data, agents, durability, capacity) =
                (self.places.data.clone(), self.agents.clone(), self.durability, self.capacity);
            let opened = tokio::task::spawn_blocking(move || Sessions::open_store(&data, agents, durability, capacity));
            opened.await.map_err(|_| Error::internal("opening the store panicked"))?
        };
        let sessions = self.sessions.get_or_try_init(open).await?;
        if self.refusing.load(Ordering::Acquire) {
            sessions.refuse_turns();
        }
        Ok(sessions)
    }

    /// The sessions, if the store is open already.
    pub fn sessions_now(&self) -> Option<&Arc<Sessions>> {
        self.sessions.get()
    }

    /// Makes every session refuse new turns.
    pub fn refuse_turns(&self) {
        self.refusing.store(true, Ordering::Release);
        if let Some(sessions) = self.sessions.get() {
            sessions.refuse_turns();
        }
    }

    /// Refuses new work and waits up to `timeout` for the running turns to end, then shuts down.
    pub async fn drain(&self, timeout: Duration) {
        if let Some(sessions) = self.sessions.get() {
            let _ = tokio::time::timeout(timeout, sessions.drain_turns()).await;
        }
        self.shut_down().await;
    }

    /// Cancels all turns, waits up to [`limits::DRAIN`] for them to end, then stops the language
    /// servers.
    pub async fn shut_down(&self) {
        if let Some(sessions) = self.sessions.get()
            && tokio::time::timeout(limits::DRAIN, sessions.shut_down()).await.is_err()
        {
            tracing::warn!("cancelled turns did not end in time");
        }
        self.services.servers.shut_down().await;
    }
}

/// The context of a call: the application, the calling client, and the state of its request.
#[derive(Clone)]
pub struct Cx {
    pub nuncio: Arc<Nuncio>,
    pub client: Arc<Client>,
    /// Cancelled when the client cancels the request or its connection is closed.
    pub cancel: CancellationToken,
    /// Cancelled by the transport of a local client once the answer is in its output buffer.
    pub answered: CancellationToken,
    /// Receives the started turn, for a transport that streams the turn's events while the prompt
    /// call is still running.
    pub began: Option<Arc<Mutex<Option<oneshot::Sender<Began>>>>>,
}

/// A turn that has just started. Its events come after seq `after`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Began {
    pub session: SessionId,
    pub turn: TurnId,
    pub after: Seq,
}

impl Cx {
    /// A context without a receiver of the started turn.
    pub fn new(nuncio: Arc<Nuncio>, client: Arc<Client>, cancel: CancellationToken) -> Cx {
        Cx { nuncio, client, cancel, answered: CancellationToken::new(), began: None }
    }

    /// Checks that session `id` exists and that the caller has access to it. Returns the sessions.
    async fn authorize(&self, id: &SessionId) -> Result<&Arc<Sessions>> {
        let sessions = self.nuncio.sessions().await?;
        self.client.require_session(id, &sessions.cwd(id)?)?;
        Ok(sessions)
    }

    /// Session `id`, owned by this process; read-only if another process owns it.
    async fn session(&self, id: &SessionId) -> Result<Session> {
        self.authorize(id).await?.get(id).await
    }

    /// Session `id`, opened read-only.
    async fn open_read_only(&self, id: &SessionId) -> Result<Session> {
        self.authorize(id).await?.open_read_only(id).await
    }

    /// Checks that the caller has access to an open session.
    fn check_access(&self, session: &Session) -> Result<()> {
        self.client.require_session(&session.log.id, &session.log.state(|state| state.cwd.clone()))
    }

    /// Session `id`, if it is open in this process.
    fn opened(&self, id: &SessionId) -> Option<Session> {
        self.nuncio.sessions_now().and_then(|sessions| sessions.opened(id))
    }

    /// Sends the started turn to the transport, if it waits for it.
    fn report_started(&self, began: Began) {
        let waiting = self.began.as_ref().and_then(|began| began.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(waiting) = waiting {
            let _ = waiting.send(began);
        }
    }
}
