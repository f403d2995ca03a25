//! Renders events as readable text: the agent's answer, and its progress.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::content::{Part, PlanStatus, Role, StopReason, ToolContent, ToolStatus};
use crate::event::{Body, Event, PermissionOutcome, Severity};
use crate::id::{MessageId, ToolCallId};
use crate::patch::{self, Side};
use crate::terminal_text::{OutputFilter, output, output_line, question as escape_question};

/// A piece of output. Its only control sequences are our own colours.
#[derive(Debug, PartialEq, Eq)]
pub enum Out {
    /// Text of the answer, for standard output.
    Answer(String),
    /// Progress, for standard error.
    Aside(String),
}

/// Options of the rendering.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Adds colours.
    pub colour: bool,
    /// Leaves the answer unchanged, for a pipe or a file.
    pub exact: bool,
    /// Renders a stored session: also shows the user's messages.
    pub replay: bool,
}

/// Renders events in order. The text of a message is shown once, even if it arrives both in deltas
/// and as a whole.
pub struct Text {
    look: Look,
    /// Paths are shown relative to this directory.
    cwd: PathBuf,
    /// Incomplete messages.
    messages: HashMap<MessageId, OpenMessage>,
    /// The message whose line is not ended.
    writing: Option<MessageId>,
    /// Calls whose result is not shown: a question has shown it, or other events do.
    reported: HashSet<ToolCallId>,
    /// Titles of the running calls.
    titles: HashMap<ToolCallId, String>,
}

/// The part of an incomplete message that was received.
struct OpenMessage {
    role: Role,
    filter: OutputFilter,
    /// Collected in a replay only.
    text: String,
    bytes: usize,
}

#[derive(Clone, Copy)]
enum Style {
    Dim,
    Bold,
    Red,
    Green,
    Yellow,
    Cyan,
}

/// How many lines of a tool's output are shown: the first lines, or the last lines of a failed
/// call.
const OUTPUT_LINES: usize = 12;

/// How a call ended.
enum Ended {
    Completed,
    Failed,
    /// A command ended with this exit code.
    Exited(i64),
}

impl Text {
    pub fn new(look: Look, cwd: &Path) -> Text {
        Text { look, cwd: cwd.into(), messages: HashMap::new(), writing: None, reported: HashSet::new(), titles: HashMap::new() }
    }

