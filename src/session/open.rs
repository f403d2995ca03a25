//! A session that is open in this process: its log, agent, ownership and running turn.

pub(super) mod background;
pub(crate) mod decisions;
pub(super) mod ownership;
pub(super) mod owning;
pub(super) mod run;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::ownership::Ownership;
use super::attached_clients::AttachedClients;
use super::clock::now_ms;
use super::events::log::SessionLog;
use super::owner::lock;
use super::permissions::broker::Broker;
use super::turn::TurnHandle;
use super::turn::agent::{Agent, AgentOption, CommandRequest, CommandResult};
use super::turn::ancestor::Ancestor;
use super::turn::capacity::TurnSlots;
use super::turn::core::SessionCore;
use super::turn::running_children::RunningChildren;
use crate::config::{McpServer, Policy};
use crate::context::commands::SlashCommand;
use crate::error::{Kind, Result};
use crate::event::{Actor, Body};
use crate::id::{MessageId, PermissionId, Seq};
use crate::local_socket::{PeerConnection, Peers};
use crate::options::Mode;
use crate::permission::rules::stricter;
use crate::session::permissions::broker::Responder;
use crate::task::TaskTracker;
use crate::toolkit::Spawner;

/// Pause between two attempts to resume a session after its events were lost.
const STORE_RECOVERY: Duration = Duration::from_millis(500);

/// The registration of this process, whose clients can answer permission requests, with the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Registration {
    #[default]
    Unknown,
    /// The request was sent, and the owner has not answered.
    Requested,
    Registered,
}

/// A session that is open in this process. Another process may own the session.
pub struct OpenSession {
    pub log: Arc<SessionLog>,
    pub broker: Arc<Broker>,
    /// Clients that provide files and terminals.
    pub clients: Arc<AttachedClients>,
    pub(super) agent: Arc<dyn Agent>,
    /// The parent sessions of a running subagent, nearest first.
    pub(super) ancestors: Arc<[Ancestor]>,
    /// The running subagents of the session.
    pub(super) children: Arc<RunningChildren>,
    pub(super) spawner: Weak<dyn Spawner>,
    pub(super) ownership: Ownership,
    pub(super) core: Mutex<SessionCore>,
    /// Notified when a turn starts, when none follows, and when the session closes.
    pub(super) settled: Notify,
    pub(super) turn_slots: Arc<TurnSlots>,
    pub(super) tasks: TaskTracker,
    pub(super) shutdown: CancellationToken,
    /// Cancelled when this process is about to end (`Sessions::leave`).
    pub(super) leaving: CancellationToken,
    /// Cancelled when the session is no longer open. Followers continue with the next opening of
    /// the session.
    pub(super) gone: CancellationToken,
    /// Time of the last request for the session, in milliseconds since the Unix epoch.
    pub(super) used_ms: AtomicU64,
    /// The number of [`Session`] handles.
    pub(super) handles: AtomicUsize,
    /// Notified when the last handle is dropped.
    pub(super) unused: Arc<Notify>,
    /// Notified when another process has taken the session, so that this process reads its events.
    pub(super) external: Arc<Notify>,
    /// The connection to the process that owned the session last.
    pub(super) owner: Mutex<Option<Arc<PeerConnection>>>,
    pub(super) peers: Arc<Peers>,
    /// Registration with the owner, another process.
    pub(super) registration: watch::Sender<Registration>,
    /// Until this time, permission requests wait for clients of other processes that can answer.
    pub(super) responders_wait_until: Mutex<Option<Instant>>,
}

/// A handle to an open session, and an RAII guard: the session stays open while a handle exists,
/// unless it is closed on request. A session without handles may be closed to free capacity. The
/// first handle is created while the map of open sessions is locked, and further handles are
/// clones. So while the map is locked, a session without handles cannot gain one from another task.
pub struct Session {
    pub(super) open: Arc<OpenSession>,
    /// The call that uses the handle, if another process forwarded it or if it is repeated.
    pub(super) call: Option<RemoteCall>,
}

/// A call of another process, which can be repeated after the process that ran it has died.
#[derive(Clone, Debug)]
pub(crate) struct RemoteCall {
    pub id: MessageId,
    /// The last event before the first attempt of a repeated call.
    pub repeated_after: Option<Seq>,
}

