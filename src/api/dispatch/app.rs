//! The application that all transports share: its agents, its sessions and its shutdown.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::call_order::{CallPlace, SessionCalls};
use crate::cluster::Cluster;
use crate::config::{DataPaths, Durability};
use crate::error::{Error, Kind, Result};
use crate::hub::TerminalSessions;
use crate::id::SessionId;
use crate::limits;
use crate::local_socket::ServePeers;
use crate::options::Mode;
use crate::runtime::Services;
use crate::session::{Agents, Capacity, NodeOptions, Sessions};
use crate::store::Store;

/// The environment variable with an older version of the messages between nodes, for tests of
/// updates.
const VERSION_VARIABLE: &str = "NUNCIO_PEER_VERSION";

/// Interval between attempts to open a store that is unavailable.
const STORE_RETRY: Duration = Duration::from_secs(1);

/// The application, shared by all transports. The first call that needs the store opens it.
pub struct App {
    /// Settings, models and tools, which agents and methods share.
    pub services: Arc<Services>,
    /// The agents that can work in sessions.
    pub agents: Arc<dyn Agents>,
    pub places: DataPaths,
    durability: Durability,
    /// The base directory of relative paths, and the working directory of sessions that are created
    /// without a directory.
    pub cwd: PathBuf,
    /// Mode of sessions that are created without a mode.
    pub mode: Mode,
    capacity: Capacity,
    /// True once new turns are refused.
    refusing: AtomicBool,
    /// True if the store could not be read by the last [`App::ready`].
    store_missing: AtomicBool,
    /// When the application was created.
    pub started: std::time::Instant,
    sessions: OnceCell<Arc<Sessions>>,
    /// See [`App::cluster`].
    cluster: std::sync::OnceLock<Option<Arc<Cluster>>>,
    /// The agents in terminals that users started themselves and that report their status.
    pub(crate) terminals: Arc<TerminalSessions>,
    /// Serves the calls of other processes for an application. See [`Peers`].
    ///
    /// [`Peers`]: crate::local_socket::Peers
    serve_peers: fn(Weak<App>) -> ServePeers,
    /// The application itself.
    this: Weak<App>,
    /// See [`App::calls_of`].
    calls: parking_lot::Mutex<HashMap<SessionId, Weak<SessionCalls>>>,
    /// The counter from which the orders of calls take their epochs.
    epochs: Arc<AtomicU64>,
}

impl App {
    /// Creates the application without opening the store. `serve_peers` serves the calls of other
    /// processes.
    pub(crate) fn new(
        services: Arc<Services>,
        agents: Arc<dyn Agents>,
        cwd: PathBuf,
        mode: Mode,
        capacity: Capacity,
        serve_peers: fn(Weak<App>) -> ServePeers,
    ) -> Arc<App> {
        Arc::new_cyclic(|this| App {
            places: services.places.clone(),
            durability: services.user.settings.durability,
            services,
            agents,
            cwd,
            mode,
            capacity,
            refusing: AtomicBool::new(false),
            store_missing: AtomicBool::new(false),
            started: std::time::Instant::now(),
            sessions: OnceCell::new(),
            cluster: std::sync::OnceLock::new(),
            terminals: Arc::default(),
            serve_peers,
            this: this.clone(),
            calls: parking_lot::Mutex::default(),
            epochs: Arc::default(),
        })
    }

    /// Returns the sessions. The first call opens the store.
    pub(crate) async fn sessions(&self) -> Result<&Arc<Sessions>> {
        let open = || async {
            let (data, agents, durability, capacity) =
                (self.places.data.clone(), self.agents.clone(), self.durability, self.capacity);
            let serve = Some((self.serve_peers)(self.this.clone()));
            let database = self.services.user.settings.store.postgres().zip(self.services.launcher.lease().cloned());
            let node = |(url, commands): (&str, _)| Ok(NodeOptions { url: url.into(), commands, cluster: self.cluster(None)? });
            let node = database.map(node).transpose()?;
            Sessions::open_store(&data, node, agents, durability, capacity, serve).boxed().await
        };
        let sessions = self.sessions.get_or_try_init(open).await?;
        if self.refusing.load(Ordering::Acquire) {
            sessions.refuse_turns();
        }
        Ok(sessions)
    }

    /// Opens the store as soon as that is possible. Fails if the URL is invalid.
    pub(crate) fn open_store_later(&self) -> Result<()> {
        self.services.user.settings.store.postgres().map_or(Ok(()), Store::check)?;
        let this = self.this.clone();
        crate::task::spawn(async move {
            while let Some(app) = this.upgrade().filter(|app| !app.refusing.load(Ordering::Acquire)) {
                if app.ready().await.is_ok() {
                    return;
                }
                drop(app);
                tokio::time::sleep(STORE_RETRY).await;
            }
        });
        Ok(())
    }

    /// Returns the place of this process in its cluster. `server` is the HTTP server of this
    /// process, which calls this first: its port and its certificate.
    pub(crate) fn cluster(&self, server: Option<(u16, &[u8])>) -> Result<Option<Arc<Cluster>>> {
        if let Some(cluster) = self.cluster.get() {
            return Ok(cluster.clone());
        }
        let dir = self.places.file.parent().unwrap_or(&self.places.data);
        let version = self.services.environment.get(VERSION_VARIABLE).and_then(|version| version.parse().ok());
        let cluster = Cluster::load(&self.services.user.settings.cluster, dir, server)?;
        Ok(self.cluster.get_or_init(|| cluster.map(|cluster| Arc::new(cluster.with_version(version)))).clone())
    }

