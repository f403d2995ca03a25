//! All sessions: those that are open in this process, and those that are only in the store.

pub(super) mod children;
pub(super) mod close;
pub(super) mod external;
pub(super) mod follow_all;
pub(super) mod fork;
pub(super) mod owners;
pub(super) mod registration;
mod stored;
pub(super) mod takeover;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::agent_setting::AgentSetting;
use super::artifacts;
use super::attached_clients::AttachedClients;
use super::clock::now_ms;
use super::events::log::Log;
use super::events::log::SessionLog;
use super::events::metrics::SessionMetrics;
use super::events::signer::Signer;
use super::open::other_processes::OtherProcesses;
use super::open::owned_session::{OwnedSession, unless_busy};
use super::open::ownership::Ownership;
use super::open::{OpenSession, Session};
use super::owner::claims::{ClaimPurpose, Claims, SessionClaim};
use super::owner::lease::{Lease, NodeOptions};
use super::permissions::broker::Broker;
use super::shared_files::{SESSION_DIRECTORIES, SharedFiles};
use super::turn::agent::{Agents, ExternalTurnStarter, SessionSetup};
use super::turn::ancestor::Ancestor;
use super::turn::capacity::{Capacity, TurnSlots};
use super::turn::core::SessionCore;
use crate::config::Durability;
use crate::context::notes::NoteTag;
use crate::error::{Error, Result};
use crate::event::{Body, SessionChange};
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::local_socket::{PeerAddress, Peers, ServePeers};
use crate::options::{Mode, OptionValue};
use crate::store::Store;
use crate::task::TaskTracker;

/// How long the deletion event of a session is kept for clients that follow all sessions.
const DELETED_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Creates, opens, closes and deletes sessions.
pub struct Sessions {
    pub(super) store: Store,
    pub(super) log: Log,
    pub(super) claims: Arc<Claims>,
    /// This process and the other processes that use the store.
    pub(super) peers: Arc<Peers>,
    /// The directories with a subdirectory per session; that of artifacts is the first one.
    pub(super) files: [PathBuf; 4],
    pub(super) agents: Arc<dyn Agents>,
    open: Mutex<HashMap<SessionId, Arc<OpenSession>>>,
    /// Serializes the opening of sessions.
    opening: tokio::sync::Mutex<()>,
    /// Unused sessions that are being closed. Each token is cancelled at the end.
    pub(super) closing: Mutex<HashMap<SessionId, CancellationToken>>,
    /// Notified when a client follows events that another process may write.
    pub(super) external: Arc<Notify>,
    /// Notified when an open session becomes unused.
    pub(super) unused: Arc<Notify>,
    pub(super) capacity: Capacity,
    pub(super) turn_slots: Arc<TurnSlots>,
    pub(super) tasks: TaskTracker,
    pub(super) shutdown: CancellationToken,
    /// See [`Sessions::leave`].
    pub(super) leaving: CancellationToken,
    /// Permits for subagents that run in this process.
    pub(super) subagents: Arc<Semaphore>,
    /// The value itself.
    pub(super) this: Weak<Sessions>,
}

/// The parts that the session of a subagent shares with its parent sessions. Empty for other
/// sessions.
#[derive(Default)]
pub(super) struct Lineage {
    /// Clients that provide files and terminals.
    pub clients: Arc<AttachedClients>,
    /// The parent sessions, nearest first.
    pub ancestors: Arc<[Ancestor]>,
}