impl Session {
    /// Creates a handle. The first handle must be created while the map of open sessions is locked.
    pub(super) fn new(open: Arc<OpenSession>) -> Session {
        open.handles.fetch_add(1, Ordering::Relaxed);
        Session { open, call: None }
    }

    /// Returns the handle for a call. The event that the call appends is recorded with the call, so
    /// that the call changes the session once, however often it is repeated.
    pub(crate) fn for_call(mut self, call: Option<RemoteCall>) -> Session {
        self.call = call;
        self
    }

    /// Returns whether both are handles of the same opening of a session.
    pub(crate) fn is_same(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.open, &other.open)
    }

    /// Recovers from a lost append: acquires ownership again, at once or when the store is
    /// writable. That also ends the turn and the tool calls that were left open, so that no client
    /// waits for their end in vain.
    pub(super) fn recover(&self) {
        let session = self.clone();
        self.tasks.spawn(async move {
            while session.log.failed().is_some() {
                // A running turn closes itself, which starts the next recovery.
                if session.turn().is_none()
                    && let Err(error) = session.own().await
                    && matches!(error.kind, Kind::SessionBusy | Kind::NotFound)
                {
                    // Another process took the session or deleted it.
                    return session.external.notify_one();
                }
                tokio::select! {
                    () = session.shutdown.cancelled() => return,
                    () = session.gone.cancelled() => return,
                    () = tokio::time::sleep(STORE_RECOVERY) => {}
                }
            }
        });
    }
}

impl Session {
    /// Replaces the MCP servers that the client gave. An empty set changes nothing, because clients
    /// without servers also send it.
    pub(crate) fn set_mcp_servers(&self, servers: BTreeMap<String, McpServer>) {
        if !servers.is_empty() {
            self.agent.set_mcp_servers(servers);
        }
    }

    /// Returns the options of the session's agent, if it is a hosted agent that is running.
    pub(crate) fn agent_options(&self) -> Vec<AgentOption> {
        self.agent.options()
    }

    /// Runs a command line of the session's hosted agent as a call of the running turn.
    pub(crate) async fn execute(&self, command: CommandRequest) -> Result<CommandResult> {
        self.agent.execute(command).await
    }

    /// Returns the strictest of the modes of the session and its parent sessions.
    pub(crate) fn mode(&self) -> Mode {
        let own = |log: &SessionLog| log.state(|state| state.mode.known().unwrap_or_default());
        self.ancestors.iter().fold(own(&self.log), |mode, above| stricter(mode, own(&above.log), Policy::Ask))
    }

    /// Returns the slash commands of the session. Unless `check` is set, changes of files since the
    /// last check are ignored.
    pub(crate) async fn commands(&self, check: bool) -> Arc<[SlashCommand]> {
        let cwd = self.log.state(|state| state.cwd.clone());
        self.agent.commands(&cwd, check).await
    }

    /// Counts a client as able to answer permission requests until no turn runs.
    pub(crate) fn respond_until_idle(&self) {
        let (responder, session) = (self.broker.register_responder(Responder::Program), self.clone());
        self.tasks.spawn(async move {
            while let Some(mut turn) = session.next_turn().await {
                turn.end().await;
            }
            drop(responder);
        });
    }
}

impl Clone for Session {
    fn clone(&self) -> Session {
        Session::new(self.open.clone()).for_call(self.call.clone())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.unused.notify_waiters();
        }
    }
}

impl Deref for Session {
    type Target = OpenSession;

    fn deref(&self) -> &OpenSession {
        &self.open
    }
}

