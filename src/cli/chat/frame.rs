//! The rows below the finished output: the running work, messages that wait, permission requests,
//! the composer, candidates and a status row.

use unicode_width::UnicodeWidthStr;

use super::forms::ChatForm;
use super::question::ChatQuestion;
use super::rows::{shortened, wrapped, wrapped_words};
use super::screen::Screen;
use super::view::{ChatView, Overlay};
use super::vim::VimState;
use crate::cli::terminal::amounts::tokens;
use crate::cli::terminal::lines::QUIET;
use crate::cli::terminal::status_line::MARKS;
use crate::config::EditingMode;
use crate::terminal_text::output_line;

/// Maximum width of the rows. A row that is wider than the terminal after a resize leaves remains
/// in the scrollback.
const ROWS_COLUMNS_MAX: usize = 78;
/// Maximum number of rows of a permission request, and of waiting messages.
const REQUEST_ROWS: usize = 20;
const QUEUE_ROWS: usize = 4;
/// Maximum number of rows of running calls.
const CALL_ROWS: usize = 4;
/// Number of rows of a message that is being written. More of them would stay in the scrollback
/// when the terminal becomes lower than they are.
const PARTIAL_ROWS: usize = 1;

impl ChatView {
    /// Prints the complete lines, and draws the rows below them, or the list on the alternate
    /// screen.
    pub(crate) fn draw(&mut self, screen: &mut Screen) {
        self.drawn_for = (self.is_quiet(), self.quits_within().is_some());
        let state = self.program_state();
        self.control += &self.notifier.program_status(state, self.info.title.as_deref().unwrap_or_default());
        screen.control(&std::mem::take(&mut self.control));
        let size = crossterm::terminal::size().ok().filter(|(columns, height)| *columns > 0 && *height > 0);
        let (columns, height) = size.unwrap_or((80, 24));
        let (columns, height) = (usize::from(columns).max(20), usize::from(height).max(6));
        self.renderer.resize(columns);
        match &mut self.overlay {
            Some(Overlay::Text(pager)) => return screen.draw_overlay(pager.rows(columns - 1, height)),
            Some(Overlay::Sessions(picker)) => return screen.draw_overlay(picker.rows(columns - 1, height)),
            Some(Overlay::Hunks(review)) => {
                let is_quiet = self.last_input.elapsed() >= QUIET;
                return screen.draw_overlay(review.rows(columns - 1, height, is_quiet));
            }
            None => {}
        }
        let finished = self.output.take_complete();
        let (rows, cursor) = self.rows((columns - 1).min(ROWS_COLUMNS_MAX), height);
        screen.draw(&finished, rows, cursor, (columns, height));
    }

    /// Returns the rows, and the row and column of the cursor.
    fn rows(&self, columns: usize, height: usize) -> (Vec<String>, (usize, usize)) {
        let preview = self.renderer.preview();
        let mut rows: Vec<String> =
            self.output.partial_line().lines().chain(preview.lines()).flat_map(|line| wrapped(line, columns)).collect();
        rows.drain(..rows.len().saturating_sub(PARTIAL_ROWS));
        rows.retain(|row| !row.is_empty());
        rows.extend(self.work_rows(columns, height));
        let composer = self.composer.rows(columns - 2);
        // The composer has priority; the rows above it are cut.
        let shown = composer.rows.len().min(height / 2);
        let first = (composer.cursor.0 + 1).saturating_sub(shown);
        let candidates = match &self.completion {
            Some(completion) => completion.rows(columns, height - 2 - shown),
            None => (Vec::new(), 0),
        };
        let space = (height - 2 - shown - usize::from(!self.status_text.is_empty())).saturating_sub(candidates.0.len());
        rows.drain(..rows.len().saturating_sub(space));
        let cursor = (rows.len() + composer.cursor.0 - first, composer.cursor.1 + 2);
        let mark = self.mark();
        for (number, row) in composer.rows.iter().enumerate().skip(first).take(shown) {
            rows.push(format!("{} {row}", if number == 0 { mark } else { " " }));
        }
        let (candidates, selected) = candidates;
        rows.extend(candidates.into_iter().enumerate().map(|(at, row)| if at == selected { row } else { self.dim(&row) }));
        if !self.status_text.is_empty() {
            rows.push(self.dim(&shortened(&format!("  {}", self.status_text), columns)));
        }
        rows.push(self.dim(&shortened(&self.status(columns), columns)));
        (rows, cursor)
    }

