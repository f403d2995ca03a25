//! Renders the blocks of a transcript as text for a plain terminal, or for a pipe.

mod calls;
mod messages;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) use self::messages::OWN_COMMAND;
use super::cell::{CellLayout, FoldedCells};
use super::markdown::{MarkdownLayout, MarkdownStream};
use super::remarks;
use super::styled_text::StyledText;
use super::syntax::{LaterText, SyntaxThread};
use crate::content::StopReason;
use crate::event::{CompactionOutcome, Severity};
use crate::id::{MessageId, ToolCallId};
use crate::options::Mode;
use crate::terminal_text::{OutputFilter, output, output_line};
use crate::transcript::{TranscriptBlock, TurnEndReason};

/// A piece of output. Its only control sequences are nuncio's own colours.
pub(crate) enum RenderedText {
    /// Text of the answer, for standard output.
    Answer(String),
    /// Progress, for standard error.
    Progress(String),
    /// Text that is being rendered with colours.
    Later { text: LaterText, is_answer: bool },
}

impl RenderedText {
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, RenderedText::Answer(_) | RenderedText::Later { is_answer: true, .. })
    }

    /// Returns the text, whichever stream it is for. Waits for colours.
    pub(crate) fn into_text(self) -> String {
        match self {
            RenderedText::Answer(text) | RenderedText::Progress(text) => text,
            RenderedText::Later { text, .. } => text.wait(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RenderOptions {
    /// Adds colours.
    pub colour: bool,
    /// Leaves the answer unchanged, for a pipe or a file.
    pub exact: bool,
    /// Renders a stored session: whole messages, including the user's.
    pub replay: bool,
    /// Renders Markdown in answers.
    pub markdown: Option<MarkdownLayout>,
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
    /// Renders code with colours.
    pub(crate) syntax: SyntaxThread,
    /// The answer that is being written.
    markdown: MarkdownStream,
    /// The queries of the language of its open block are being compiled.
    is_prepared: bool,
    /// The message whose last line or block is not yet ended, and whether the message is a thought.
    writing: Option<(MessageId, bool)>,
    /// Incomplete messages of a replay, with their text so far: a replay shows whole messages.
    incomplete: Vec<(MessageId, bool, String)>,
    /// Calls whose permission requests were rendered with their content.
    asked: HashSet<ToolCallId>,
    /// Calls that were cancelled with their turn, which says it.
    cancelled: HashSet<ToolCallId>,
    /// Reads and searches that have ended, until something else is rendered.
    looks: Vec<StyledText>,
    /// The text of the thought that is being written.
    thought: String,
    thought_began: Instant,
    /// The thought that was rendered before its end was reported.
    ended_thought: Option<MessageId>,
    /// Attempts of the model request that failed in a row, with the reason of the last one.
    retries: Option<(usize, String)>,
    /// The kind of the rows that were rendered last.
    last: Option<RowKind>,
    /// The cells of which rows were omitted.
    pub(crate) folded: FoldedCells,
    /// How to see omitted rows, after their number.
    pub(crate) hint: String,
    /// The mode of the session, if it is known.
    pub(crate) mode: Option<Mode>,
    /// Hints how to allow denied calls that were rendered.
    hinted: Vec<&'static str>,
}

/// The kind of rows. A blank row separates rows of different kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowKind {
    User,
    Thought,
    Text,
    Call,
    Remark,
}

#[derive(Clone, Copy)]
enum Style {
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

/// Bytes of a thought that are shown while it is written.
const THOUGHT_BYTES: usize = 1 << 10;
/// Width of rows in a pipe or a file, in columns.
const PIPE_COLUMNS: usize = 80;
/// The start of the notice that a model request is sent again.
const RETRY: &str = "Retrying the model request: ";

impl TerminalRenderer {
    /// Creates a renderer. Paths below `cwd` are shown relative to it.
    pub(crate) fn new(options: RenderOptions, cwd: &Path) -> TerminalRenderer {
        TerminalRenderer {
            options,
            cwd: cwd.into(),
            filters: HashMap::new(),
            syntax: SyntaxThread::default(),
            markdown: MarkdownStream::new(),
            is_prepared: false,
            writing: None,
            incomplete: Vec::new(),
            asked: HashSet::new(),
            cancelled: HashSet::new(),
            looks: Vec::new(),
            thought: String::new(),
            thought_began: Instant::now(),
            ended_thought: None,
            retries: None,
            last: None,
            folded: FoldedCells::default(),
            hint: String::new(),
            mode: None,
            hinted: Vec::new(),
        }
    }

    /// Sets the width of the terminal, for the next lines.
    pub(crate) fn resize(&mut self, columns: usize) {
        self.options.markdown.iter_mut().for_each(|layout| layout.columns = columns);
    }

    /// Returns whether the last line that was rendered is not ended.
    pub(crate) fn is_mid_line(&self) -> bool {
        self.writing
            .as_ref()
            .is_some_and(|(_, thought)| if *thought { !self.is_watched() } else { self.options.markdown.is_none() })
    }

    /// Renders what is not complete, to be shown until it is: the open block of the answer, a
    /// thought, reads that are joined, and attempts.
    pub(crate) fn preview(&self) -> String {
        let mut rows: String = self.looks().into_iter().map(RenderedText::into_text).collect();
        if let Some((count, reason)) = &self.retries {
            rows += &format!("! attempt {} failed: {}\n", count, output_line(reason));
        }
        match (&self.writing, self.options.markdown) {
            (Some((_, false)), Some(layout)) => rows += &self.markdown.preview(layout),
            (Some((_, true)), _) => {
                let start = self.thought.ceil_char_boundary(self.thought.len().saturating_sub(THOUGHT_BYTES));
                let lines = self.thought[start..].lines().map(|line| self.paint(Style::Dim, line) + "\n");
                rows.extend(lines);
            }
            _ => {}
        }
        rows
    }

    /// Returns the end of the answer so far, if it is shown only when its block is complete.
    pub(crate) fn last_line(&self) -> &str {
        let is_answer = self.writing.as_ref().is_some_and(|(_, thought)| !thought);
        if is_answer { self.markdown.last_line() } else { "" }
    }

    /// Returns how cells are shown.
    pub(crate) fn layout(&self) -> CellLayout {
        let columns = self.options.markdown.map_or(PIPE_COLUMNS, |layout| layout.columns);
        CellLayout { columns, colour: self.options.colour, hint: self.hint.clone(), whole: self.options.replay }
    }

    /// Returns whether long texts are reduced to rows, for a person at a terminal.
    fn is_watched(&self) -> bool {
        self.options.markdown.is_some() || self.options.conversation
    }

    /// Renders a block, after what was kept for it, and with a blank row where the kind of the rows
    /// changes.
    pub(crate) fn render(&mut self, block: &TranscriptBlock<'_>) -> Vec<RenderedText> {
        let kind = match block {
            TranscriptBlock::UserMessage { .. } => RowKind::User,
            TranscriptBlock::MessageText { thought: false, .. } | TranscriptBlock::MessageEnd { thought: false, .. } => {
                RowKind::Text
            }
            TranscriptBlock::MessageText { .. } | TranscriptBlock::MessageEnd { .. } => RowKind::Thought,
            TranscriptBlock::ToolEnd(_) | TranscriptBlock::Question(_) | TranscriptBlock::Denied(_) => RowKind::Call,
            _ => RowKind::Remark,
        };
        let continues = matches!(block, TranscriptBlock::MessageText { id, .. } | TranscriptBlock::MessageEnd { id, .. }
            if self.writing.as_ref().is_some_and(|(open, _)| open == *id));
        // A thought ends when the answer begins.
        let is_thought = matches!((block, &self.writing), (TranscriptBlock::MessageText { thought: false, .. }, Some((_, true))));
        let kind = if is_thought && self.is_watched() { RowKind::Thought } else { kind };
        let rendered = self.rendered(block);
        if rendered.is_empty() && !matches!(block, TranscriptBlock::TurnEnd { .. }) {
            return rendered;
        }
        let mut all = Vec::new();
        if !self.looks.is_empty() {
            let looks = self.looks();
            self.looks.clear();
            self.separate(RowKind::Call, false, &mut all);
            all.extend(looks);
        }
        if let Some((count, reason)) = self.retries.take() {
            let times = if count == 1 { "once".into() } else { format!("{count} times") };
            let text = output_line(&format!("! the model request failed {times}: {reason}"));
            self.separate(RowKind::Remark, false, &mut all);
            all.push(progress(&self.paint(Style::Yellow, &text)));
        }
        if !rendered.is_empty() {
            self.separate(kind, continues, &mut all);
            all.extend(rendered);
        }
        all
    }

    /// Adds a blank row before rows of another kind.
    fn separate(&mut self, kind: RowKind, continues: bool, rendered: &mut Vec<RenderedText>) {
        let is_message = matches!(kind, RowKind::Text | RowKind::User);
        let is_apart = self.last.map_or(kind == RowKind::User, |last| last != kind || (is_message && !continues));
        if is_apart && self.is_watched() {
            rendered.push(progress(""));
        }
        self.last = Some(kind);
    }

    fn rendered(&mut self, block: &TranscriptBlock<'_>) -> Vec<RenderedText> {
        match block {
            TranscriptBlock::UserMessage { text, attached } => self.user_message(text, attached),
            TranscriptBlock::MessageText { id, thought, text } => self.message_text(id, *thought, text),
            TranscriptBlock::MessageEnd { id, thought, text, discarded, duration } => {
                self.message_end(id, *thought, text, *discarded, *duration)
            }
            TranscriptBlock::ToolEnd(end) => self.tool_end(end),
            // The chat shows it below the output.
            TranscriptBlock::Question(_) if self.options.conversation => Vec::new(),
            TranscriptBlock::Question(question) => {
                self.asked.insert(question.call.clone());
                self.short_question(question.title.as_deref().unwrap_or_default(), question.content)
            }
            TranscriptBlock::Denied(denial) => self.denied(denial),
            TranscriptBlock::Plan(entries) => entries.iter().map(|entry| progress(&remarks::plan_entry(entry))).collect(),
            TranscriptBlock::Notice { title, .. } if title.starts_with(RETRY) && self.is_watched() => {
                let count = self.retries.take().map_or(0, |(count, _)| count);
                self.retries = Some((count + 1, title[RETRY.len()..].into()));
                Vec::new()
            }
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
            | TranscriptBlock::ToolStart { .. }
            | TranscriptBlock::Granted { .. }
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
            | TranscriptBlock::QueuedChange { .. }
            | TranscriptBlock::Unqueued { .. } => Vec::new(),
        }
    }

    /// Adds colours. The text must be escaped for a terminal.
    fn paint(&self, style: Style, text: &str) -> String {
        if !self.options.colour {
            return text.into();
        }
        let code = match style {
            Style::Dim => 2,
            Style::Red => 31,
            Style::Green => 32,
            Style::Yellow => 33,
            Style::Cyan => 36,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
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
            TurnEndReason::Unanswered => "stopped: no answer to the permission request in time; send a message to continue",
            TurnEndReason::Interrupted => "interrupted: the process that ran the turn has ended",
        };
        Some(progress(&self.paint(Style::Yellow, &format!("■ {stopped}"))))
    }
}

fn progress(line: &str) -> RenderedText {
    RenderedText::Progress(format!("{line}\n"))
}

/// Returns ` (text)`, or an empty string for `None`.
fn in_parentheses(text: Option<&str>) -> String {
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}