    /// Adds colours. The text must be escaped for a terminal.
    fn paint(&self, style: Style, text: &str) -> String {
        if !self.look.colour {
            return text.into();
        }
        let code = match style {
            Style::Dim => 2,
            Style::Bold => 1,
            Style::Red => 31,
            Style::Green => 32,
            Style::Yellow => 33,
            Style::Cyan => 36,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Renders an event.
    pub fn on(&mut self, event: &Event) -> Vec<Out> {
        match &event.body {
            Body::MessageDelta { message_id, role, offset, text } => self.piece(message_id, *role, *offset as usize, text),
            Body::MessageCompleted { message_id, role, parts, discarded, .. } => {
                self.completed(message_id, *role, parts, *discarded)
            }
            Body::ToolStarted { tool_call_id, name, .. } if name == "plan" => {
                self.reported.insert(tool_call_id.clone());
                Vec::new()
            }
            Body::ToolStarted { tool_call_id, title, .. } => {
                self.titles.insert(tool_call_id.clone(), title.clone());
                vec![self.aside(&format!("{} {}", self.paint(Style::Cyan, "●"), output_line(title)))]
            }
            Body::PermissionRequested { tool_call_id, content, .. } => {
                if content.iter().any(|content| matches!(content, ToolContent::Diff { .. })) {
                    self.reported.insert(tool_call_id.clone());
                }
                self.question(self.titles.get(tool_call_id).map_or("", String::as_str), content)
            }
            Body::ToolCompleted { tool_call_id, status, content, details, .. } => {
                self.titles.remove(tool_call_id);
                let code = details.as_ref().and_then(|details| details["exitCode"].as_i64());
                let ended = match (status, code) {
                    (ToolStatus::Failed, _) => Ended::Failed,
                    (_, Some(code)) if code != 0 => Ended::Exited(code),
                    _ => Ended::Completed,
                };
                let reported = self.reported.remove(tool_call_id) && *status == ToolStatus::Completed;
                if reported { Vec::new() } else { self.contents(&ended, content) }
            }
            Body::PermissionResolved { outcome, by, reason, .. } if !outcome.allows() => {
                let word = if *outcome == PermissionOutcome::Cancelled { "cancelled" } else { "denied" };
                let why = reason.clone().unwrap_or_else(|| format!("by {by}"));
                vec![self.aside(&self.paint(Style::Yellow, &format!("  {word}: {}", output(&why))))]
            }
            Body::PlanUpdated { entries } => {
                let lines = entries.iter().map(|entry| {
                    let mark = match entry.status {
                        PlanStatus::Completed => "✔",
                        PlanStatus::InProgress => "▶",
                        PlanStatus::Pending => "·",
                    };
                    self.aside(&format!("  {mark} {}", output_line(&entry.content)))
                });
                lines.collect()
            }
            Body::Notice { severity, title, description } => {
                let style = match severity {
                    Severity::Info => Style::Dim,
                    Severity::Warning => Style::Yellow,
                    Severity::Error => Style::Red,
                };
                let more = description.as_ref().map(|more| format!(" ({more})")).unwrap_or_default();
                vec![self.aside(&self.paint(style, &output(&format!("! {title}{more}"))))]
            }
            Body::TurnFailed { message, hint, .. } if self.look.replay => {
                let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
                vec![self.aside(&self.paint(Style::Red, &output(&format!("✗ {message}{hint}"))))]
            }
            Body::TurnCompleted { stop_reason } if *stop_reason != StopReason::EndTurn => {
                let why = match stop_reason {
                    StopReason::MaxTokens => "the answer is truncated: it reached the model's token limit",
                    StopReason::MaxTurnRequests => "stopped: too many steps in one turn",
                    StopReason::Refusal => "the model refused",
                    StopReason::EndTurn | StopReason::Cancelled => "stopped",
                };
                vec![self.aside(&self.paint(Style::Yellow, &format!("■ {why}")))]
            }
            Body::TurnCancelled {} => vec![self.aside(&self.paint(Style::Yellow, "■ cancelled"))],
            Body::TurnInterrupted {} => {
                vec![self.aside(&self.paint(Style::Yellow, "■ interrupted: the process that ran the turn has ended"))]
            }
            _ => Vec::new(),
        }
    }

    fn aside(&self, line: &str) -> Out {
        Out::Aside(format!("{line}\n"))
    }

    /// Renders text of a message as it arrives, on its own lines. A replay collects it instead:
    /// `completed` shows whole messages, `incomplete` the others.
    fn piece(&mut self, id: &MessageId, role: Role, offset: usize, text: &str) -> Vec<Out> {
        let new = || OpenMessage { role, filter: OutputFilter::default(), text: String::new(), bytes: 0 };
        let message = self.messages.entry(id.clone()).or_insert_with(new);
        // An earlier delta is missing. The completed message will contain the text.
        if offset > message.bytes {
            return Vec::new();
        }
        let Some(fresh) = text.get(message.bytes - offset..).filter(|fresh| !fresh.is_empty()) else { return Vec::new() };
        message.bytes = offset + text.len();
        if self.look.replay {
            message.text.push_str(fresh);
            return Vec::new();
        }
        let exact = self.look.exact && role == Role::Assistant;
        let fresh = if exact { fresh.to_string() } else { message.filter.push(fresh) };
        let mut out = if self.writing.as_ref() == Some(id) { Vec::new() } else { self.end_line() };
        self.writing = Some(id.clone());
        out.extend(self.message(role, &fresh));
        out
    }

    /// Renders text of a message. The text must be escaped for its destination.
    fn message(&self, role: Role, text: &str) -> Option<Out> {
        match role {
            Role::Assistant => Some(Out::Answer(text.into())),
            Role::Thought => Some(Out::Aside(self.paint(Style::Dim, text))),
            Role::User | Role::System => None,
        }
    }

    /// Ends the line of the message that is being written.
    fn end_line(&mut self) -> Vec<Out> {
        let role = self.writing.take().and_then(|id| self.messages.get(&id)).map(|message| message.role);
        match role {
            Some(Role::Assistant) => vec![Out::Answer("\n".into())],
            Some(Role::Thought | Role::User | Role::System) => vec![Out::Aside("\n".into())],
            None => Vec::new(),
        }
    }

    fn completed(&mut self, id: &MessageId, role: Role, parts: &[Part], discarded: bool) -> Vec<Out> {
        let text = crate::content::plain_text(parts);
        if self.look.replay {
            let text = output(&text);
            self.messages.remove(id);
            return match role {
                _ if discarded || text.is_empty() => Vec::new(),
                Role::User => {
                    let lines: Vec<String> = text.lines().map(|line| self.paint(Style::Bold, &format!("> {line}"))).collect();
                    vec![Out::Answer(format!("\n{}\n\n", lines.join("\n")))]
                }
                role => self.message(role, &format!("{text}\n")).into_iter().collect(),
            };
        }
        if role == Role::User {
            return Vec::new();
        }
        let mut out = self.piece(id, role, 0, &text);
        if self.writing.as_ref() == Some(id) {
            out.extend(self.end_line());
        }
        self.messages.remove(id);
        out
    }

    /// Renders the messages that were never completed, at the end of a replay.
    pub fn incomplete(&mut self) -> Vec<Out> {
        let open: Vec<OpenMessage> = self.messages.drain().map(|(_, message)| message).collect();
        open.iter().filter_map(|message| self.message(message.role, &format!("{}\n", output(&message.text)))).collect()
    }

    /// Renders the content of a permission question in full. Text that equals the call's title is
    /// omitted: the question itself shows it.
    pub fn question(&self, title: &str, contents: &[ToolContent]) -> Vec<Out> {
        let mut out = Vec::new();
        for content in contents {
            match content {
                ToolContent::Diff { path, old_text, new_text } => {
                    let diff = self.diff(path, old_text.as_deref(), new_text);
                    out.extend(escape_question(&diff).trim_end_matches('\n').split('\n').map(|line| self.diff_line(line)));
                }
                ToolContent::Content { content } => {
                    let text = content.as_text();
                    if title != format!("`{}`", text.trim()) {
                        let text = escape_question(&text);
                        out.extend(text.trim_end_matches('\n').split('\n').map(|line| self.aside(&format!("  {line}"))));
                    }
                }
                // The command has not started, so there is no output.
                ToolContent::Terminal { .. } => {}
            }
        }
        out
    }

    fn contents<'a>(&self, ended: &Ended, contents: impl IntoIterator<Item = &'a ToolContent>) -> Vec<Out> {
        let mut out = Vec::new();
        for content in contents {
            match content {
                ToolContent::Content { content } => out.push(self.output(ended, &content.as_text())),
                ToolContent::Terminal { output, .. } => out.push(self.output(ended, output)),
                ToolContent::Diff { path, old_text, new_text } => {
                    let diff = output(&self.diff(path, old_text.as_deref(), new_text));
                    out.extend(diff.lines().map(|line| self.diff_line(line)));
                }
            }
        }
        out
    }

    fn diff(&self, path: &Path, old_text: Option<&str>, new_text: &str) -> String {
        let name = path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string();
        let side = |text| Side::text(name.trim_start_matches('/'), text);
        patch::unified_diff(old_text.map(side), Some(side(new_text))).text
    }

    /// Renders the first lines of a tool's output, or the last ones of a failed call, followed by
    /// the exit code of a command.
    fn output(&self, ended: &Ended, text: &str) -> Out {
        let text = output(text);
        let (text, code) = match ended {
            Ended::Exited(code) => {
                let code = format!("exit code: {code}");
                (text.trim_end().strip_suffix(&code).unwrap_or(&text), Some(code))
            }
            Ended::Completed | Ended::Failed => (text.as_str(), None),
        };
        let lines: Vec<&str> = text.lines().collect();
        let hidden = lines.len().saturating_sub(OUTPUT_LINES);
        let note = |which: &str| (hidden > 0).then(|| format!("… {hidden} {which} lines"));
        let (before, shown, after) = match ended {
            Ended::Completed => (None, &lines[..lines.len() - hidden], note("more")),
            Ended::Failed | Ended::Exited(_) => (note("earlier"), &lines[hidden..], code),
        };
        let lines = before.as_deref().into_iter().chain(shown.iter().copied()).chain(after.as_deref());
        let lines: Vec<String> = lines.map(|line| format!("  {line}")).collect();
        let style = if matches!(ended, Ended::Failed) { Style::Red } else { Style::Dim };
        self.aside(&self.paint(style, &lines.join("\n")))
    }

    /// Renders a line of a diff. The line must be escaped for a terminal.
    fn diff_line(&self, line: &str) -> Out {
        let style = match line.as_bytes().first() {
            Some(b'+') => Style::Green,
            Some(b'-') => Style::Red,
            Some(b'@') => Style::Cyan,
            _ => Style::Dim,
        };
        self.aside(&self.paint(style, &format!("  {line}")))
    }
}
