//! The status of all agents: per session, per directory and over all. It is computed from the open
//! sessions, the sessions of other processes, and the terminal clients that report their status.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::api::dispatch::app::App;
use crate::content::AgentStatus;
use crate::error::Result;
use crate::hub::TerminalSession;
use crate::id::SessionId;
use crate::session::Sessions;
use crate::session::clock::now_ms;
use crate::task;

/// Time between a change of the status of agents and its read for a client that follows it.
const STATUS_PAUSE: Duration = Duration::from_millis(50);
/// Interval at which the status of agents is read without a commit, for sessions that are opened
/// and closed without an event.
const STATUS_RECHECK: Duration = Duration::from_secs(2);
/// Interval at which the transcript of a working terminal client is read.
const TRANSCRIPT_POLL: Duration = Duration::from_millis(200);

/// The name of the event.
pub(crate) const AGENT_STATUS: &str = "agent.status";

/// The status of a session. `none`: the session was closed, or its process has ended.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionStatusRow {
    session_id: SessionId,
    cwd: PathBuf,
    status: AgentStatus,
}

/// The status of a directory: the most urgent status of its sessions and terminal clients.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct DirectoryStatusRow {
    cwd: PathBuf,
    status: AgentStatus,
}

/// The event `agent.status`: the rows that changed. It is computed, is not stored, and has no
/// cursor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentStatusEvent")]
pub(crate) struct StatusChange {
    #[serde(rename = "type")]
    name: &'static str,
    at_ms: u64,
    /// True in the first event of a stream: it has all rows. Rows of earlier streams are outdated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    complete: bool,
    /// The most urgent status of all.
    status: AgentStatus,
    directories: Vec<DirectoryStatusRow>,
    sessions: Vec<SessionStatusRow>,
    terminals: Vec<TerminalSession>,
}

/// The status of all agents at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StatusSnapshot {
    sessions: BTreeMap<SessionId, SessionStatusRow>,
    terminals: BTreeMap<String, TerminalSession>,
}

impl StatusSnapshot {
    /// Reads the status of the agents in the directories that `visible` returns true for.
    pub(crate) async fn read(app: &App, visible: impl FnMut(&Path) -> bool) -> Result<StatusSnapshot> {
        let terminals = app.terminals.clone();
        let terminals = task::blocking("reading the status", move || terminals.list(Instant::now().into_std())).await?;
        let mut snapshot = StatusSnapshot::read_all(app.sessions_now(), terminals).await?;
        snapshot.retain(visible);
        Ok(snapshot)
    }

    async fn read_all(sessions: Option<&Arc<Sessions>>, terminals: Vec<TerminalSession>) -> Result<StatusSnapshot> {
        let mut snapshot = StatusSnapshot::default();
        let mut add = |session_id: SessionId, cwd, status| {
            snapshot.sessions.insert(session_id.clone(), SessionStatusRow { session_id, cwd, status });
        };
        if let Some(sessions) = sessions {
            for row in sessions.owned_elsewhere().await? {
                let status = AgentStatus::new(row.activity.turn.is_some(), row.activity.waiting > 0);
                add(row.id, row.cwd, status);
            }
            for session in sessions.all_owned() {
                // Only committed events count: each change of the status has a commit.
                let (status, cwd) = session
                    .log
                    .state(|state| (AgentStatus::new(state.turn.is_some(), !state.open_permissions.is_empty()), state.cwd.clone()));
                add(session.log.id.clone(), cwd, status);
            }
        }
        snapshot.terminals = terminals.into_iter().map(|row| (row.agent_session.clone(), row)).collect();
        Ok(snapshot)
    }

    fn retain(&mut self, mut visible: impl FnMut(&Path) -> bool) {
        self.sessions.retain(|_, row| visible(&row.cwd));
        self.terminals.retain(|_, row| visible(&row.cwd));
    }

    fn rows(&self) -> impl Iterator<Item = (&PathBuf, AgentStatus)> {
        let terminals = self.terminals.values().map(|row| (&row.cwd, row.status));
        self.sessions.values().map(|row| (&row.cwd, row.status)).chain(terminals)
    }

    /// Returns the most urgent status of all sessions and terminal clients.
    pub(crate) fn status(&self) -> AgentStatus {
        self.rows().map(|(_, status)| status).max().unwrap_or_default()
    }

    /// Returns the most urgent status in each directory.
    pub(crate) fn directories(&self) -> BTreeMap<PathBuf, AgentStatus> {
        let mut directories: BTreeMap<PathBuf, AgentStatus> = BTreeMap::new();
        for (cwd, status) in self.rows() {
            let directory = directories.entry(cwd.clone()).or_default();
            *directory = status.max(*directory);
        }
        directories
    }

