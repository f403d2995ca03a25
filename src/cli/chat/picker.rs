//! The list of sessions to continue, with a filter.

use std::path::{Path, PathBuf};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio_util::sync::{CancellationToken, DropGuard};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::rows::shortened;
use crate::api::{ListedSession, SessionStatus};
use crate::cli::terminal::amounts::age;
use crate::content::Cost;
use crate::id::SessionId;
use crate::terminal_text::output_line;

/// A shorter filter is not searched in messages.
const SEARCHED_CHARS_MIN: usize = 2;

/// A session of the list.
pub(crate) struct PickerRow {
    id: SessionId,
    cwd: PathBuf,
    title: String,
    /// Time since the last change.
    age: String,
    state: &'static str,
    /// The process that owns the session.
    pid: Option<String>,
    /// The hosted agent, or the model of the newest request.
    works: Option<String>,
    turns: u64,
    cost: Option<Cost>,
    /// The part of a message that has the words of the filter.
    excerpt: Option<String>,
}

impl PickerRow {
    pub(crate) fn new(session: ListedSession) -> PickerRow {
        let activity = &session.activity;
        let state = match (activity.waiting(), activity.status()) {
            (true, _) => "waiting",
            (false, SessionStatus::Busy) => "busy",
            (false, SessionStatus::Idle) => "open",
            (false, SessionStatus::None) => "",
        };
        let (turns, model) = activity.turns();
        PickerRow {
            title: output_line(session.title.as_deref().unwrap_or_default()),
            age: age(&session.updated_at),
            state,
            pid: activity.owner_pid().map(|pid| format!("pid {pid}")),
            works: activity.agent().or(model.and_then(|model| model.rsplit('/').next())).map(output_line),
            turns,
            cost: activity.cost(),
            excerpt: session.excerpt.as_deref().map(output_line),
            id: session.session_id,
            cwd: session.cwd,
        }
    }

    fn matches(&self, filter: &str) -> bool {
        let works = self.works.as_deref().unwrap_or_default();
        let text = format!("{} {} {} {works}", self.title, self.cwd.display(), self.id.as_str()).to_lowercase();
        filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }

    fn row(&self, with_directory: bool, columns: usize) -> String {
        let (title, padding) = self.title(columns);
        let facts = match &self.excerpt {
            Some(excerpt) => format!("“{excerpt}”"),
            None => self.facts(with_directory),
        };
        shortened(format!("{:>6}  {title}{padding}  {facts}", self.age).trim_end(), columns)
    }

    /// Returns the title, and the spaces that align what follows.
    fn title(&self, columns: usize) -> (String, String) {
        let id = output_line(self.id.as_str());
        let title = shortened(if self.title.is_empty() { &id } else { &self.title }, (columns / 2).max(16));
        let padding = " ".repeat((columns / 2).max(16).saturating_sub(title.width()));
        (title, padding)
    }

    fn facts(&self, with_directory: bool) -> String {
        let directory = with_directory.then(|| output_line(&self.cwd.to_string_lossy()));
        let cost = self.cost.map(|cost| cost.to_string());
        let turns = match self.turns {
            0 => None,
            1 => Some("1 turn".into()),
            several => Some(format!("{several} turns")),
        };
        let state = Some(self.state.to_owned()).filter(|state| !state.is_empty());
        let facts = [state, self.works.clone(), turns, directory, cost, self.pid.clone()];
        facts.into_iter().flatten().collect::<Vec<String>>().join(" · ")
    }
}

/// The action of a key in the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PickerAction {
    None,
    Close,
    Open(SessionId),
    /// The filter has changed: the texts of the sessions are searched for it.
    Search,
}

/// The list, its filter and the selected session.
pub(crate) struct SessionPicker {
    sessions: Vec<PickerRow>,
    /// The directory whose sessions are listed first.
    here: PathBuf,
    everywhere: bool,
    filter: String,
    selected: usize,
    /// Sessions whose title or messages have the words of the filter.
    found: Vec<PickerRow>,
    /// Cancelled when the filter changes. The search runs until it is missing.
    search: Option<DropGuard>,
}

