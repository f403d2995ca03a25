//! The rows that the store keeps, and the types of its functions. They are the same for all
//! databases.

use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::{Body, Event, QueuedMessage};
use crate::id::{MessageId, Seq, SessionId, TurnId};

/// The metadata of a session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SessionRow {
    /// The number of the row, which the rows of events contain.
    pub key: i64,
    pub id: SessionId,
    pub generation: i64,
    pub head: Seq,
    pub cwd: PathBuf,
    pub additional_directories: Vec<PathBuf>,
    pub title: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub created_ms: u64,
    pub updated_ms: u64,
    pub activity: ActivityColumns,
    /// The session whose tool call created this one.
    pub parent: Option<SessionId>,
    pub archived: bool,
    /// The incarnation of the node that has claimed the session and has ended the turn of an
    /// earlier owner. `None` in a store without nodes.
    pub owner: Option<i64>,
}

impl SessionRow {
    /// Creates the row of a new session without events, in generation 1.
    pub(super) fn new(key: i64, id: &SessionId, cwd: &Path, at_ms: u64) -> SessionRow {
        SessionRow {
            key,
            id: id.clone(),
            generation: 1,
            head: 0,
            cwd: cwd.into(),
            additional_directories: Vec::new(),
            title: None,
            created_ms: at_ms,
            updated_ms: at_ms,
            activity: ActivityColumns::default(),
            parent: None,
            archived: false,
            owner: None,
        }
    }
}

/// The result of [`super::Store::take_session`].
pub(crate) enum TakeOutcome {
    /// This process is the owner, in this new generation.
    Taken(i64),
    /// Another node, whose lease has not ended, is the owner.
    Held(NodeRow),
}

/// A node: a process that claims sessions in their rows, until its lease ends. The lease is for the
/// incarnation: a node whose lease has ended continues as another incarnation, without claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeRow {
    pub incarnation: i64,
    /// Names the data directory on its machine; `None` if that is not known. Processes with the
    /// same one reach each other through local sockets.
    pub home: Option<String>,
    /// The address of the process on its machine, with the version of its messages.
    pub process: String,
    /// Names the node in messages.
    pub name: String,
    /// The address for nodes with another home, if it accepts their connections.
    pub address: Option<NodeAddress>,
    /// The address of a node with the same home that passes their connections on, if this one
    /// accepts none. The store fills it in.
    pub gateway: Option<NodeAddress>,
}

/// The address at which a node accepts connections of other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeAddress {
    /// `HOST:PORT`.
    pub host: String,
    /// SHA-256 digest of its certificate, in hexadecimal.
    pub certificate: String,
}

/// A file of a session in a store with nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredFile {
    /// `artifacts/NAME`, `attachments/NAME` or `texts/NAME`.
    pub path: String,
    /// In bytes.
    pub size: u64,
}

/// The result of a renewal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeRenewal {
    /// Time until the first lease of another node ends, unless that node renews it.
    pub others_end: Option<Duration>,
}

/// How long a renewal keeps a lease, by the clock of the database.
#[cfg(feature = "postgres")]
pub(super) const NODE_LEASE: Duration = Duration::from_secs(20);

/// Selects the sessions of a list.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionFilter<'a> {
    /// Only sessions in this directory.
    pub cwd: Option<&'a Path>,
    /// True to include sessions of subagents.
    pub children: bool,
    /// True to include sessions without a message.
    pub empty: bool,
    /// Only sessions that are archived, or that are not; `None` selects both.
    pub archived: Option<bool>,
}

/// A page of sessions, most recently updated first. `next` is the position from which the following
/// page continues.
pub(crate) struct SessionPage {
    pub sessions: Vec<SessionRow>,
    pub next: Option<(u64, i64)>,
}

/// Events of one session, in order, for [`super::Store::commit`].
pub(crate) struct Append {
    /// [`SessionRow::key`] of the session.
    pub key: i64,
    /// The generation that the owner received when it took the session. Each later owner receives a
    /// higher generation.
    pub generation: i64,
    pub events: Vec<Event>,
    /// The calls of other processes that appended an event, with its seq.
    pub calls: Vec<(Seq, MessageId)>,
    /// The activity after the events, if it changed.
    pub activity: Option<ActivityColumns>,
    /// The time at which the session was updated last, if lists are to show it.
    pub listed_ms: Option<u64>,
}

/// Returns the message of an event that says whether a queued message was sent.
pub(super) fn indexed_message(body: &Body) -> Option<&MessageId> {
    match body {
        Body::MessageQueued(QueuedMessage { message_id, .. }) | Body::MessageCompleted { message_id, .. } => Some(message_id),
        _ => None,
    }
}

