//! The state of the chat and its rows: finished output, and below it the running work, messages
//! that wait, permission requests, the composer and a status row.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::composer::Composer;
use super::question::ChatQuestion;
use super::rows::{shortened, wrapped};
use super::screen::Screen;
use crate::cli::terminal::activity::TurnActivity;
use crate::cli::terminal::amounts::tokens;
use crate::cli::terminal::renderer::TerminalRenderer;
use crate::cli::terminal::status_line::MARKS;
use crate::content::Cost;
use crate::error::Error;
use crate::event::{Body, Event};
use crate::id::MessageId;
use crate::terminal_text::{output, output_line};
use crate::transcript::{Transcript, TranscriptBlock};

/// Maximum number of rows of a permission request's content, and of waiting messages.
const CONTENT_ROWS: usize = 12;
const QUEUE_ROWS: usize = 4;
/// Number of rows of a message that is being written.
const PARTIAL_ROWS: usize = 6;

/// The state of the chat that is shown.
pub(crate) struct ChatView {
    transcript: Transcript,
    renderer: TerminalRenderer,
    activity: TurnActivity,
    pub composer: Composer,
    pub questions: Vec<ChatQuestion>,
    /// The messages that wait, oldest first.
    queue: Vec<(MessageId, String)>,
    /// Rendered output that is not printed yet. Its last line may not be complete.
    output: String,
    pub busy: bool,
    pub model: String,
    pub mode: String,
    /// Tokens in use, and of the context window.
    context: (u64, u64),
    cost: Option<Cost>,
    colour: bool,
    pub last_key: Instant,
    pub history_file: PathBuf,
}

impl ChatView {
    pub(crate) fn new(renderer: TerminalRenderer, colour: bool, history_file: PathBuf) -> ChatView {
        ChatView {
            transcript: Transcript::default(),
            renderer,
            activity: TurnActivity::default(),
            composer: Composer::new(super::history::load(&history_file)),
            questions: Vec::new(),
            queue: Vec::new(),
            output: String::new(),
            busy: false,
            model: String::new(),
            mode: String::new(),
            context: (0, 0),
            cost: None,
            colour,
            last_key: Instant::now(),
            history_file,
        }
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, event: &Event) {
        if let Body::PermissionResolved { permission_id: Some(id), .. } = &event.body {
            self.questions.retain(|question| question.id != *id);
        }
        let Body::MessageCompleted { message_id, .. } = &event.body else { return self.blocks(event) };
        self.queue.retain(|(queued, _)| queued != message_id);
        self.blocks(event);
    }

    fn blocks(&mut self, event: &Event) {
        let mut transcript = std::mem::take(&mut self.transcript);
        for block in transcript.apply(event) {
            self.activity.apply(&block);
            self.block(&block);
            for piece in self.renderer.render(&block) {
                self.output.push_str(piece.text());
            }
        }
        self.transcript = transcript;
    }

    fn block(&mut self, block: &TranscriptBlock<'_>) {
        match block {
            TranscriptBlock::TurnStart => self.busy = true,
            TranscriptBlock::TurnEnd { cost, .. } => {
                self.busy = false;
                self.questions.clear();
                self.cost = Cost::sum(self.cost, *cost);
            }
            TranscriptBlock::Request { model } => self.model = (*model).into(),
            TranscriptBlock::Usage { context_tokens, context_window, .. } => self.context = (*context_tokens, *context_window),
            TranscriptBlock::ModeChange(mode) => self.mode = mode.to_string(),
            TranscriptBlock::Queued { id, text } => self.queue.push(((*id).clone(), text.clone())),
            TranscriptBlock::QueuedText { id, text } => {
                self.queue.iter_mut().filter(|(queued, _)| queued == *id).for_each(|(_, shown)| shown.clone_from(text));
            }
            TranscriptBlock::Unqueued { id } => self.queue.retain(|(queued, _)| queued != *id),
            TranscriptBlock::Question(question) => {
                let title = question.title.as_deref().unwrap_or("the tool call");
                let content = self.renderer.question(title, question.content);
                let content: String = content.iter().map(|piece| piece.text()).collect();
                let content = content.lines().map(String::from).collect();
                self.questions.push(ChatQuestion::new(question.id.clone(), title, content, question.options.to_vec()));
            }
            _ => {}
        }
    }

    /// Removes and returns the messages that wait, newest first.
    pub(crate) fn take_queued(&mut self) -> Vec<(MessageId, String)> {
        std::mem::take(&mut self.queue).into_iter().rev().collect()
    }