impl Sessions {
    /// Opens the store of sessions in `dir` (`nuncio.db`, `locks/`, `run/`, `artifacts/`,
    /// `attachments/`, `requests/`); with `node`, the events are in its database. `serve` serves
    /// the calls of other processes; without it, this process accepts none.
    pub async fn open_store(
        dir: &Path,
        node: Option<NodeOptions>,
        agents: Arc<dyn Agents>,
        durability: Durability,
        capacity: Capacity,
        serve: Option<ServePeers>,
    ) -> Result<Arc<Sessions>> {
        let store = Store::open(dir, node.as_ref().map(|node| node.url.as_str())).await?;
        if !store.is_read_only()
            && let Err(error) = store.forget_deleted(now_ms().saturating_sub(DELETED_KEPT.as_millis() as u64)).await
        {
            // Another process may lock the store. The next start retries.
            tracing::warn!(%error, "removing deleted sessions failed");
        }
        let cluster = node.as_ref().and_then(|node| node.cluster.as_deref());
        let log =
            Log::open(store.clone(), dir, durability, Signer::open(dir, &store, cluster, agents.directories()).boxed().await?)?;
        let (commands, cluster) = node.map(|node| (node.commands, node.cluster)).unzip();
        let peers = Arc::new(Peers::new(dir, serve, cluster.flatten()));
        let sessions = Arc::new_cyclic(|this| Sessions {
            claims: {
                let lease = commands.map(|commands| Lease::new(store.clone(), peers.clone(), commands));
                Arc::new(Claims::new(dir, peers.clone(), store.clone(), lease.map(Arc::new)))
            },
            log,
            store,
            peers,
            files: SESSION_DIRECTORIES.map(|name| dir.join(name)),
            agents,
            open: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            closing: Mutex::default(),
            external: Arc::default(),
            unused: Arc::default(),
            turn_slots: TurnSlots::new(capacity.turns),
            capacity,
            tasks: TaskTracker::default(),
            shutdown: CancellationToken::new(),
            leaving: CancellationToken::new(),
            subagents: Arc::new(Semaphore::new(limits::SUBAGENTS_MAX)),
            this: this.clone(),
        });
        if !sessions.store.is_read_only() {
            // Only another node can delete a session and leave its attachments and drafts here.
            let checked = if sessions.store.has_nodes() { &sessions.files[..] } else { &sessions.files[..1] };
            let (store, files) = (sessions.store.clone(), checked.to_vec());
            let runtime = Handle::current();
            sessions.tasks.spawn_blocking(move || runtime.block_on(artifacts::remove_old(&store, &files)));
        }
        sessions.watch_external_writers();
        sessions.watch_nodes();
        Ok(sessions)
    }

