//! Renders the blocks of a transcript as text for a plain terminal, or for a pipe.

mod calls;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::markdown::{MarkdownBlock, MarkdownLayout, MarkdownStream, fence_language};
use super::remarks;
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
    /// The call whose title was rendered last, with that title.
    last_call: Option<(ToolCallId, String)>,
    /// The mode of the session, if it is known.
    pub(crate) mode: Option<Mode>,
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

/// Maximum number of lines shown of a long text: the first ones, or a command's last ones.
const OUTPUT_LINES: usize = 12;

/// Maximum number of lines of a user message that is shown whole.
const MESSAGE_LINES: usize = 20;

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
            last_call: None,
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
        self.writing.as_ref().is_some_and(|(_, thought)| *thought || self.options.markdown.is_none())
    }

    /// Renders the block of Markdown that is being written, to be shown until it is complete.
    pub(crate) fn preview(&self) -> String {
        let is_answer = self.writing.as_ref().is_some_and(|(_, thought)| !thought);
        self.options.markdown.filter(|_| is_answer).map(|layout| self.markdown.preview(layout)).unwrap_or_default()
    }

    /// Returns the end of the answer so far, if it is shown only when its block is complete.
    pub(crate) fn last_line(&self) -> &str {
        let is_answer = self.writing.as_ref().is_some_and(|(_, thought)| !thought);
        if is_answer { self.markdown.last_line() } else { "" }
    }

    /// Makes the next line about a call begin with its title.
    pub(crate) fn name_next_call(&mut self) {
        self.last_call = None;
    }

    /// Renders a block. The next line about a call that follows lines about something else begins
    /// with the call's title.
    pub(crate) fn render(&mut self, block: &TranscriptBlock<'_>) -> Vec<RenderedText> {
        let rendered = self.rendered(block);
        let is_about_call = match block {
            TranscriptBlock::ToolStart { .. }
            | TranscriptBlock::ToolEnd(_)
            | TranscriptBlock::Question(_)
            | TranscriptBlock::Granted { .. }
            | TranscriptBlock::Denied(_) => true,
            TranscriptBlock::SubagentEnd(child, _) => self.last_call.as_ref().is_some_and(|(last, _)| *last == child.tool_call_id),
            _ => false,
        };
        if !is_about_call && !rendered.is_empty() {
            self.name_next_call();
        }
        rendered
    }

    fn rendered(&mut self, block: &TranscriptBlock<'_>) -> Vec<RenderedText> {
        match block {
            TranscriptBlock::UserMessage { text } => self.user_message(text),
            TranscriptBlock::MessageText { id, thought, text } => self.message_text(id, *thought, text),
            TranscriptBlock::MessageEnd { id, thought, text, discarded } => self.message_end(id, *thought, text, *discarded),
            TranscriptBlock::ToolStart { id, title, .. } => vec![self.call_line("●", id, title)],
            TranscriptBlock::ToolEnd(end) if end.already_shown => Vec::new(),
            TranscriptBlock::ToolEnd(end) => self.tool_end(end),
            TranscriptBlock::Question(question) => {
                let title = question.title.as_deref().unwrap_or_default();
                // The next lines would be read as those of the call in the question.
                self.last_call = Some((question.call.clone(), title.into()));
                self.question(title, question.content)
            }
            TranscriptBlock::Granted { call, title, choice } => {
                let answer = progress(&self.paint(Style::Dim, &format!("  answered: {}", output_line(choice))));
                self.repeated_title(call, title).into_iter().chain([answer]).collect()
            }
            TranscriptBlock::Denied(denial) => self.denied(denial),
            TranscriptBlock::Plan(entries) => entries.iter().map(|entry| progress(&remarks::plan_entry(entry))).collect(),
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
        let mut lines: Vec<String> = text.lines().map(|line| self.paint(Style::Bold, &format!("> {line}"))).collect();
        // A paste would push the conversation out of the terminal's history.
        if self.options.conversation && lines.len() > MESSAGE_LINES {
            let hidden = lines.split_off(OUTPUT_LINES).len();
            lines.push(self.paint(Style::Dim, &format!("  … {hidden} more lines")));
        }
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
        let continues = self.writing.as_ref().is_some_and(|(open, _)| open == id);
        let mut rendered = if continues { Vec::new() } else { self.end_line() };
        self.writing = Some((id.clone(), thought));
        if thought || self.options.markdown.is_none() {
            rendered.push(self.message(thought, &text));
        } else {
            let blocks = self.markdown.push(&text);
            rendered.extend(self.blocks(blocks));
            self.prepare_colours();
        }
        rendered
    }

    /// Renders blocks of the answer.
    fn blocks(&mut self, blocks: Vec<MarkdownBlock>) -> Vec<RenderedText> {
        let layout = self.options.markdown.unwrap_or_default();
        self.is_prepared &= blocks.is_empty();
        let rendered = blocks.into_iter().map(|block| match layout.colour && block.has_code() {
            true => {
                let text = self.syntax.render(move |syntax| block.render(layout, syntax));
                RenderedText::Later { text, is_answer: true }
            }
            false => RenderedText::Answer(block.render(layout, None)),
        });
        rendered.filter(|piece| !matches!(piece, RenderedText::Answer(text) if text.is_empty())).collect()
    }

    /// Compiles the queries for the open block, if it is code.
    fn prepare_colours(&mut self) {
        let is_coloured = self.options.markdown.is_some_and(|layout| layout.colour);
        if let (true, false, Some(line)) = (is_coloured, self.is_prepared, self.markdown.first_line()) {
            fence_language(line).into_iter().for_each(|language| self.syntax.prepare(language));
            self.is_prepared = true;
        }
    }

    /// Ends the line or the block of the message that is being written.
    fn end_line(&mut self) -> Vec<RenderedText> {
        match self.writing.take() {
            None => Vec::new(),
            Some((_, true)) => vec![RenderedText::Progress("\n".into())],
            Some((_, false)) if self.options.markdown.is_none() => vec![RenderedText::Answer("\n".into())],
            Some((_, false)) => {
                let blocks = self.markdown.finish();
                self.blocks(blocks)
            }
        }
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
        if writing { self.end_line() } else { Vec::new() }
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
