//! A long text on the alternate screen, with a search.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::rows::{shortened, wrapped};
use crate::cli::terminal::syntax::LaterText;

/// The text, the row at the top of the screen, and the search.
pub(crate) struct Pager {
    text: String,
    /// The text with the colours of its syntax, which replaces `text` once it is ready.
    later: Option<LaterText>,
    /// Ctrl-O shows the whole conversation.
    has_more: bool,
    columns: usize,
    height: usize,
    rows: Vec<String>,
    first: usize,
    /// The line of the text that is shown first when the rows are made.
    line: usize,
    search: String,
    is_typing: bool,
}

/// The action of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PagerAction {
    None,
    Close,
    /// Shows the whole conversation.
    More,
}

impl Pager {
    /// Creates a pager that begins at a line of a text, which has no control sequences but colours.
    pub(crate) fn new(text: String, line: usize, has_more: bool) -> Pager {
        let (search, rows) = (String::new(), Vec::new());
        Pager { text, later: None, has_more, columns: 0, height: 1, rows, first: 0, line, search, is_typing: false }
    }

    /// Replaces the text once it has colours.
    pub(crate) fn coloured(self, later: LaterText) -> Pager {
        Pager { later: Some(later), ..self }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> PagerAction {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if self.is_typing && !is_control {
            match key.code {
                KeyCode::Esc => (self.is_typing, self.search) = (false, String::new()),
                KeyCode::Enter => {
                    self.is_typing = false;
                    self.find(self.first, true);
                }
                KeyCode::Backspace => drop(self.search.pop()),
                KeyCode::Char(character) => self.search.push(character),
                _ => {}
            }
            return PagerAction::None;
        }
        match key.code {
            KeyCode::Char('o') if is_control => return if self.has_more { PagerAction::More } else { PagerAction::Close },
            KeyCode::Esc | KeyCode::Char('q') => return PagerAction::Close,
            KeyCode::Char('c' | 'd') if is_control => return PagerAction::Close,
            KeyCode::Char('/') => (self.is_typing, self.search) = (true, String::new()),
            KeyCode::Char('n') => self.find(self.first + 1, true),
            KeyCode::Char('N') => self.find(self.first, false),
            KeyCode::Up | KeyCode::Char('k') => self.first = self.first.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first += 1,
            KeyCode::PageUp | KeyCode::Char('b') => self.first = self.first.saturating_sub(self.height),
            KeyCode::PageDown | KeyCode::Char(' ') => self.first += self.height,
            KeyCode::Home | KeyCode::Char('g') => self.first = 0,
            KeyCode::End | KeyCode::Char('G') => self.first = usize::MAX,
            _ => {}
        }
        self.first = self.first.min(self.rows.len().saturating_sub(self.height));
        PagerAction::None
    }

    /// Moves to the next row, or to the one before, that contains the search.
    fn find(&mut self, from: usize, forward: bool) {
        let search = self.search.to_lowercase();
        let is_found = |row: &String| plain(row).to_lowercase().contains(&search);
        let from = from.min(self.rows.len());
        let found = match forward {
            true => self.rows[from..].iter().position(is_found).map(|at| from + at),
            false => self.rows[..from].iter().rposition(is_found),
        };
        self.first = found.unwrap_or(self.first);
    }

    /// Returns the rows for a screen of this size.
    pub(crate) fn rows(&mut self, columns: usize, height: usize) -> Vec<String> {
        self.height = height.saturating_sub(1).max(1);
        let ready = self.later.as_ref().and_then(LaterText::ready);
        if self.columns != columns || ready.is_some() {
            if let Some(text) = ready {
                (self.text, self.later) = (text, None);
            }
            let line_of = |rows: &[Vec<String>], line: usize| rows.iter().take(line).map(Vec::len).sum();
            let lines: Vec<Vec<String>> = self.text.lines().map(|line| wrapped(line, columns)).collect();
            self.first = if self.columns == 0 { line_of(&lines, self.line) } else { self.first };
            (self.columns, self.rows) = (columns, lines.into_iter().flatten().map(reset).collect());
        }
        self.first = self.first.min(self.rows.len().saturating_sub(self.height));
        let mut shown: Vec<String> = self.rows.iter().skip(self.first).take(self.height).cloned().collect();
        shown.resize(self.height, String::new());
        let last = (self.first + self.height).min(self.rows.len());
        let more = if self.has_more { " · Ctrl-O: the conversation" } else { "" };
        let status = match self.is_typing {
            true => format!("/{}", self.search),
            false => format!("{last}/{} · Esc closes · / searches, n and N go on{more}", self.rows.len()),
        };
        shown.push(shortened(&status, columns));
        shown
    }
}

/// Ends the colours of a row.
fn reset(row: String) -> String {
    if row.contains('\x1b') { row + "\x1b[0m" } else { row }
}

/// Returns a row without its colours.
fn plain(row: &str) -> String {
    crate::terminal_text::output(row)
}
