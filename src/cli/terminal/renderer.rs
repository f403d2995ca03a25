//! Renders the blocks of a transcript as text for a plain terminal, or for a pipe.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::markdown::MarkdownStream;
use super::remarks;
use crate::content::{PlanEntry, PlanStatus, StopReason, ToolCategory, ToolContent};
use crate::event::{CompactionOutcome, Severity};
use crate::id::{MessageId, ToolCallId};
use crate::patch::{self, Side};
use crate::terminal_text::{OutputFilter, output, output_line, question as escape_question};
use crate::transcript::{ToolEnd, ToolOutcome, TranscriptBlock, TurnEndReason};

/// A piece of output. Its only control sequences are nuncio's own colours.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RenderedText {
    /// Text of the answer, for standard output.
    Answer(String),
    /// Progress, for standard error.
    Progress(String),
}

impl RenderedText {
    /// Returns the text, whichever stream it is for.
    pub(crate) fn text(&self) -> &str {
        let (RenderedText::Answer(text) | RenderedText::Progress(text)) = self;
        text
    }
}

/// Rendering options.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RenderOptions {
    /// Adds colours.
    pub colour: bool,
    /// Leaves the answer unchanged, for a pipe or a file.
    pub exact: bool,
    /// Renders a stored session: whole messages, including the user's.
    pub replay: bool,
    /// Renders Markdown in answers, for a terminal of this width.
    pub markdown: Option<usize>,
    /// Renders the prompts of all clients and the failures of turns, for a chat.
    pub conversation: bool,
    /// A user watches: the end of a turn says what the turn used.
    pub watched: bool,
}

/// Renders blocks in order.
pub(crate) struct TerminalRenderer {
    options: RenderOptions,
    /// Paths are shown relative to this directory.
    cwd: PathBuf,
    /// Output filters of the incomplete messages.
    filters: HashMap<MessageId, OutputFilter>,
    /// Renders the answer that is being written.
    markdown: Option<MarkdownStream>,
    /// The message whose last line is not yet ended, and whether the message is a thought.
    pub(crate) writing: Option<(MessageId, bool)>,
    /// Incomplete messages of a replay, with their text so far: a replay shows whole messages.
    incomplete: Vec<(MessageId, bool, String)>,
    /// The call whose title was rendered last, with that title.
    last_call: Option<(ToolCallId, String)>,
    /// Hints how to allow denied calls that were rendered.
    hinted: Vec<&'static str>,
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

/// Maximum number of lines shown of a tool's output: the first lines, or the last lines if the call
/// failed.
const OUTPUT_LINES: usize = 12;

impl TerminalRenderer {
    /// Creates a renderer. Paths below `cwd` are shown relative to it.
    pub(crate) fn new(options: RenderOptions, cwd: &Path) -> TerminalRenderer {
        TerminalRenderer {
            options,
            cwd: cwd.into(),
            filters: HashMap::new(),
            markdown: options.markdown.map(MarkdownStream::new),
            writing: None,
            incomplete: Vec::new(),
            last_call: None,
            hinted: Vec::new(),
        }
    }

    /// Sets the width of the terminal, for the next lines.
    pub(crate) fn resize(&mut self, columns: usize) {
        self.markdown.iter_mut().for_each(|markdown| markdown.resize(columns));
    }

