//! The method table: every call that any door takes, each once. Doors translate bytes into these calls and events into bytes.

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
pub use options::{config_options, modes};
pub use prompt::Prompt;
pub use rest::to_rest;
pub use session::{NewSession, timestamp};
pub use table::{METHODS, entry};

use crate::agent::NativeAgents;
use crate::config::{Durability, Places};
use crate::error::{Error, Result};
use crate::id::{Seq, SessionId, TurnId};
use crate::limits;
use crate::session::{Room, Session, Sessions};
use tokio_util::sync::CancellationToken;

/// The opened house, shared by all doors. The store is opened by the first call that needs it.
pub struct Nuncio {
    pub agents: Arc<NativeAgents>,
    pub places: Places,
    durability: Durability,
    /// Directory that relative things of this process are relative to.
    pub cwd: PathBuf,
    /// Mode of new sessions.
    pub mode: String,
    room: Room,
    /// No turn begins any more.
    refusing: AtomicBool,
    /// When this process began to serve.
    pub started: std::time::Instant,
    sessions: OnceCell<Arc<Sessions>>,
}

impl Nuncio {
    pub fn new(agents: NativeAgents, cwd: PathBuf, mode: String, room: Room) -> Arc<Nuncio> {
        Arc::new(Nuncio {
            places: agents.places.clone(),
            durability: agents.user.settings.durability,
            agents: Arc::new(agents),
            cwd,
            mode,
            room,
            refusing: AtomicBool::new(false),
            started: std::time::Instant::now(),
            sessions: OnceCell::new(),
        })
    }

    /// All sessions; opens the store when it is called first.
    pub async fn sessions(&self) -> Result<&Arc<Sessions>> {
        let open = || async {
            let (data, agents, durability, room) = (self.places.data.clone(), self.agents.clone(), self.durability, self.room);
            let opened = tokio::task::spawn_blocking(move || Sessions::open_store(&data, Arc::new(agents), durability, room));
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

    /// Lets no turn begin any more.
    pub fn refuse_turns(&self) {
        self.refusing.store(true, Ordering::Release);
        if let Some(sessions) = self.sessions.get() {
            sessions.refuse_turns();
        }
    }

    /// Lets nothing new begin and running turns come to their ends, for so long; then cancels them.
    pub async fn drain(&self, patience: Duration) {
        if let Some(sessions) = self.sessions.get() {
            let _ = tokio::time::timeout(patience, sessions.wind_down()).await;
        }
        self.shut_down().await;
    }

    /// Cancels all turns and waits for their ends, within a bound; then ends what sessions shared.
    pub async fn shut_down(&self) {
        if let Some(sessions) = self.sessions.get()
            && tokio::time::timeout(limits::DRAIN, sessions.shut_down()).await.is_err()
        {
            tracing::warn!("turns did not end in time");
        }
        self.agents.servers.shut_down().await;
    }
}

/// What a call may use: the house, whoever calls, and whether they still want the answer.
#[derive(Clone)]
pub struct Cx {
    pub nuncio: Arc<Nuncio>,
    pub client: Arc<Client>,
    /// The request was cancelled, or its connection is gone.
    pub cancel: CancellationToken,
    /// Cancelled by the transport of a local client once the answer is on its way.
    pub answered: CancellationToken,
    /// For a door that shows a turn while its prompt still waits for the end.
    pub began: Option<Arc<Mutex<Option<oneshot::Sender<Began>>>>>,
}

/// A turn that has just been started; its events come after `after`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Began {
    pub session: SessionId,
    pub turn: TurnId,
    pub after: Seq,
}

impl Cx {
    pub fn new(nuncio: Arc<Nuncio>, client: Arc<Client>, cancel: CancellationToken) -> Cx {
        Cx { nuncio, client, cancel, answered: CancellationToken::new(), began: None }
    }

    /// All sessions, for a call that names one which is there and the caller's business.
    async fn entered(&self, id: &SessionId) -> Result<&Arc<Sessions>> {
        let sessions = self.nuncio.sessions().await?;
        self.client.must_see(id, &sessions.cwd(id)?)?;
        Ok(sessions)
    }

    /// The session that a call names, opened for work in it.
    async fn session(&self, id: &SessionId) -> Result<Arc<Session>> {
        self.entered(id).await?.get(id).await
    }

    /// The same for whoever only reads.
    async fn look(&self, id: &SessionId) -> Result<Arc<Session>> {
        self.entered(id).await?.look(id).await
    }

    /// Whether the caller may do with an open session what it asks for.
    fn sees(&self, session: &Session) -> Result<()> {
        self.client.must_see(&session.log.id, &session.log.state(|state| state.cwd.clone()))
    }

    /// The same, where it is open already.
    fn opened(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.nuncio.sessions_now().and_then(|sessions| sessions.opened(id))
    }

    fn begins(&self, began: Began) {
        let waiting = self.began.as_ref().and_then(|began| began.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(waiting) = waiting {
            let _ = waiting.send(began);
        }
    }
}
