//! The review of changes hunk by hunk.

use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::rows::shortened;
use crate::content::{HunkDecision, PermissionOption, PermissionOptionKind, ReviewAnswer, ReviewOffer, ToolContent};
use crate::id::PermissionId;
use crate::terminal_text::{question, question_line};

/// A part of the changes: a hunk, or a whole file.
struct ReviewPart {
    path: PathBuf,
    hunk: Option<u32>,
    /// The changed lines, with all characters visible.
    lines: Vec<String>,
    accepted: bool,
}

/// The parts of a review of changes, and the user's decisions.
pub(crate) struct HunkReview {
    pub id: PermissionId,
    /// The option that accepts the changes.
    pub option: String,
    parts: Vec<ReviewPart>,
    selected: usize,
    /// The first line of the selected part that is shown.
    scrolled: usize,
}

impl HunkReview {
    /// Creates the review of a request. `None` if no option accepts the changes.
    pub(crate) fn new(
        id: &PermissionId,
        options: &[PermissionOption],
        offer: &ReviewOffer,
        content: &[ToolContent],
    ) -> Option<HunkReview> {
        let option = options.iter().find(|option| option.kind == PermissionOptionKind::AllowOnce)?.option_id.clone();
        let mut parts = Vec::new();
        for file in &offer.files {
            let diff = content.iter().find_map(|content| match content {
                ToolContent::Diff { path, old_text, new_text } if *path == file.path => {
                    Some((old_text.as_deref().unwrap_or_default(), new_text.as_str()))
                }
                _ => None,
            });
            let part = |hunk, lines| ReviewPart { path: file.path.clone(), hunk, lines, accepted: true };
            let (old, new) = diff.unwrap_or_default();
            if file.hunks.is_empty() {
                let removed = old.lines().map(|line| format!("-{line}"));
                parts.push(part(None, visible(removed.chain(new.lines().map(|line| format!("+{line}"))))));
            }
            for hunk in &file.hunks {
                let old = lines(old, hunk.old_start, hunk.old_lines);
                let new = lines(new, hunk.new_start, hunk.new_lines);
                parts.push(part(Some(hunk.hunk), visible(changed(&old, &new))));
            }
        }
        (!parts.is_empty()).then(|| HunkReview { id: id.clone(), option, parts, selected: 0, scrolled: 0 })
    }

    /// Handles a key other than Enter. Returns whether it closes the review.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let last = self.parts.len() - 1;
        let selected = self.selected;
        match key.code {
            KeyCode::Esc => return true,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Char(' ') => self.parts[selected].accepted = !self.parts[selected].accepted,
            KeyCode::Char('a') => self.parts.iter_mut().for_each(|part| part.accepted = true),
            KeyCode::Char('r') => self.parts.iter_mut().for_each(|part| part.accepted = false),
            KeyCode::Up => self.selected = selected.saturating_sub(1),
            KeyCode::Down => self.selected = (selected + 1).min(last),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(5),
            KeyCode::PageDown => self.scrolled = (self.scrolled + 5).min(self.parts[selected].lines.len().saturating_sub(1)),
            _ => {}
        }
        if self.selected != selected {
            self.scrolled = 0;
        }
        false
    }

    /// Returns the decisions that differ from accepting all changes.
    pub(crate) fn answer(&self) -> ReviewAnswer {
        let rejected = self.parts.iter().filter(|part| !part.accepted);
        let decision = |part: &ReviewPart| HunkDecision { path: part.path.clone(), hunk: part.hunk, accept: false };
        ReviewAnswer { hunks: rejected.map(decision).collect(), edits: Vec::new() }
    }

    /// Returns the rows for a screen of this size: the parts, and the lines of the selected one.
    /// `sends`: Enter sends the decisions now.
    pub(crate) fn rows(&self, columns: usize, height: usize, sends: bool) -> Vec<String> {
        let accepted = self.parts.iter().filter(|part| part.accepted).count();
        let mut rows = vec![shortened(&format!("{accepted} of {} changes accepted", self.parts.len()), columns)];
        let list = (height / 3).clamp(1, 12);
        let first = (self.selected + 1).saturating_sub(list);
        for (at, part) in self.parts.iter().enumerate().skip(first).take(list) {
            let (mark, state) = (if at == self.selected { "▸" } else { " " }, if part.accepted { "[x]" } else { "[ ]" });
            let hunk = part.hunk.map(|hunk| format!("  hunk {hunk}")).unwrap_or_default();
            rows.push(shortened(&format!("{mark} {state} {}{hunk}", question_line(&part.path.to_string_lossy())), columns));
        }
        rows.push(String::new());
        let space = height.saturating_sub(rows.len() + 2);
        let lines = &self.parts[self.selected].lines[self.scrolled..];
        rows.extend(lines.iter().take(space).map(|line| shortened(&format!("  {line}"), columns)));
        rows.push(String::new());
        let sends = if sends { "Enter sends · " } else { "" };
        rows.push(shortened(&format!("{sends}Space accepts or rejects · a all · r none · PgDn scrolls · Esc"), columns));
        rows
    }
}

/// Returns `count` lines of a text from line `start`, which is 1 for the first line.
fn lines(text: &str, start: u32, count: u32) -> Vec<&str> {
    text.lines().skip((start as usize).saturating_sub(1)).take(count as usize).collect()
}

/// Returns the lines of a hunk in the unified format.
fn changed<'a>(old: &[&'a str], new: &[&'a str]) -> impl Iterator<Item = String> {
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let mark = |mark: &'static str| move |line: &&str| format!("{mark}{line}");
    let rows: Vec<String> = (old[..before].iter().map(mark(" ")))
        .chain(old[before..old.len() - after].iter().map(mark("-")))
        .chain(new[before..new.len() - after].iter().map(mark("+")))
        .chain(old[old.len() - after..].iter().map(mark(" ")))
        .collect();
    rows.into_iter()
}

/// Escapes lines, so that each character is visible.
fn visible(lines: impl Iterator<Item = String>) -> Vec<String> {
    lines.map(|line| question(&line)).collect()
}