    fn work_rows(&self, columns: usize, height: usize) -> Vec<String> {
        let mut rows = Vec::new();
        let running = self.work();
        let hidden = running.len().saturating_sub(CALL_ROWS);
        for (at, work) in running.iter().skip(hidden).enumerate() {
            let seconds = work.since.elapsed().as_secs();
            let title = shortened(&output_line(&work.title), columns / 2);
            let earlier = if at == 0 && hidden > 0 { format!("  ({hidden} earlier calls)") } else { String::new() };
            let mark = MARKS[seconds as usize % MARKS.len()];
            let text = format!("{mark} {title}  {seconds} s{earlier}  {}", output_line(&work.detail));
            rows.push(shortened(text.trim_end(), columns));
        }
        if let Some((work, _)) = self.shell.front() {
            rows.clear();
            let seconds = work.since.elapsed().as_secs();
            let title = shortened(&output_line(&work.title), columns - 12);
            rows.push(format!("{} {title}  {seconds} s", MARKS[seconds as usize % MARKS.len()]));
            rows.extend(work.detail.lines().map(|line| shortened(&format!("  {line}"), columns)));
        }
        let hidden = self.queue.len().saturating_sub(QUEUE_ROWS);
        let waiting = self.queue.iter().skip(hidden).map(|(_, text)| format!("  waits: {}", output_line(text)));
        rows.extend(waiting.map(|row| self.dim(&shortened(&row, columns))));
        if let Some(question) = self.questions.first() {
            rows.extend(self.question_rows(question, columns, height));
        }
        if let Some(form) = &self.form {
            rows.extend(form.text().lines().flat_map(|row| wrapped(row, columns)));
        }
        if !self.attached.is_empty() {
            let names: Vec<String> = self.attached.iter().map(|name| output_line(name)).collect();
            rows.push(shortened(&format!("  attached: {}", names.join(", ")), columns));
        }
        rows
    }

    /// Returns the rows of a request, which a bar marks.
    fn question_rows(&self, question: &ChatQuestion, columns: usize, height: usize) -> Vec<String> {
        let (bar, title_colour, end) =
            if self.colour { ("\x1b[33m┃\x1b[0m ", "\x1b[1;33m", "\x1b[0m") } else { ("┃ ", "", "") };
        let columns = columns - 2;
        let (title, content, choices) =
            question.rows(self.questions.len() - 1, REQUEST_ROWS.min(height.saturating_sub(4)), columns);
        let title = wrapped_words(&title, columns, 2).into_iter().map(|row| format!("{title_colour}{row}{end}"));
        let rest = content.iter().chain(&choices).flat_map(|row| wrapped(row, columns));
        title.chain(rest).map(|row| format!("{bar}{row}")).collect()
    }

    /// Returns the mark before the text: `?` if it does not go to the agent.
    pub(crate) fn mark(&self) -> &'static str {
        let for_form = self.form.as_ref().is_some_and(ChatForm::is_focused);
        if self.reason.is_some() || for_form { "?" } else { ">" }
    }

    fn status(&self, columns: usize) -> String {
        let (used, window) = self.context;
        let context = (used > 0).then(|| match window {
            0 => format!("{} tokens", tokens(used)),
            window => format!("{}% of {}", (used * 100).div_ceil(window), tokens(window)),
        });
        let keys = match (self.questions.first(), self.busy) {
            _ if self.quits_within().is_some() => "Ctrl-C again quits",
            _ if self.reason.is_some() => "Enter rejects with this reason · Esc",
            _ if self.mark() == "?" && self.composer.is_empty() && !self.is_quiet() => "Tab: to the text · Esc declines",
            _ if self.mark() == "?" => "Enter: the next field · Tab: to the text · Esc declines",
            _ if self.completion.is_some() => "Tab completes · Up and Down choose · Esc",
            (Some(question), _) if question.focused && !self.is_quiet() => "Esc: to the text",
            (Some(question), _) if question.focused => "digits answer · Esc: to the text",
            (Some(_), _) => "Tab: to the request",
            (None, _) if !self.shell.is_empty() => "Esc stops the command",
            (None, _) if self.form.is_some() => "Tab: to the form",
            (None, true) => "Esc stops · Enter joins · Tab waits",
            (None, false) => "? keys · /help",
        };
        let cost = self.cost.map(|cost| cost.to_string());
        let model = self.info.agent_name().or_else(|| self.info.model.clone()).unwrap_or_default();
        let model = shortened(&model, columns * 2 / 5);
        // The last parts are omitted on a narrow terminal.
        let jobs = match self.jobs.len() {
            0 => None,
            1 => Some("1 job".into()),
            several => Some(format!("{several} jobs")),
        };
        let editing = (self.keys.editing == EditingMode::Vim && self.vim != VimState::Insert).then(|| "NORMAL".into());
        let parts =
            [Some(keys.into()), editing, Some(self.info.mode.clone()), jobs, Some(model), context, cost, Some(self.place())];
        let mut row = String::new();
        for part in parts.into_iter().flatten().filter(|part| !part.is_empty()) {
            let part = output_line(&part);
            if row.is_empty() || row.width() + part.width() + 5 <= columns {
                row += &format!("{}{part}", if row.is_empty() { "  " } else { " · " });
            }
        }
        row
    }

    fn dim(&self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.into() }
    }
}
