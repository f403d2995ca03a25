//! Events as text for people: what the agent answers, and what it does on the way there.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::content::{Part, PlanStatus, Role, StopReason, ToolContent, ToolStatus};
use crate::event::{Body, Event, PermissionOutcome, Severity};
use crate::id::{MessageId, ToolCallId};
use crate::limits;
use crate::patch::{self, Side};

/// A piece of output: the answer itself, or a word about what happens.
#[derive(Debug, PartialEq, Eq)]
pub enum Out {
    Answer(String),
    Aside(String),
}

/// A fold over events. Text is shown once, whether it comes in pieces or whole.
pub struct Text {
    colour: bool,
    /// Shows what the user said, too: for a session of the past.
    replay: bool,
    /// What paths are shown relative to.
    cwd: PathBuf,
    /// Messages that are not whole yet.
    messages: HashMap<MessageId, Shown>,
    /// The one whose line is not ended.
    writing: Option<MessageId>,
    /// Calls of which nothing more needs to be shown: what was asked about, or what has events of its own.
    told: HashSet<ToolCallId>,
}

struct Shown {
    role: Role,
    /// Kept in a session of the past only.
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

/// Lines of a tool's output that are shown.
const OUTPUT_LINES: usize = 12;

impl Text {
    pub fn new(colour: bool, replay: bool, cwd: &Path) -> Text {
        Text { colour, replay, cwd: cwd.into(), messages: HashMap::new(), writing: None, told: HashSet::new() }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if !self.colour {
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

    pub fn on(&mut self, event: &Event) -> Vec<Out> {
        match &event.body {
            Body::MessageDelta { message_id, role, offset, text } => self.piece(message_id, *role, *offset as usize, text),
            Body::MessageCompleted { message_id, role, parts, discarded, .. } => {
                self.completed(message_id, *role, parts, *discarded)
            }
            Body::ToolStarted { tool_call_id, name, .. } if name == "plan" => {
                self.told.insert(tool_call_id.clone());
                Vec::new()
            }
            Body::ToolStarted { title, .. } => vec![self.aside(&format!("{} {title}", self.paint(Style::Cyan, "●")))],
            Body::PermissionRequested { tool_call_id, content, .. } => {
                if content.iter().any(|content| matches!(content, ToolContent::Diff { .. })) {
                    self.told.insert(tool_call_id.clone());
                }
                self.asked(content)
            }
            Body::ToolCompleted { tool_call_id, status, content, .. } => {
                let told = self.told.remove(tool_call_id) && *status == ToolStatus::Completed;
                if told { Vec::new() } else { self.contents(*status == ToolStatus::Failed, content) }
            }
            Body::PermissionResolved { outcome, by, reason, .. } if !outcome.allows() => {
                let word = if *outcome == PermissionOutcome::Cancelled { "cancelled" } else { "denied" };
                let why = reason.clone().unwrap_or_else(|| format!("by {by}"));
                vec![self.aside(&self.paint(Style::Yellow, &format!("  {word}: {why}")))]
            }
            Body::PlanUpdated { entries } => {
                let lines = entries.iter().map(|entry| {
                    let mark = match entry.status {
                        PlanStatus::Completed => "✔",
                        PlanStatus::InProgress => "▶",
                        PlanStatus::Pending => "·",
                    };
                    self.aside(&format!("  {mark} {}", entry.content))
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
                vec![self.aside(&self.paint(style, &format!("! {title}{more}")))]
            }
            Body::TurnFailed { message, hint, .. } if self.replay => {
                let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
                vec![self.aside(&self.paint(Style::Red, &format!("✗ {message}{hint}")))]
            }
            Body::TurnCompleted { stop_reason } if *stop_reason != StopReason::EndTurn => {
                let why = match stop_reason {
                    StopReason::MaxTokens => "the answer was cut: it reached the model's limit of tokens",
                    StopReason::MaxTurnRequests => "stopped: too many steps in one turn",
                    StopReason::Refusal => "the model refused",
                    StopReason::EndTurn | StopReason::Cancelled => "stopped",
                };
                vec![self.aside(&self.paint(Style::Yellow, &format!("■ {why}")))]
            }
            Body::TurnCancelled {} => vec![self.aside(&self.paint(Style::Yellow, "■ cancelled"))],
            Body::TurnInterrupted {} => {
                vec![self.aside(&self.paint(Style::Yellow, "■ interrupted: the process that ran it is gone"))]
            }
            _ => Vec::new(),
        }
    }

    fn aside(&self, line: &str) -> Out {
        Out::Aside(format!("{line}\n"))
    }

    /// Text of a message as it comes, on lines of its own. A session of the past shows only what is whole, and at the end what never was.
    fn piece(&mut self, id: &MessageId, role: Role, offset: usize, text: &str) -> Vec<Out> {
        let message = self.messages.entry(id.clone()).or_insert_with(|| Shown { role, text: String::new(), bytes: 0 });
        // A piece before this one is gone: the whole message is on its way.
        if offset > message.bytes {
            return Vec::new();
        }
        let Some(fresh) = text.get(message.bytes - offset..).filter(|fresh| !fresh.is_empty()) else { return Vec::new() };
        message.bytes = offset + text.len();
        if self.replay {
            message.text.push_str(fresh);
            return Vec::new();
        }
        let mut out = if self.writing.as_ref() == Some(id) { Vec::new() } else { self.end_line() };
        self.writing = Some(id.clone());
        out.extend(self.said(role, fresh));
        out
    }

    fn said(&self, role: Role, text: &str) -> Option<Out> {
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
        if self.replay {
            self.messages.remove(id);
            return match role {
                _ if discarded || text.is_empty() => Vec::new(),
                Role::User => {
                    let lines: Vec<String> = text.lines().map(|line| self.paint(Style::Bold, &format!("> {line}"))).collect();
                    vec![Out::Answer(format!("\n{}\n\n", lines.join("\n")))]
                }
                role => self.said(role, &format!("{text}\n")).into_iter().collect(),
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

    /// What was said and never became whole, for the end of a session of the past.
    pub fn rest(&mut self) -> Vec<Out> {
        let open: Vec<Shown> = self.messages.drain().map(|(_, message)| message).collect();
        open.iter().filter_map(|message| self.said(message.role, &format!("{}\n", message.text))).collect()
    }

    /// What is asked about, all of it; a text that is no more than the call's title stands in the question itself.
    pub fn asked(&self, contents: &[ToolContent]) -> Vec<Out> {
        let mut out = Vec::new();
        for content in contents {
            match content {
                ToolContent::Diff { .. } => out.extend(self.contents(false, [content])),
                ToolContent::Content { content } => {
                    let text = content.as_text();
                    if text.lines().count() > 1 || text.chars().count() > limits::BASH_TITLE_CHARS_MAX {
                        out.extend(text.lines().map(|line| self.aside(&format!("  {line}"))));
                    }
                }
                // It has not begun.
                ToolContent::Terminal { .. } => {}
            }
        }
        out
    }

    fn contents<'a>(&self, failed: bool, contents: impl IntoIterator<Item = &'a ToolContent>) -> Vec<Out> {
        let mut out = Vec::new();
        for content in contents {
            match content {
                ToolContent::Content { content } => out.push(self.output(failed, &content.as_text())),
                ToolContent::Terminal { output, .. } => out.push(self.output(failed, output)),
                ToolContent::Diff { path, old_text, new_text } => {
                    let name = path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string();
                    let side = |text| Side::text(name.trim_start_matches('/'), text);
                    let diff = patch::unified_diff(old_text.as_deref().map(side), Some(side(new_text)));
                    out.extend(diff.text.lines().map(|line| self.diff_line(line)));
                }
            }
        }
        out
    }

    /// The beginning of a text.
    fn output(&self, failed: bool, text: &str) -> Out {
        let mut lines: Vec<String> = text.lines().take(OUTPUT_LINES).map(|line| format!("  {line}")).collect();
        let more = text.lines().count().saturating_sub(OUTPUT_LINES);
        if more > 0 {
            lines.push(format!("  … {more} more lines"));
        }
        self.aside(&self.paint(if failed { Style::Red } else { Style::Dim }, &lines.join("\n")))
    }

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
