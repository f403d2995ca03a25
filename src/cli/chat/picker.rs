//! The list of sessions to continue, with a filter.

use std::path::{Path, PathBuf};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::rows::shortened;
use crate::api::{ListedSession, SessionStatus};
use crate::cli::terminal::amounts::age;
use crate::content::Cost;
use crate::id::SessionId;
use crate::terminal_text::output_line;

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
        let directory = with_directory.then(|| output_line(&self.cwd.to_string_lossy()));
        let cost = self.cost.map(|cost| cost.to_string());
        let turns = match self.turns {
            0 => None,
            1 => Some("1 turn".into()),
            several => Some(format!("{several} turns")),
        };
        let state = Some(self.state.to_owned()).filter(|state| !state.is_empty());
        let facts = [state, self.works.clone(), turns, directory, cost, self.pid.clone()];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        let id = output_line(self.id.as_str());
        let title = shortened(if self.title.is_empty() { &id } else { &self.title }, (columns / 2).max(16));
        let padding = " ".repeat((columns / 2).max(16).saturating_sub(title.width()));
        shortened(format!("{:>6}  {title}{padding}  {}", self.age, facts.join(" · ")).trim_end(), columns)
    }
}

/// The action of a key in the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PickerAction {
    None,
    Close,
    Open(SessionId),
}

/// The list, its filter and the selected session.
pub(crate) struct SessionPicker {
    sessions: Vec<PickerRow>,
    /// The directory whose sessions are listed first.
    here: PathBuf,
    everywhere: bool,
    filter: String,
    selected: usize,
}

impl SessionPicker {
    /// Creates a list of the sessions of one directory, or of all if it has none.
    pub(crate) fn new(sessions: Vec<PickerRow>, here: &Path) -> SessionPicker {
        let everywhere = !sessions.iter().any(|session| session.cwd == here);
        SessionPicker { sessions, here: here.into(), everywhere, filter: String::new(), selected: 0 }
    }

    fn shown(&self) -> Vec<&PickerRow> {
        let in_place = |session: &&PickerRow| self.everywhere || session.cwd == self.here;
        self.sessions.iter().filter(in_place).filter(|session| session.matches(&self.filter)).collect()
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
                self.selected = 0;
            }
            KeyCode::Char(character) if !control => {
                self.filter.push(character);
                self.selected = 0;
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
            rows.push("  no session".into());
        }
        let other = if self.everywhere { "this directory" } else { "all directories" };
        rows.push(String::new());
        rows.push(shortened(&format!("Enter continues · Ctrl-A: {other} · letters filter · Esc"), columns));
        rows
    }
}