    /// Returns the calls of this process to a session that have not ended.
    fn calls_of(&self, session: &SessionId) -> Arc<SessionCalls> {
        let mut sessions = self.calls.lock();
        if let Some(calls) = sessions.get(session).and_then(Weak::upgrade) {
            return calls;
        }
        // Only before the map grows, because this visits all entries.
        if sessions.len() == sessions.capacity() {
            sessions.retain(|_, calls| calls.strong_count() > 0);
        }
        let calls = Arc::new(SessionCalls::new(&self.epochs));
        sessions.insert(session.clone(), Arc::downgrade(&calls));
        calls
    }

    /// Adds a call to a session after the earlier calls of this process.
    pub(crate) fn add_call(&self, session: &SessionId) -> Arc<CallPlace> {
        Arc::new(self.calls_of(session).add_call())
    }

    /// Returns the sessions if the store is already open.
    pub(crate) fn sessions_now(&self) -> Option<&Arc<Sessions>> {
        self.sessions.get()
    }

    /// Makes every session refuse new turns.
    pub(crate) fn refuse_turns(&self) {
        self.refusing.store(true, Ordering::Release);
        if let Some(sessions) = self.sessions.get() {
            sessions.refuse_turns();
        }
    }

    /// Fails if this process accepts no new work. `details.reason` is `draining`, `store` or
    /// `lease`. The error says nothing else, because it is for clients without a token.
    pub(crate) async fn ready(&self) -> Result<()> {
        let unready = |kind, reason: &str| Err(Error::new(kind, "the server is not ready").details(json!({ "reason": reason })));
        if self.refusing.load(Ordering::Acquire) {
            return unready(Kind::Overloaded, "draining");
        }
        if self.sessions.get().is_some_and(|sessions| sessions.lease_has_ended()) {
            return unready(Kind::StoreUnavailable, "lease");
        }
        let read = async { self.sessions().await?.store().last_event().await };
        let why = match tokio::time::timeout(limits::READY, read).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} s", limits::READY.as_secs())),
        };
        // One line for each change, because probes repeat.
        let was_missing = self.store_missing.swap(why.is_some(), Ordering::AcqRel);
        match &why {
            Some(why) if !was_missing => tracing::warn!(why, "the store is unavailable: the server is not ready"),
            None if was_missing => tracing::info!("the store is available: the server is ready"),
            _ => {}
        }
        if why.is_some() { unready(Kind::StoreUnavailable, "store") } else { Ok(()) }
    }

    /// Refuses new work and waits up to `timeout` for the running turns to end, then shuts down.
    pub(crate) async fn drain(&self, timeout: Duration) {
        if let Some(sessions) = self.sessions.get() {
            let _ = tokio::time::timeout(timeout, sessions.drain_turns()).await;
        }
        self.shut_down().await;
    }

    /// Waits for the turns that other processes started here, until `stop` is cancelled. Their
    /// waiting prompts run in those processes. See [`Sessions::leave`].
    pub(crate) async fn leave(&self, stop: &CancellationToken) {
        let Some(sessions) = self.sessions.get() else { return };
        sessions.leave();
        tokio::select! {
            () = sessions.turns_ended() => {}
            () = stop.cancelled() => {}
        }
    }

    /// Lets the turns go on without the client that started them, until none runs, `stop` is
    /// cancelled or the time of the settings has passed.
    pub(crate) async fn finish_turns(&self, stop: &CancellationToken) {
        let Some(sessions) = self.sessions.get() else { return };
        let time = Duration::from_secs(self.services.user.settings.acp.finish_turns_s);
        sessions.leave();
        let ended = async {
            sessions.finish().await;
            sessions.turns_ended().await;
        };
        tokio::select! {
            ended = tokio::time::timeout(time, ended) => {
                if ended.is_err() {
                    tracing::warn!("turns without a client did not end in {} s: they are cancelled", time.as_secs());
                }
            }
            () = stop.cancelled() => {}
        }
    }

    /// Ends all turns and all processes, as [`App::end_turns`] and [`App::end_processes`] do.
    pub(crate) async fn shut_down(&self) {
        self.end_turns().await;
        self.end_processes().await;
    }

    /// Cancels all turns, waits up to [`limits::DRAIN`] for them to end, then disconnects the other
    /// processes.
    pub(crate) async fn end_turns(&self) {
        let Some(sessions) = self.sessions.get() else { return };
        if tokio::time::timeout(limits::DRAIN, sessions.shut_down()).await.is_err() {
            tracing::warn!("cancelled turns did not end in time");
        }
        sessions.peers().close().await;
    }

    /// Stops the requests for lists of models, the language servers, the MCP servers and all
    /// commands, and waits until they have ended. Each kind has its own timeout.
    pub(crate) async fn end_processes(&self) {
        self.services.lists.shut_down().await;
        self.services.servers.shut_down().await;
        #[cfg(feature = "mcp")]
        self.services.mcp.shut_down().await;
        self.services.launcher.shut_down().await;
    }
}
