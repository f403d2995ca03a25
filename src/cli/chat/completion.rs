//! The completion of commands, their arguments and paths in the composer.

use super::commands::{self, ArgumentValues, COMMANDS, CompletionCandidate};
use super::rows::shortened;
use crate::terminal_text::output_line;

/// Maximum number of candidates that are shown.
const SHOWN_MAX: usize = 8;

/// The kind of the word at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordKind {
    Command,
    Argument(ArgumentValues),
    Path,
    /// The whole text, which is searched in earlier ones.
    History,
}

/// The word at the cursor: its start in the text, in bytes, and its text up to the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ComposerWord {
    pub kind: WordKind,
    pub start: usize,
    pub text: String,
}

impl ComposerWord {
    /// Returns the word that ends at the cursor, if it can be completed.
    pub(crate) fn at(text: &str, cursor: usize) -> Option<ComposerWord> {
        let before = &text[..cursor];
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let word = |kind| Some(ComposerWord { kind, start, text: before[start..].into() });
        if before.starts_with('/') && !before.contains('\n') {
            if start == 0 {
                return word(WordKind::Command);
            }
            let (row, _) = commands::parse(before)?;
            let is_first = before[..start].split_whitespace().count() == 1;
            return if is_first && row.values != ArgumentValues::Any { word(WordKind::Argument(row.values)) } else { None };
        }
        if before[start..].starts_with('@') {
            return word(WordKind::Path);
        }
        // A path in quotes may contain blanks.
        let is_open = |rest: &str| !rest.contains(['"', '\n']) && !rest.trim().is_empty();
        let start = before.rfind("@\"").filter(|at| is_open(&before[at + 2..]))?;
        let begins = before[..start].chars().next_back().is_none_or(char::is_whitespace);
        begins.then(|| ComposerWord { kind: WordKind::Path, start, text: before[start..].into() })
    }
}

/// The candidates for a word.
#[derive(Debug)]
pub(crate) struct Completion {
    pub word: ComposerWord,
    pub candidates: Vec<CompletionCandidate>,
    selected: usize,
    /// The user moved to a candidate.
    pub chosen: bool,
}

impl Completion {
    /// Creates a completion. `None` without a candidate that changes the word.
    pub(crate) fn new(word: ComposerWord, candidates: Vec<CompletionCandidate>) -> Option<Completion> {
        let changes = candidates.iter().any(|candidate| candidate.value != word.text);
        changes.then_some(Completion { word, candidates, selected: 0, chosen: false })
    }

    pub(crate) fn selected(&self) -> &CompletionCandidate {
        &self.candidates[self.selected]
    }

    /// Selects the next candidate, or the previous one.
    pub(crate) fn select(&mut self, forward: bool) {
        let count = self.candidates.len();
        self.selected = (self.selected + if forward { 1 } else { count - 1 }) % count;
        self.chosen = true;
    }

    /// Returns the rows of the candidates near the selected one, and the row of the selected one.
    pub(crate) fn rows(&self, columns: usize, rows_max: usize) -> (Vec<String>, usize) {
        let shown = SHOWN_MAX.min(rows_max.max(1));
        let first = (self.selected + 1).saturating_sub(shown);
        let candidates = self.candidates.iter().enumerate().skip(first).take(shown);
        let width = self.candidates.iter().map(|candidate| candidate.value.chars().count()).max().unwrap_or(0).min(columns / 2);
        let row = |(at, candidate): (usize, &CompletionCandidate)| {
            let mark = if at == self.selected { "▸" } else { " " };
            let text = format!("  {mark} {:<width$}  {}", output_line(&candidate.value), output_line(&candidate.about));
            shortened(text.trim_end(), columns)
        };
        (candidates.map(row).collect(), self.selected - first)
    }
}

/// Returns the commands that match a word. Commands that begin with it come first.
pub(crate) fn matching(word: &str, candidates: &[CompletionCandidate]) -> Vec<CompletionCandidate> {
    let typed = word.to_lowercase();
    let plain = typed.trim_start_matches(['/', '@']);
    let begins = |value: &str| value.to_lowercase().trim_start_matches('/').starts_with(plain);
    let (mut first, others): (Vec<_>, Vec<_>) = candidates.iter().cloned().partition(|candidate| begins(&candidate.value));
    first.extend(others.into_iter().filter(|candidate| candidate.value.to_lowercase().contains(plain)));
    first
}

pub(crate) fn own_commands() -> Vec<CompletionCandidate> {
    COMMANDS.iter().map(|row| CompletionCandidate { value: format!("/{}", row.name), about: row.about.into() }).collect()
}