    /// Locks the map of open sessions. The holder must not wait for anything.
    pub(super) fn map(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<OpenSession>>> {
        self.open.lock()
    }

    /// Returns the session if it is open in this process.
    pub(crate) fn opened(&self, id: &SessionId) -> Option<Session> {
        self.map().get(id).cloned().map(Session::new)
    }

    /// Returns the session if this process owns it.
    pub(crate) fn owned(&self, id: &SessionId) -> Option<OwnedSession> {
        self.opened(id)?.owned().ok()
    }

    /// Creates a session. `session.created` is committed when this function returns.
    pub async fn create(&self, cwd: PathBuf, mode: Mode, change: SessionChange) -> Result<OwnedSession> {
        let directories = change.additional_directories.clone().unwrap_or_default();
        let setup = SessionSetup { id: SessionId::new(), cwd, directories, parent: None, agent: change.agent.clone() };
        // Check the project settings first: if they are invalid, no session is created.
        self.agents.check(&setup, &AgentSetting::changed_by(&change))?;
        self.create_session(setup, mode, change, Lineage::default()).await
    }

    /// Creates a session, as [`Sessions::create`] does. For a subagent, `lineage` contains its
    /// parent sessions.
    pub(super) async fn create_session(
        &self,
        setup: SessionSetup,
        mode: Mode,
        change: SessionChange,
        lineage: Lineage,
    ) -> Result<OwnedSession> {
        self.ensure_capacity().await?;
        let SessionSetup { id, cwd, parent, .. } = setup;
        let claim = self.claims.prepare(&id, ClaimPurpose::Own).await?;
        let row = self.store.create_session(&id, &cwd, now_ms()).await?;
        let log = self.log.session(&row).await?;
        // A hosted agent writes its prompts itself.
        let note_key = change.agent.is_none().then(NoteTag::new_key);
        let mode = OptionValue::Known(mode);
        log.commit(None, Body::SessionCreated { cwd, mode, change, parent, note_key }).await?;
        self.insert_owned(log, claim, lineage)
    }

    /// Registers a new session that this process owns.
    pub(super) fn insert_owned(&self, log: Arc<SessionLog>, mut claim: SessionClaim, lineage: Lineage) -> Result<OwnedSession> {
        claim.taken(log.key, log.generation.load(Ordering::Acquire));
        let session = self.session(log, Some(claim), lineage);
        self.map().insert(session.log.id.clone(), session.open.clone());
        session.owned()
    }

    /// Returns the session and takes ownership of it. If another process owns the session, the
    /// session is returned without ownership: it can be read and followed.
    pub async fn get(&self, id: &SessionId) -> Result<Session> {
        let session = self.open(id, true).await?;
        session.own_unless_busy().await.map(|_| session)
    }

    /// Takes ownership of the session. Returns `None` if another process owns it.
    pub(crate) async fn take(&self, id: &SessionId) -> Result<Option<OwnedSession>> {
        self.open(id, true).await?.own_unless_busy().await
    }

    /// Opens the session read-only, with all committed events. Ownership is taken only to end a
    /// turn whose owner has died.
    pub(crate) async fn open_read_only(&self, id: &SessionId) -> Result<Session> {
        let session = self.open(id, false).await?;
        session.catch_up(Seq::MAX).await.map(|()| session)
    }

    /// Returns the open session, or opens it; with `own`, as its owner if no process owns it.
    async fn open(&self, id: &SessionId, own: bool) -> Result<Session> {
        if let Some(session) = self.opened(id) {
            session.used();
            return Ok(session);
        }
        // Other sessions can be opened in the meantime.
        self.closed_unused(id).await;
        let _opening = self.opening.lock().await;
        match self.opened(id) {
            Some(session) => Ok(session),
            None => self.restore(id, own).boxed().await,
        }
    }

    async fn restore(&self, id: &SessionId, own: bool) -> Result<Session> {
        self.closed_unused(id).await;
        let row = self.row(id).await?;
        self.ensure_capacity().await?;
        let log = self.log.session(&row).await?;
        if log.state(|state| state.deleted) {
            // Complete an interrupted deletion.
            self.remove_files(id).await?;
            self.store.delete_session(log.key).await?;
            return Err(Error::not_found(format!("session {id} not found")));
        }
        let session = self.session(log, None, Lineage::default());
        let was_open = session.log.state(|state| !state.open_children.is_empty());
        let owned = if own { session.own_unless_busy().await? } else { None };
        if !own && session.log.state(|state| state.turn.is_some()) {
            unless_busy(session.close_orphan().await)?;
        }
        if was_open && session.log.state(|state| state.open_children.is_empty()) {
            self.close_orphans_of(id);
        }
        self.map().insert(id.clone(), session.open.clone());
        if owned.is_none() {
            // Publish the events that the owner wrote since the log was read, now that the session
            // is in the map.
            let caught_up = session.catch_up(Seq::MAX).await;
            self.external.notify_one();
            caught_up?;
        }
        Ok(session)
    }

    fn session(&self, log: Arc<SessionLog>, claim: Option<SessionClaim>, lineage: Lineage) -> Session {
        let claims = self.claims.clone();
        let setup = log.state(|state| SessionSetup {
            id: log.id.clone(),
            cwd: state.cwd.clone(),
            directories: state.additional_directories().to_vec(),
            parent: state.parent.as_deref().cloned(),
            agent: state.settings.agent.clone(),
        });
        let (sessions, id) = (self.this.clone(), log.id.clone());
        let start_external: ExternalTurnStarter = Arc::new(move |prompt, by| {
            let session = sessions.upgrade().and_then(|sessions| sessions.opened(&id));
            session.ok_or_else(|| Error::not_found(format!("session {id} is not open")))?.owned()?.start_external_turn(prompt, by)
        });
        Session::new(Arc::new(OpenSession {
            agent: self.agents.open(setup, start_external),
            broker: Arc::new(Broker::default()),
            clients: lineage.clients,
            ancestors: lineage.ancestors,
            children: Arc::default(),
            spawner: self.this.clone(),
            ownership: Ownership::new(log.clone(), claims, claim),
            core: Mutex::new(SessionCore::new(log.id.clone())),
            settled: Notify::new(),
            turn_slots: self.turn_slots.clone(),
            tasks: self.tasks.clone(),
            shutdown: self.shutdown.child_token(),
            leaving: self.leaving.clone(),
            gone: CancellationToken::new(),
            used_ms: AtomicU64::new(now_ms()),
            handles: AtomicUsize::new(0),
            unused: self.unused.clone(),
            others: OtherProcesses::new(self.peers.clone(), self.external.clone()),
            log,
        }))
    }

    /// Returns the sessions that are open in this process.
    pub(crate) fn all_open(&self) -> Vec<Session> {
        self.map().values().cloned().map(Session::new).collect()
    }

    /// Returns the sessions that this process owns.
    pub(crate) fn all_owned(&self) -> Vec<OwnedSession> {
        self.all_open().iter().filter_map(|session| session.owned().ok()).collect()
    }

    /// Returns the address of the other process that owns a session. `None` if this process or no
    /// process owns it.
    pub(crate) async fn other_owner(&self, id: &SessionId) -> Result<Option<PeerAddress>> {
        self.claims.other_owner(id).await
    }

    /// Returns this process and the other processes that use the store.
    pub(crate) fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    /// Returns the number of sessions that are open in this process.
    pub(crate) fn sessions_open(&self) -> usize {
        self.map().len()
    }

    /// Returns the number of turns that run in this process.
    pub(crate) fn turns_running(&self) -> usize {
        self.turn_slots.running()
    }

    /// Metrics of the events that this process wrote.
    pub(crate) fn metrics(&self) -> &SessionMetrics {
        self.log.metrics()
    }

    /// Returns the number of events in the log writer's queue.
    pub(crate) fn log_queue(&self) -> usize {
        self.log.waiting()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the files that the nodes of the store share.
    pub(crate) fn shared_files(&self) -> &SharedFiles {
        &self.log.files
    }
}
