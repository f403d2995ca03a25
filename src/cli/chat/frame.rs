//! The rows below the finished output: the running work, messages that wait, permission requests,
//! the composer, candidates and a status row.

use unicode_width::UnicodeWidthStr;

use super::forms::ChatForm;
use super::question::ChatQuestion;
use super::rows::{shortened, wrapped, wrapped_words};
use super::screen::Screen;
use super::view::{ChatView, Overlay};
use super::vim::VimState;
use crate::cli::terminal::activity::CurrentWork;
use crate::cli::terminal::amounts::tokens;
use crate::cli::terminal::lines::QUIET;
use crate::cli::terminal::status_line::MARKS;
use crate::config::{EditingMode, Environment};
use crate::id::ToolCallId;
use crate::options::Mode;
use crate::terminal_text::output_line;

/// Maximum width of the rows but for the last one. A row that is wider than the terminal after a
/// resize leaves remains in the scrollback.
const ROWS_COLUMNS_MAX: usize = 78;
/// Terminals that move the cursor to another row when they wrap one below it (xterm.js), by
/// `TERM_PROGRAM`.
const MOVE_CURSOR: [&str; 3] = ["vscode", "Hyper", "Tabby"];
/// Maximum number of rows of a permission request.
const REQUEST_ROWS: usize = 20;
/// Maximum number of rows of running calls.
const CALL_ROWS: usize = 4;
/// Number of rows of a message that is being written. More of them would stay in the scrollback
/// when the terminal becomes lower than they are.
const PARTIAL_ROWS: usize = 1;

/// Returns the maximum width of the status row. Most terminals need no maximum: when they
/// become narrower and wrap a row below the cursor, the cursor stays in its row.
pub(super) fn status_columns_max(environment: &Environment) -> usize {
    let moves = environment.get("TERM_PROGRAM").is_some_and(|name| MOVE_CURSOR.contains(&name));
    if moves { ROWS_COLUMNS_MAX } else { usize::MAX }
}

impl ChatView {
    /// Prints the complete lines, and draws the rows below them, or the list on the alternate
    /// screen.
    pub(crate) fn draw(&mut self, screen: &mut Screen) {
        self.drawn_for = (self.is_quiet(), self.quits_within().is_some());
        let state = self.program_state();
        self.control += &self.notifier.program_status(state, self.info.title.as_deref().unwrap_or_default());
        self.control += &self.notifier.subagent_status(&self.activity.subagents);
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
        let (mut rows, cursor) = self.rows((columns - 1).min(ROWS_COLUMNS_MAX), height);
        rows.push(self.status_row((columns - 1).min(self.status_columns_max)));
        screen.draw(&finished, rows, cursor, (columns, height));
    }

    /// Returns the rows above the status row, and the row and column of the cursor.
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
        (rows, cursor)
    }

    fn work_rows(&self, columns: usize, height: usize) -> Vec<String> {
        let mut rows: Vec<String> = self.plan.rows().iter().map(|row| shortened(row, columns)).collect();
        let running = self.work();
        let hidden = running.len().saturating_sub(CALL_ROWS);
        for (at, work) in running.iter().enumerate().skip(hidden) {
            let is_newest = at + 1 == running.len();
            let seconds = work.since.elapsed().as_secs();
            let detail = if is_newest { &work.detail } else { work.last() };
            let title_columns = if detail.is_empty() { columns - 12 } else { columns / 2 };
            let title = shortened(&output_line(&work.title), title_columns);
            let earlier = if at == hidden && hidden > 0 { format!("  ({hidden} earlier calls)") } else { String::new() };
            let mark = MARKS[seconds as usize % MARKS.len()];
            let text = format!("{mark} {title}  {seconds} s{earlier}  {}", output_line(detail));
            rows.push(shortened(text.trim_end(), columns));
            if is_newest {
                rows.extend(work.output.iter().map(|line| self.dim(&shortened(&format!("  {}", output_line(line)), columns))));
            }
        }
        let waiting: Vec<String> = self.queue.rows().map(|row| self.dim(&shortened(&format!("  {row}"), columns))).collect();
        rows.extend(waiting);
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

    /// Returns the row of the state, in which a mode that does not ask has a colour.
    fn status_row(&self, columns: usize) -> String {
        let row = shortened(&self.status(columns), columns);
        let code = match self.info.mode.parse() {
            Ok(Mode::Auto) => 31,
            Ok(Mode::Plan) => 34,
            _ => return self.dim(&row),
        };
        let mode = format!(" · {}", self.info.mode);
        match row.split_once(&mode).filter(|_| self.colour) {
            Some((before, after)) => format!("{}\x1b[{code}m{mode}\x1b[0m{}", self.dim(before), self.dim(after)),
            None => self.dim(&row),
        }
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

    /// Returns the work to show: the running shell command of the user, else the calls of the turn
    /// but for those that wait for an answer, else the wait for the model.
    pub(crate) fn work(&self) -> Vec<CurrentWork> {
        if let Some((work, _)) = self.shell.front() {
            return vec![work.clone()];
        }
        let asks = |id: &ToolCallId| self.questions.iter().any(|question| question.call == *id);
        let calls = self.activity.calls().filter(|(id, _)| self.busy && !asks(id));
        let mut work: Vec<CurrentWork> = calls.map(|(_, work)| work.clone()).collect();
        if work.is_empty() && self.busy && self.questions.is_empty() {
            work.extend(self.activity.current());
        }
        work
    }

    /// Returns the directory of the session for people, and its branch.
    pub(crate) fn place(&self) -> String {
        let cwd = &self.info.cwd;
        let directory = cwd.file_name().map_or_else(|| cwd.to_string_lossy(), |name| name.to_string_lossy());
        match &self.branch {
            Some(branch) => output_line(&format!("{directory} ({branch})")),
            None => output_line(&directory),
        }
    }

    fn dim(&self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.into() }
    }
}
