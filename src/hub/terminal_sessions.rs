//! Agents in terminals that users started themselves: the status of Claude Code, from the hooks
//! that it calls and from the end of its transcript, and the status that other programs report.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use tokio::sync::watch;

use super::transcript_end::TranscriptEnd;
use crate::config::AgentKind;
use crate::content::AgentStatus;

/// Maximum number of terminal clients of agents whose status is kept.
const TERMINALS_MAX: usize = 256;
/// Maximum length of the session id in a hook request, in bytes.
pub(super) const HOOK_SESSION_BYTES_MAX: usize = 128;
/// The kind of an agent that is any program.
const PROGRAM: &str = "program";
/// Time without a hook and without a change of the transcript after which a busy terminal client
/// counts as idle: longer than its commands may run.
pub const TERMINAL_SILENT: Duration = Duration::from_secs(15 * 60);
/// Time without a hook after which the status of a terminal client is forgotten.
pub const TERMINAL_KEPT: Duration = Duration::from_secs(24 * 3600);

/// An agent in a terminal that a user started.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminalSession {
    /// `claude-code`, or `program` for one that reports its status itself.
    pub agent: Cow<'static, str>,
    /// The id of the session in the agent; for a program without one, its directory.
    pub agent_session: String,
    pub cwd: PathBuf,
    pub status: AgentStatus,
    /// The title that a program reported.
    pub title: Option<String>,
}

/// The body of a hook request of Claude Code. Other fields are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TerminalHook {
    /// For example `UserPromptSubmit`, `PermissionRequest` or `Stop`; others are ignored.
    hook_event_name: String,
    /// The id of the session in Claude Code.
    pub(super) session_id: Option<String>,
    /// The file with the session's conversation.
    transcript_path: Option<PathBuf>,
    /// The kind of a `Notification`, for example `idle_prompt`.
    notification_type: Option<String>,
}

impl TerminalHook {
    /// Returns the status after the hook, or `None` if the hook does not change it.
    fn status(&self) -> Option<AgentStatus> {
        match self.hook_event_name.as_str() {
            "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" | "ElicitationResult" => {
                Some(AgentStatus::Busy)
            }
            "PermissionRequest" | "Elicitation" => Some(AgentStatus::Waiting),
            "SessionStart" | "Stop" | "StopFailure" => Some(AgentStatus::Idle),
            "Notification" if self.notification_type.as_deref() == Some("idle_prompt") => Some(AgentStatus::Idle),
            "SessionEnd" => Some(AgentStatus::None),
            _ => None,
        }
    }
}

/// The state of one agent in a terminal.
struct Terminal {
    session: TerminalSession,
    transcript: Option<TranscriptEnd>,
    /// Time of the last hook or change of the transcript.
    active: Instant,
}

/// The agents in terminals that report to this process, by the id of their session.
pub struct TerminalSessions {
    terminals: Mutex<HashMap<String, Terminal>>,
    changes: watch::Sender<u64>,
}