    /// Renders a block.
    pub(crate) fn render(&mut self, block: &TranscriptBlock<'_>) -> Vec<RenderedText> {
        match block {
            TranscriptBlock::UserMessage { text } => self.user_message(text),
            TranscriptBlock::MessageText { id, thought, text } => self.message_text(id, *thought, text),
            TranscriptBlock::MessageEnd { id, thought, text, discarded } => self.message_end(id, *thought, text, *discarded),
            TranscriptBlock::ToolStart { id, title, .. } => vec![self.call_line("●", id, title)],
            TranscriptBlock::ToolEnd(end) if end.already_shown => Vec::new(),
            TranscriptBlock::ToolEnd(end) => self.tool_end(end),
            TranscriptBlock::Question(question) => self.question(question.title.as_deref().unwrap_or_default(), question.content),
            TranscriptBlock::Denied { cancelled: true, reason, .. } => {
                vec![progress(&self.paint(Style::Yellow, &format!("  cancelled: {}", output(reason))))]
            }
            TranscriptBlock::Denied { reason, by, category, .. } => self.denied(reason, by, *category),
            TranscriptBlock::Plan(entries) => entries.iter().map(plan_entry).collect(),
            TranscriptBlock::Notice { severity, title, description } => {
                let style = match severity {
                    Severity::Info => Style::Dim,
                    Severity::Warning => Style::Yellow,
                    Severity::Error => Style::Red,
                };
                vec![progress(&self.paint(style, &output(&format!("! {title}{}", in_parentheses(*description)))))]
            }
            TranscriptBlock::CompactionEnd { outcome: CompactionOutcome::Failed, error, .. } => {
                let text = format!("! the conversation was not compacted{}", in_parentheses(*error));
                vec![progress(&self.paint(Style::Yellow, &output(&text)))]
            }
            TranscriptBlock::CompactionEnd { outcome: CompactionOutcome::Completed, before, after, .. } => {
                vec![self.remark(&remarks::compaction(*before, *after))]
            }
            TranscriptBlock::SubagentEnd(child, end) => vec![self.remark(&remarks::subagent(child, end))],
            TranscriptBlock::ModeChange(mode) => vec![self.remark(&format!("mode {mode}"))],
            TranscriptBlock::TurnEnd { reason, usage, cost, duration } => {
                let used = usage.filter(|_| self.options.watched);
                let used = used.map(|usage| self.remark(&remarks::used(Some(usage), *cost, *duration)));
                self.turn_end(reason).into_iter().chain(used).collect()
            }
            TranscriptBlock::ToolInput { .. }
            | TranscriptBlock::ToolProgress { .. }
            | TranscriptBlock::TurnStart
            | TranscriptBlock::Request { .. }
            | TranscriptBlock::Usage { .. }
            | TranscriptBlock::Retry { .. }
            | TranscriptBlock::CompactionStart
            | TranscriptBlock::CompactionEnd { .. }
            | TranscriptBlock::SubagentStart(_)
            | TranscriptBlock::Checks { .. }
            | TranscriptBlock::Queued { .. }
            | TranscriptBlock::QueuedText { .. }
            | TranscriptBlock::Unqueued { .. } => Vec::new(),
        }
    }

    /// Renders the messages that were never completed, at the end of a replay.
    pub(crate) fn incomplete(&mut self) -> Vec<RenderedText> {
        let open = std::mem::take(&mut self.incomplete);
        open.iter().map(|(_, thought, text)| self.message(*thought, &format!("{}\n", output(text)))).collect()
    }

    /// Renders the content of a permission question in full. Text that equals the call's title is
    /// omitted, because the question itself shows the title.
    pub(crate) fn question(&self, title: &str, contents: &[ToolContent]) -> Vec<RenderedText> {
        let mut rendered = Vec::new();
        for content in contents {
            match content {
                ToolContent::Diff { path, old_text, new_text } => {
                    let diff = self.diff(path, old_text.as_deref(), new_text);
                    rendered.extend(escape_question(&diff).trim_end_matches('\n').split('\n').map(|line| self.diff_line(line)));
                }
                ToolContent::Content { content } => {
                    let text = content.as_text();
                    if title != format!("`{}`", text.trim()) {
                        let text = escape_question(&text);
                        rendered.extend(text.trim_end_matches('\n').split('\n').map(|line| progress(&format!("  {line}"))));
                    }
                }
                // The command has not started, so there is no output.
                ToolContent::Terminal { .. } => {}
            }
        }
        rendered
    }