    /// Prints lines of the chat itself, before the line that is being written.
    pub(crate) fn print(&mut self, text: &str) {
        let complete = self.output.rfind('\n').map_or(0, |end| end + 1);
        self.output.insert_str(complete, &output(text));
    }

    /// Prints an error.
    pub(crate) fn error(&mut self, error: &Error) {
        self.print(&crate::cli::errors::text(&error.message, error.hint.as_deref()));
    }

    /// Returns when the shown seconds change.
    pub(crate) fn next_tick(&self) -> Option<Duration> {
        let since = self.activity.current().filter(|_| self.busy)?.since.elapsed();
        Some(Duration::from_nanos(1_000_000_000 - u64::from(since.subsec_nanos())))
    }

    /// Returns the output that is not printed yet.
    pub(crate) fn rest(&mut self) -> String {
        let rest = std::mem::take(&mut self.output);
        if rest.is_empty() || rest.ends_with('\n') { rest } else { rest + "\n" }
    }

    /// Prints the complete lines, and draws the rows below them.
    pub(crate) fn draw(&mut self, screen: &mut Screen) {
        let size = crossterm::terminal::size().ok().filter(|(columns, height)| *columns > 0 && *height > 0);
        let (columns, height) = size.unwrap_or((80, 24));
        let (columns, height) = (usize::from(columns).max(20), usize::from(height).max(6));
        let complete = self.output.rfind('\n').map_or(0, |end| end + 1);
        let finished: String = self.output.drain(..complete).collect();
        let mut rows = wrapped(&self.output, columns);
        rows.drain(..rows.len().saturating_sub(PARTIAL_ROWS));
        rows.retain(|row| !row.is_empty());
        rows.extend(self.work_rows(columns));
        let composer = self.composer.rows(columns - 2);
        // The composer has priority; the rows above it are cut.
        let shown = composer.rows.len().min(height / 2);
        let first = (composer.cursor.0 + 1).saturating_sub(shown);
        let above = rows.len().saturating_sub(height - 2 - shown);
        rows.drain(..above);
        let cursor = (rows.len() + composer.cursor.0 - first, composer.cursor.1 + 2);
        for (number, row) in composer.rows.iter().enumerate().skip(first).take(shown) {
            rows.push(format!("{} {row}", if number == 0 { ">" } else { " " }));
        }
        rows.push(self.dim(&shortened(&self.status(columns), columns)));
        screen.draw(&finished, rows, cursor);
    }

    /// Returns the rows about the running work.
    fn work_rows(&self, columns: usize) -> Vec<String> {
        let mut rows = Vec::new();
        if let Some(work) = self.activity.current().filter(|_| self.busy && self.questions.is_empty()) {
            let seconds = work.since.elapsed().as_secs();
            let title = shortened(&output_line(&work.title), columns / 2);
            let text = format!("{} {title}  {seconds} s  {}", MARKS[seconds as usize % MARKS.len()], output_line(&work.detail));
            rows.push(shortened(text.trim_end(), columns));
        }
        let hidden = self.queue.len().saturating_sub(QUEUE_ROWS);
        let waiting = self.queue.iter().skip(hidden).map(|(_, text)| format!("  waits: {}", output_line(text)));
        rows.extend(waiting.map(|row| self.dim(&shortened(&row, columns))));
        if let Some(question) = self.questions.first() {
            let question = question.rows(self.questions.len() - 1, CONTENT_ROWS, columns);
            rows.extend(question.iter().flat_map(|row| wrapped(row, columns)));
        }
        rows
    }

    fn status(&self, columns: usize) -> String {
        let (used, window) = self.context;
        let context = (used > 0).then(|| match window {
            0 => format!("{} tokens", tokens(used)),
            window => format!("{} of {} tokens", tokens(used), tokens(window)),
        });
        let keys = match (self.questions.first(), self.busy) {
            (Some(question), _) if question.focused => "digits answer · Esc: to the text",
            (Some(_), _) => "Tab: to the request",
            (None, true) => "Esc stops · Enter joins · Tab waits",
            (None, false) => "/help",
        };
        let cost = self.cost.map(|cost| cost.to_string());
        let model = shortened(&self.model, columns / 3);
        let parts = [Some(self.mode.clone()), Some(model), context, cost, Some(keys.into())];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        format!("  {}", output_line(&parts.join(" · ")))
    }

    fn dim(&self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.into() }
    }
}