    /// Counts the sessions and terminal clients with a status.
    pub(crate) fn count(&self, wanted: AgentStatus) -> usize {
        self.rows().filter(|(_, status)| *status == wanted).count()
    }

    pub(crate) fn into_terminals(self) -> Vec<TerminalSession> {
        self.terminals.into_values().collect()
    }

    /// Returns whether a terminal client works. Its transcript can change its status.
    fn has_working_terminal(&self) -> bool {
        self.terminals.values().any(|row| row.status > AgentStatus::Idle)
    }

    /// Returns the changes since `before`, or all rows if it is missing. `None` if nothing changed.
    fn change_since(&self, before: Option<&StatusSnapshot>) -> Option<StatusChange> {
        let complete = before.is_none();
        let empty = StatusSnapshot::default();
        let before = before.unwrap_or(&empty);
        if !complete && self == before {
            return None;
        }
        let sessions = changed(&before.sessions, &self.sessions, |row| row.status = AgentStatus::None);
        let terminals = changed(&before.terminals, &self.terminals, |row| row.status = AgentStatus::None);
        let rows = |snapshot: &StatusSnapshot| {
            let rows = snapshot.directories().into_iter();
            rows.map(|(cwd, status)| (cwd.clone(), DirectoryStatusRow { cwd, status })).collect()
        };
        let directories = changed(&rows(before), &rows(self), |row| row.status = AgentStatus::None);
        Some(StatusChange {
            name: AGENT_STATUS,
            at_ms: now_ms(),
            complete,
            status: self.status(),
            directories,
            sessions,
            terminals,
        })
    }
}

/// Returns the rows of `now` that are not in `before`, then the rows that are only in `before`,
/// after `end` has changed them.
fn changed<K: Ord, R: Clone + PartialEq>(before: &BTreeMap<K, R>, now: &BTreeMap<K, R>, end: impl Fn(&mut R)) -> Vec<R> {
    let ended = before.iter().filter(|(key, _)| !now.contains_key(key)).map(|(_, row)| {
        let mut row = row.clone();
        end(&mut row);
        row
    });
    let new = now.iter().filter(|(key, row)| before.get(key) != Some(row)).map(|(_, row)| row.clone());
    new.chain(ended).collect()
}

/// Follows the status for one subscriber.
pub(crate) struct StatusFollow {
    commits: watch::Receiver<u64>,
    hooks: watch::Receiver<u64>,
    sent: Option<StatusSnapshot>,
    read: Instant,
    /// When the first commit or hook after the last read arrived.
    changed: Option<Instant>,
}

impl StatusFollow {
    /// Starts with a complete change.
    pub(crate) fn new(app: &App, sessions: &Sessions) -> StatusFollow {
        let (commits, hooks) = (sessions.commits(), app.terminals.changes());
        StatusFollow { commits, hooks, sent: None, read: Instant::now(), changed: None }
    }

    /// Returns the changes since the last call, if it is time to read them. Cancel safe.
    pub(crate) async fn next(&mut self, app: &Arc<App>, visible: impl FnMut(&Path) -> bool) -> Result<Option<StatusChange>> {
        let now = Instant::now();
        let seen = |receiver: &watch::Receiver<u64>| receiver.has_changed().unwrap_or(false);
        if self.changed.is_none() && (seen(&self.commits) || seen(&self.hooks)) {
            self.changed = Some(now);
        }
        if self.sent.is_some() && now < self.time() {
            return Ok(None);
        }
        self.commits.mark_unchanged();
        self.hooks.mark_unchanged();
        // Stays set if this call is cancelled.
        self.changed = Some(now);
        let snapshot = StatusSnapshot::read(app, visible).await?;
        (self.changed, self.read) = (None, Instant::now());
        let change = snapshot.change_since(self.sent.as_ref());
        self.sent = Some(snapshot);
        Ok(change)
    }

    /// Waits until it is time for [`StatusFollow::next`]. Cancel safe.
    pub(crate) async fn due(&mut self) {
        if self.changed.is_none() {
            let recheck = self.time();
            tokio::select! {
                _ = self.commits.changed() => {}
                _ = self.hooks.changed() => {}
                () = sleep_until(recheck) => return,
            }
            self.changed = Some(Instant::now());
        }
        sleep_until(self.time()).await;
    }

    /// Returns when the status is read next: a short time after a change, so that one read covers
    /// several changes and the steps that directly follow a commit. Without a change, the interval
    /// since the last read is shorter while a terminal client works.
    fn time(&self) -> Instant {
        let working = self.sent.as_ref().is_some_and(StatusSnapshot::has_working_terminal);
        let recheck = self.read + if working { TRANSCRIPT_POLL } else { STATUS_RECHECK };
        self.changed.map_or(recheck, |changed| recheck.min(changed + STATUS_PAUSE))
    }
}