impl Default for TerminalSessions {
    fn default() -> Self {
        TerminalSessions { terminals: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl TerminalSessions {
    /// Counts the hooks that changed a status.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn terminals(&self) -> MutexGuard<'_, HashMap<String, Terminal>> {
        self.terminals.lock()
    }

    /// Applies a hook of an agent in the directory `cwd`, called at `now`. Reads the length of the
    /// transcript.
    pub fn on_hook(&self, cwd: PathBuf, hook: TerminalHook, now: Instant) {
        let status = hook.status();
        let starts_turn = hook.hook_event_name == "UserPromptSubmit";
        let Some(id) = hook.session_id.filter(|id| !id.is_empty()) else { return };
        // Lines from before the prompt do not describe its turn.
        let transcript = hook.transcript_path.and_then(|path| TranscriptEnd::new(&path));
        self.update(AgentKind::ClaudeCode.id(), id, cwd, (status, now), |terminal| {
            if starts_turn || terminal.transcript.is_none() {
                terminal.transcript = transcript;
            }
        });
    }

    /// Applies the report of a program in the directory `cwd`, sent at `now`. Reports without a
    /// session id are about the same program of their directory.
    pub(crate) fn on_report(
        &self,
        cwd: PathBuf,
        session: Option<String>,
        status: AgentStatus,
        title: Option<String>,
        now: Instant,
    ) {
        let id = session.filter(|id| !id.is_empty()).unwrap_or_else(|| cwd.to_string_lossy().into_owned());
        self.update(PROGRAM, id, cwd, (Some(status), now), |terminal| terminal.session.title = title);
    }

    /// Sets the status of an agent, if there is one, and changes other facts. `none` removes it.
    fn update(
        &self,
        agent: &'static str,
        id: String,
        cwd: PathBuf,
        (status, now): (Option<AgentStatus>, Instant),
        change: impl FnOnce(&mut Terminal),
    ) {
        let mut terminals = self.terminals();
        let shown = |terminal: &Terminal| (terminal.session.status, terminal.session.title.clone());
        let before = terminals.get(&id).map(shown);
        if status == Some(AgentStatus::None) {
            terminals.remove(&id);
        } else {
            if !terminals.contains_key(&id) {
                make_room(&mut terminals);
            }
            let new = || {
                let (agent, agent_session, status) = (agent.into(), id.clone(), AgentStatus::Idle);
                let session = TerminalSession { agent, agent_session, cwd: cwd.clone(), status, title: None };
                Terminal { session, transcript: None, active: now }
            };
            let terminal = terminals.entry(id.clone()).or_insert_with(new);
            terminal.session.status = status.unwrap_or(terminal.session.status);
            (terminal.session.cwd, terminal.active) = (cwd, now);
            change(terminal);
        }
        let after = terminals.get(&id).map(shown);
        drop(terminals);
        if before != after {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Lists the agents with a status at `now`. First reads the new lines in the transcripts of
    /// working agents, because Claude Code calls no hook when the user interrupts it.
    pub fn list(&self, now: Instant) -> Vec<TerminalSession> {
        self.read_transcripts(now);
        let mut terminals = self.terminals();
        expire(&mut terminals, now);
        terminals.values().map(|terminal| terminal.session.clone()).collect()
    }

    fn read_transcripts(&self, now: Instant) {
        let working: Vec<(String, TranscriptEnd)> = {
            let terminals = self.terminals();
            let working = terminals.iter().filter(|(_, terminal)| terminal.session.status > AgentStatus::Idle);
            working.filter_map(|(id, terminal)| Some((id.clone(), terminal.transcript.clone()?))).collect()
        };
        // Read the files without the lock, so that hooks do not wait.
        for (id, before) in working {
            let mut after = before.clone();
            let interrupted = after.read();
            let mut terminals = self.terminals();
            let Some(terminal) = terminals.get_mut(&id) else { continue };
            // A hook has replaced the position, or another reader has moved it.
            if terminal.transcript.as_ref() != Some(&before) || after == before {
                continue;
            }
            (terminal.transcript, terminal.active) = (Some(after), now);
            if interrupted {
                terminal.session.status = AgentStatus::Idle;
            }
        }
    }
}

/// Makes a silent busy agent idle, and removes agents that no longer report. Needed because a
/// killed agent calls no hook.
fn expire(terminals: &mut HashMap<String, Terminal>, now: Instant) {
    let silent = |terminal: &Terminal| now.saturating_duration_since(terminal.active);
    terminals.retain(|_, terminal| silent(terminal) < TERMINAL_KEPT);
    for terminal in terminals.values_mut() {
        if terminal.session.status == AgentStatus::Busy && silent(terminal) >= TERMINAL_SILENT {
            terminal.session.status = AgentStatus::Idle;
        }
    }
}

/// Removes the agent that was silent the longest, if there are too many.
fn make_room(terminals: &mut HashMap<String, Terminal>) {
    if terminals.len() < TERMINALS_MAX {
        return;
    }
    let oldest = terminals.iter().min_by_key(|(_, terminal)| terminal.active).map(|(id, _)| id.clone());
    oldest.map(|id| terminals.remove(&id));
}

/// Returns the directory in the value of the header `X-Workspace-Path`: an existing directory with
/// an absolute path, free of symlinks. Characters may be percent-encoded, because a header cannot
/// carry all characters of a path.
pub(crate) fn workspace_of_header(value: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let plain = std::ffi::OsStr::from_bytes(value).to_owned();
    let decoded: Vec<u8> = percent_encoding::percent_decode(value).collect();
    let found = |path: &Path| path.is_absolute().then(|| std::fs::canonicalize(path).ok()).flatten().filter(|path| path.is_dir());
    found(plain.as_ref()).or_else(|| found(std::ffi::OsStr::from_bytes(&decoded).as_ref()))
}