impl SessionPicker {
    /// Creates a list of the sessions of one directory, or of all if it has none.
    pub(crate) fn new(sessions: Vec<PickerRow>, here: &Path) -> SessionPicker {
        let everywhere = !sessions.iter().any(|session| session.cwd == here);
        SessionPicker {
            sessions,
            here: here.into(),
            everywhere,
            filter: String::new(),
            selected: 0,
            found: Vec::new(),
            search: None,
        }
    }

    fn shown(&self) -> Vec<&PickerRow> {
        let in_place = |session: &&PickerRow| self.everywhere || session.cwd == self.here;
        let known: Vec<&PickerRow> = self.sessions.iter().filter(|session| session.matches(&self.filter)).collect();
        let is_new = |found: &&PickerRow| !known.iter().any(|session| session.id == found.id);
        let found: Vec<&PickerRow> = self.found.iter().filter(is_new).collect();
        known.into_iter().chain(found).filter(in_place).collect()
    }

    /// Begins a search for the filter. Returns its text, and the token that ends the search; `None`
    /// if the filter is too short.
    pub(crate) fn begin_search(&mut self) -> Option<(String, CancellationToken)> {
        let cancel = CancellationToken::new();
        let filter = self.filter.trim();
        let wanted = (filter.chars().count() >= SEARCHED_CHARS_MIN).then(|| (filter.to_owned(), cancel.clone()));
        self.found.clear();
        self.search = wanted.is_some().then(|| cancel.drop_guard());
        wanted
    }

    /// Adds sessions that a search has found. `ended`: there are no others.
    pub(crate) fn found(&mut self, filter: &str, sessions: Vec<PickerRow>, ended: bool) {
        if self.filter.trim() == filter {
            // An earlier search for the same filter may have found some of them.
            for row in sessions {
                if !self.found.iter().any(|known| known.id == row.id) {
                    self.found.push(row);
                }
            }
            self.search.take_if(|_| ended);
        }
    }

    fn filtered(&mut self) -> PickerAction {
        self.selected = 0;
        PickerAction::Search
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> PickerAction {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.shown().len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return PickerAction::Close,
            KeyCode::Char('c' | 'd') if control => return PickerAction::Close,
            KeyCode::Char('a') if control => (self.everywhere, self.selected) = (!self.everywhere, 0),
            KeyCode::Enter => {
                let chosen = self.shown().get(self.selected).map(|session| session.id.clone());
                return chosen.map_or(PickerAction::None, PickerAction::Open);
            }
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            KeyCode::Backspace => {
                self.filter.truncate(self.filter.grapheme_indices(true).next_back().map_or(0, |(at, _)| at));
                return self.filtered();
            }
            KeyCode::Char(character) if !control => {
                self.filter.push(character);
                return self.filtered();
            }
            _ => {}
        }
        PickerAction::None
    }

    pub(crate) fn rows(&self, columns: usize, height: usize) -> Vec<String> {
        let place = if self.everywhere { "all directories".into() } else { output_line(&self.here.to_string_lossy()) };
        let shown = self.shown();
        let mut rows = vec![shortened(&format!("Sessions of {place}"), columns), shortened(&format!("/ {}", self.filter), columns)];
        let space = height.saturating_sub(4).max(1);
        let first = (self.selected + 1).saturating_sub(space);
        for (at, session) in shown.iter().enumerate().skip(first).take(space) {
            let mark = if at == self.selected { "▸" } else { " " };
            rows.push(format!("{mark} {}", session.row(self.everywhere, columns.saturating_sub(2))));
        }
        if shown.is_empty() {
            rows.push(if self.search.is_some() { "  searching the messages" } else { "  no session" }.into());
        }
        let other = if self.everywhere { "this directory" } else { "all directories" };
        rows.push(String::new());
        rows.push(shortened(&format!("Enter continues · Ctrl-A: {other} · letters search · Esc"), columns));
        rows
    }
}
