//! The method table: every call that any door takes, each once. Doors translate bytes into these calls and events into bytes.

mod connection;
mod initialize;
mod method;
mod options;
mod prompt;
mod session;
mod table;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::OnceCell;

pub use connection::Client;
pub use method::{Entry, Follow, Method, Reply};
pub use options::{config_options, modes};
pub use prompt::Prompt;
pub use session::{NewSession, timestamp};
pub use table::{METHODS, entry};

use crate::agent::NativeAgents;
use crate::config::{Durability, Places};
use crate::error::{Error, Result};
use crate::limits;
use crate::session::Sessions;
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
    sessions: OnceCell<Arc<Sessions>>,
}

impl Nuncio {
    pub fn new(agents: NativeAgents, cwd: PathBuf, mode: String) -> Arc<Nuncio> {
        Arc::new(Nuncio {
            places: agents.places.clone(),
            durability: agents.user.settings.durability,
            agents: Arc::new(agents),
            cwd,
            mode,
            sessions: OnceCell::new(),
        })
    }

    /// All sessions; opens the store when it is called first.
    pub async fn sessions(&self) -> Result<&Arc<Sessions>> {
        let open = || async {
            let (data, agents, durability) = (self.places.data.clone(), self.agents.clone(), self.durability);
            let opened = tokio::task::spawn_blocking(move || Sessions::open_store(&data, Arc::new(agents), durability));
            opened.await.map_err(|_| Error::internal("opening the store panicked"))?
        };
        self.sessions.get_or_try_init(open).await
    }

    /// The sessions, if the store is open already.
    pub fn sessions_now(&self) -> Option<&Arc<Sessions>> {
        self.sessions.get()
    }

    /// Cancels all turns and waits for their ends, within a bound.
    pub async fn shut_down(&self) {
        let Some(sessions) = self.sessions.get() else { return };
        if tokio::time::timeout(limits::DRAIN, sessions.shut_down()).await.is_err() {
            tracing::warn!("turns did not end in time");
        }
    }
}

/// What a call may use: the house, whoever calls, and whether they still want the answer.
#[derive(Clone)]
pub struct Cx {
    pub nuncio: Arc<Nuncio>,
    pub client: Arc<Client>,
    /// The request was cancelled, or its connection is gone.
    pub cancel: CancellationToken,
}