/// The columns that summarize the activity of a session after its last event. The `session` module
/// computes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ActivityColumns {
    /// The running turn.
    pub turn: Option<TurnId>,
    /// Number of open permission requests.
    pub waiting: usize,
    /// JSON of the `session` module. `None` if no version with summaries wrote to the session.
    pub summary: Option<String>,
}

/// The result of one [`Append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitOutcome {
    /// The events are stored.
    Written,
    /// Another owner took the session: nothing was written.
    Fenced,
    /// The last stored event of the session is this one, not the one before the first event of the
    /// append: nothing was written.
    Behind(Seq),
}

/// A position in the events of all sessions, in the order of their commits. Clients receive it as a
/// number that says nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor(u64);

impl Cursor {
    /// Creates the cursor that a client received as `number`; 0 is the start.
    pub(crate) fn from_number(number: u64) -> Cursor {
        Cursor(number)
    }

    /// Returns the number for clients.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// The result of one wait for writes of other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// No other process has written since the last wait.
    Unchanged,
    /// Other processes have written to the sessions with these keys.
    Changed(Vec<i64>),
    /// Other processes have written, in any sessions.
    Unknown,
}

impl Wakeup {
    /// Returns whether the session with this key may have changed.
    pub(crate) fn may_concern(&self, key: i64) -> bool {
        match self {
            Wakeup::Unchanged => false,
            Wakeup::Changed(keys) => keys.contains(&key),
            Wakeup::Unknown => true,
        }
    }
}

/// An event with its position among all events, and the working directory of its session.
pub(crate) struct StoredEvent {
    pub cursor: Cursor,
    pub cwd: PathBuf,
    pub event: Event,
}

/// Maximum number of responses that are stored for repeated requests (`Idempotency-Key`).
pub(super) const IDEMPOTENCY_KEYS_MAX: usize = 10_000;
/// How long a response is stored for repeated requests.
pub(super) const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 3600);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IdempotencyRecord {
    /// Digest of the request that carried the key.
    pub asked: Vec<u8>,
    /// The recorded response; `None` if no response was recorded.
    pub text: Option<String>,
}

/// A stored response, as copies of a store read and write it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AnswerRow {
    pub principal: String,
    pub key: String,
    pub record: IdempotencyRecord,
    pub at_ms: i64,
}

/// An event, as copies of a store read and write it: its columns are not interpreted.
#[derive(Clone, Debug)]
pub(crate) struct EventRow {
    /// The number of the row: the [`Cursor`] of the event.
    pub id: i64,
    pub seq: Seq,
    pub turn: Option<String>,
    pub at_ms: i64,
    pub delta: bool,
    /// The type of the body.
    pub kind: Option<String>,
    /// The message of the body, if it is queued or completed.
    pub message: Option<String>,
    /// The call of another process that appended the event.
    pub call: Option<String>,
    pub body: String,
}

/// The numbers of rows in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreTotals {
    pub sessions: u64,
    pub events: u64,
    pub workspaces: u64,
    pub answers: u64,
    /// The highest [`SessionRow::key`].
    pub last_key: i64,
}

/// A git worktree that nuncio created.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WorkspaceRow {
    pub id: String,
    pub name: String,
    /// The main worktree of the repository, or the directory of a bare repository.
    pub repository: PathBuf,
    pub path: PathBuf,
    /// The branch that was checked out at the creation.
    pub branch: Option<String>,
    /// True if the branch was created with the worktree.
    pub made_branch: bool,
    /// Branch or commit from which the worktree was created.
    pub base: Option<String>,
    /// Commit id of the base at that time; `None` if the repository had no commits.
    pub base_commit: Option<String>,
    pub state: WorkspaceState,
    /// Milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// Values that clients stored, by name.
    pub metadata: Map<String, Value>,
}

/// The state of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkspaceState {
    /// It is being created, or the process that created it was killed.
    Creating,
    /// It can be used.
    Ready,
    /// It is being deleted, or the process that deleted it was killed.
    Deleting,
    /// Its directory does not exist. This state is not stored.
    Missing,
}

impl WorkspaceState {
    /// Returns the state with this name in the store.
    pub(super) fn from_id(id: &str) -> WorkspaceState {
        match id {
            "creating" => WorkspaceState::Creating,
            "deleting" => WorkspaceState::Deleting,
            _ => WorkspaceState::Ready,
        }
    }

    /// Returns the name in the store and in results.
    pub(crate) fn id(self) -> &'static str {
        match self {
            WorkspaceState::Creating => "creating",
            WorkspaceState::Ready => "ready",
            WorkspaceState::Deleting => "deleting",
            WorkspaceState::Missing => "missing",
        }
    }
}
