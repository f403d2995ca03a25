//! A session that is open in this process: its log, agent, ownership and running turn.

pub(super) mod background;
pub(crate) mod decisions;
pub(super) mod other_processes;
pub(crate) mod owned_session;
pub(super) mod ownership;
pub(super) mod run;

use std::ops::Deref;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::other_processes::OtherProcesses;
use self::ownership::Ownership;
use super::attached_clients::AttachedClients;
use super::clock::now_ms;
use super::events::log::SessionLog;
use super::owner::lock;
use super::permissions::broker::Broker;
use super::turn::TurnHandle;
use super::turn::agent::{Agent, AgentOption};
use super::turn::ancestor::Ancestor;
use super::turn::capacity::TurnSlots;
use super::turn::core::SessionCore;
use super::turn::running_children::RunningChildren;
use crate::config::Policy;
use crate::context::commands::SlashCommand;
use crate::error::Result;
use crate::event::Actor;
use crate::id::{MessageId, PermissionId, Seq};
use crate::options::Mode;
use crate::permission::rules::stricter;
use crate::session::permissions::broker::Responder;
use crate::task::TaskTracker;
use crate::toolkit::Spawner;

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
    pub(crate) others: OtherProcesses,
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
    /// The only generation of the session in which the call may add a message.
    pub generation: Option<i64>,
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

    /// Returns the options of the session's agent, if it is a hosted agent that is running.
    pub(crate) fn agent_options(&self) -> Vec<AgentOption> {
        self.agent.options()
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

    /// Waits until the log contains the end of the running turn, in this or another process. A turn
    /// releases its claim before its last event is committed.
    pub(crate) async fn turn_recorded(&self) {
        let mut head = self.log.head.subscribe();
        while self.log.state(|state| state.turn.is_some()) {
            // Cannot fail: the log holds the sender.
            let _ = head.changed().await;
        }
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
        self.ownership.catch_up(until).await
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