impl OpenSession {
    /// Locks the core. The holder must not wait for anything.
    pub(super) fn core(&self) -> MutexGuard<'_, SessionCore> {
        self.core.lock()
    }

    /// Returns an error unless this process owns the session. While the core is locked, the session
    /// is not released.
    pub(super) fn check_owned(&self) -> Result<()> {
        if self.is_owned() { Ok(()) } else { Err(lock::busy(&self.log.id, None)) }
    }

    /// Returns the turn that runs in this process, if any.
    pub(crate) fn turn(&self) -> Option<TurnHandle> {
        self.core().running().cloned()
    }

    /// Returns whether a turn runs in this process or is about to start.
    pub(crate) fn is_busy(&self) -> bool {
        !self.core().is_idle()
    }

    /// Returns the turn that runs in this process. If a turn is about to start, waits for it.
    /// `None` if the session is idle.
    pub(crate) async fn next_turn(&self) -> Option<TurnHandle> {
        loop {
            let mut changed = pin!(self.settled.notified());
            // From here on, no notification is missed.
            changed.as_mut().enable();
            {
                let core = self.core();
                if core.running().is_some() || core.is_idle() || core.is_closing() {
                    return core.running().cloned();
                }
            }
            changed.await;
        }
    }

    pub(crate) fn agent(&self) -> &dyn Agent {
        &*self.agent
    }

    /// Cancels the running turn, if any, the waiting prompts and the running subagents.
    pub(crate) fn cancel(&self) {
        self.core().cancel();
        self.settled.notify_waiters();
        self.children.cancel();
    }

    /// Removes the waiting prompts of a client, which has disconnected.
    pub(crate) fn remove_prompts_of(&self, client: &Actor) {
        drop(self.core().remove_prompts(|prompt| prompt.request.by == *client));
        self.settled.notify_waiters();
    }

    /// Returns whether this process owns the session.
    pub fn is_owned(&self) -> bool {
        self.ownership.is_held()
    }

    /// Returns whether a permission request can still be answered.
    pub(crate) fn is_waiting_for(&self, id: &PermissionId) -> bool {
        match self.is_owned() {
            true => self.broker.is_open(id),
            false => self.log.state(|state| state.open_permissions.iter().any(|open| open.has_id(id))),
        }
    }

    /// Returns whether this process is shutting down.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutdown.is_cancelled()
    }

    /// Returns whether the work of other processes runs there instead of here: this process is
    /// about to end, and either none of its own work remains in the session or it starts no turns.
    pub(super) fn hands_over(&self) -> bool {
        self.leaving.is_cancelled() && (self.turn_slots.is_closed() || !self.has_background_work())
    }

    /// Returns whether work of the agent or subagents continues after the turn that started it.
    pub(super) fn has_background_work(&self) -> bool {
        self.agent.has_background_work() || self.children.any()
    }

    /// Reads the events that another owner committed, at least up to `until` if there are as many.
    pub(crate) async fn catch_up(&self, until: Seq) -> Result<()> {
        if self.is_owned() || self.log.head() >= until { Ok(()) } else { self.ownership.catch_up(until).await }
    }

    /// Returns the connection to the owner, if one is open.
    pub(crate) fn owner_connection(&self) -> Option<Arc<PeerConnection>> {
        let owner = self.owner.lock();
        owner.clone().filter(|connection| !connection.is_closed())
    }

    pub(crate) fn has_owner_connection(&self) -> bool {
        self.owner_connection().is_some()
    }

    /// Sets the connection to the owner; `None` if the process at the other end is not the owner.
    pub(crate) fn set_owner_connection(&self, connection: Option<Arc<PeerConnection>>) {
        *self.owner.lock() = connection;
    }

    /// Returns the time until which permission requests wait for clients of other processes. Set
    /// when this process takes the session while other processes run; `None` once the time has
    /// passed.
    pub(super) fn responders_wait_until(&self) -> Option<Instant> {
        let due = *self.responders_wait_until.lock();
        due.filter(|due| *due > Instant::now())
    }

    /// Records the time of a request for the session.
    pub(super) fn used(&self) {
        self.used_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// Returns the time of the last request, in milliseconds since the Unix epoch.
    pub(super) fn used_ms(&self) -> u64 {
        self.used_ms.load(Ordering::Relaxed)
    }

    /// Returns whether the session has no handle and no background work, and its last use was
    /// before `before_ms`. Valid only while the map of open sessions is locked.
    pub(super) fn is_unused(&self, before_ms: u64) -> bool {
        self.handles.load(Ordering::Acquire) == 0 && self.used_ms() < before_ms && !self.agent.has_background_work()
    }

    /// Waits until the session is no longer open.
    pub(crate) async fn closed(&self) {
        self.gone.cancelled().await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Appends an event outside of a turn. Returns its seq once it is committed.
    pub(super) async fn append(&self, body: Body) -> Result<Seq> {
        self.own().await?;
        self.log.commit(None, body).await
    }

    /// Refuses new turns, cancels the running turn, the waiting prompts and the subagents, and
    /// waits until they have ended.
    pub(super) async fn drain(&self) {
        let turn = self.core().close();
        self.settled.notify_waiters();
        if let Some(mut turn) = turn {
            turn.cancel();
            turn.end().await;
        }
        self.children.cancel();
        self.children.ended().await;
    }
}