    /// Adds colours. The text must be escaped for a terminal.
    fn paint(&self, style: Style, text: &str) -> String {
        if !self.options.colour {
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

    /// Renders text of a message. The text must be escaped for its destination.
    fn message(&self, thought: bool, text: &str) -> RenderedText {
        match thought {
            false => RenderedText::Answer(text.into()),
            true => RenderedText::Progress(self.paint(Style::Dim, text)),
        }
    }

    /// Renders a user message in a replay. In a live session, it is not shown, because the user has
    /// just written it.
    fn user_message(&self, text: &str) -> Vec<RenderedText> {
        let text = output(text);
        if !(self.options.replay || self.options.conversation) || text.is_empty() {
            return Vec::new();
        }
        let lines: Vec<String> = text.lines().map(|line| self.paint(Style::Bold, &format!("> {line}"))).collect();
        vec![RenderedText::Answer(format!("\n{}\n\n", lines.join("\n")))]
    }

    /// Renders text of a message as it arrives, on its own lines.
    fn message_text(&mut self, id: &MessageId, thought: bool, text: &str) -> Vec<RenderedText> {
        if self.options.replay {
            match self.incomplete.iter_mut().find(|(open, ..)| open == id) {
                Some((.., open)) => open.push_str(text),
                None => self.incomplete.push((id.clone(), thought, text.into())),
            }
            return Vec::new();
        }
        let text = match self.options.exact && !thought {
            true => text.to_string(),
            false => self.filters.entry(id.clone()).or_default().push(text),
        };
        let text = match &mut self.markdown {
            Some(markdown) if !thought => markdown.push(&text),
            _ => text,
        };
        let continues = self.writing.as_ref().is_some_and(|(open, _)| open == id);
        let ended = if continues { None } else { self.end_line() };
        self.writing = Some((id.clone(), thought));
        ended.into_iter().chain([self.message(thought, &text)]).collect()
    }

    /// Ends the line of the message that is being written.
    fn end_line(&mut self) -> Option<RenderedText> {
        let (_, thought) = self.writing.take()?;
        Some(match (thought, &mut self.markdown) {
            (false, Some(markdown)) => RenderedText::Answer(markdown.finish()),
            (false, None) => RenderedText::Answer("\n".into()),
            (true, _) => RenderedText::Progress("\n".into()),
        })
    }

    fn message_end(&mut self, id: &MessageId, thought: bool, text: &str, discarded: bool) -> Vec<RenderedText> {
        if self.options.replay {
            self.incomplete.retain(|(open, ..)| open != id);
            let text = output(text);
            let shown = !discarded && !text.is_empty();
            return shown.then(|| self.message(thought, &format!("{text}\n"))).into_iter().collect();
        }
        self.filters.remove(id);
        let writing = self.writing.as_ref().is_some_and(|(open, _)| open == id);
        if writing { self.end_line().into_iter().collect() } else { Vec::new() }
    }

    /// Renders a line about the session, which needs no attention.
    pub(crate) fn remark(&self, text: &str) -> RenderedText {
        progress(&self.paint(Style::Dim, &format!("· {}", output_line(text))))
    }

    fn turn_end(&self, reason: &TurnEndReason<'_>) -> Option<RenderedText> {
        let stopped = match reason {
            TurnEndReason::Stopped(StopReason::EndTurn) => return None,
            // Not shown in a live session, where the prompt request returns the same error.
            TurnEndReason::Failed { .. } if !(self.options.replay || self.options.conversation) => return None,
            TurnEndReason::Failed { message, hint } => {
                return Some(progress(&self.paint(Style::Red, &output(&format!("✗ {message}{}", in_parentheses(*hint))))));
            }
            TurnEndReason::Stopped(StopReason::MaxTokens) => "the answer is truncated: it reached the model's token limit",
            TurnEndReason::Stopped(StopReason::MaxTurnRequests) => "stopped: a limit of the turn was reached",
            TurnEndReason::Stopped(StopReason::Refusal) => "the model refused",
            TurnEndReason::Stopped(StopReason::Cancelled) => "stopped",
            TurnEndReason::Cancelled => "cancelled",
            TurnEndReason::Interrupted => "interrupted: the process that ran the turn has ended",
        };
        Some(progress(&self.paint(Style::Yellow, &format!("■ {stopped}"))))
    }

    /// Renders a line with the title of a call, to which the next lines belong.
    fn call_line(&mut self, mark: &str, id: &ToolCallId, title: &str) -> RenderedText {
        self.last_call = Some((id.clone(), title.into()));
        progress(&format!("{} {}", self.paint(Style::Cyan, mark), output_line(title)))
    }

    /// Renders the result of a call. Repeats the title of the call if another call was shown since
    /// its start.
    fn tool_end(&mut self, end: &ToolEnd<'_>) -> Vec<RenderedText> {
        let content = self.tool_content(end.outcome, end.content);
        let follows = self.last_call.as_ref().is_some_and(|(id, title)| id == end.id && *title == end.title);
        let head = (!follows && !content.is_empty() && !end.title.is_empty()).then(|| self.call_line("↳", end.id, &end.title));
        head.into_iter().chain(content).collect()
    }

    /// Renders the denial of a call. The first of its kind says how to allow such calls.
    fn denied(&mut self, reason: &str, by: &str, category: Option<ToolCategory>) -> Vec<RenderedText> {
        let line = progress(&self.paint(Style::Yellow, &format!("  denied: {}", output(reason))));
        let hint = match (by, category) {
            ("nobody", Some(ToolCategory::File)) => {
                "answer at a terminal, or use --mode accept-edits, or a rule in [permissions] of the settings"
            }
            ("nobody", _) => "answer at a terminal, or use --mode auto, or a rule in [permissions] of the settings",
            ("mode", _) => "use another mode, for example --mode ask",
            ("rule", _) => "change the rule: nuncio config show",
            _ => return vec![line],
        };
        let is_new = !self.options.replay && !self.hinted.contains(&hint);
        if is_new {
            self.hinted.push(hint);
        }
        let hint = is_new.then(|| progress(&self.paint(Style::Dim, &format!("  to allow it: {hint}"))));
        std::iter::once(line).chain(hint).collect()
    }

    fn tool_content(&self, outcome: ToolOutcome, contents: &[ToolContent]) -> Vec<RenderedText> {
        let mut rendered = Vec::new();
        for content in contents {
            match content {
                ToolContent::Content { content } => rendered.push(self.tool_output(outcome, &content.as_text())),
                ToolContent::Terminal { output, .. } => rendered.push(self.tool_output(outcome, output)),
                ToolContent::Diff { path, old_text, new_text } => {
                    let diff = output(&self.diff(path, old_text.as_deref(), new_text));
                    rendered.extend(diff.lines().map(|line| self.diff_line(line)));
                }
            }
        }
        rendered
    }

    fn diff(&self, path: &Path, old_text: Option<&str>, new_text: &str) -> String {
        let name = path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string();
        let side = |text| Side::text(name.trim_start_matches('/'), text);
        patch::unified_diff(old_text.map(side), Some(side(new_text))).text
    }

    /// Renders the first lines of a tool's output, or the last lines if the call failed, followed
    /// by the exit code of a command.
    fn tool_output(&self, outcome: ToolOutcome, text: &str) -> RenderedText {
        let text = output(text);
        let (text, code) = match outcome {
            ToolOutcome::Exited(code) => {
                let code = format!("exit code: {code}");
                (text.trim_end().strip_suffix(&code).unwrap_or(&text), Some(code))
            }
            ToolOutcome::Completed | ToolOutcome::Failed => (text.as_str(), None),
        };
        let lines: Vec<&str> = text.lines().collect();
        let hidden = lines.len().saturating_sub(OUTPUT_LINES);
        let note = |which: &str| (hidden > 0).then(|| format!("… {hidden} {which} lines"));
        let (before, shown, after) = match outcome {
            ToolOutcome::Completed => (None, &lines[..lines.len() - hidden], note("more")),
            ToolOutcome::Failed | ToolOutcome::Exited(_) => (note("earlier"), &lines[hidden..], code),
        };
        let lines = before.as_deref().into_iter().chain(shown.iter().copied()).chain(after.as_deref());
        let lines: Vec<String> = lines.map(|line| format!("  {line}")).collect();
        let style = if outcome == ToolOutcome::Failed { Style::Red } else { Style::Dim };
        progress(&self.paint(style, &lines.join("\n")))
    }

    /// Renders a line of a diff. The line must be escaped for a terminal.
    pub(crate) fn diff_line(&self, line: &str) -> RenderedText {
        let style = match line.as_bytes().first() {
            Some(b'+') => Style::Green,
            Some(b'-') => Style::Red,
            Some(b'@') => Style::Cyan,
            _ => Style::Dim,
        };
        progress(&self.paint(style, &format!("  {line}")))
    }
}

fn progress(line: &str) -> RenderedText {
    RenderedText::Progress(format!("{line}\n"))
}

fn plan_entry(entry: &PlanEntry) -> RenderedText {
    let mark = match entry.status {
        PlanStatus::Completed => "✔",
        PlanStatus::InProgress => "▶",
        PlanStatus::Pending => "·",
    };
    progress(&format!("  {mark} {}", output_line(&entry.content)))
}

/// Returns ` (text)`, or an empty string for `None`.
fn in_parentheses(text: Option<&str>) -> String {
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}
