//! The result of a call whose changes the user accepted in part, or replaced by other text.

use std::path::Path;

use crate::content::ToolContent;
use crate::patch::{DiffHunk, hunks, line_text};

/// The changes that a call made, compared with those that its permission request showed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PartialChange {
    /// Number of proposed hunks. A created file is one.
    proposed: usize,
    /// The files and the first lines of the hunks that were not applied.
    omitted: Vec<String>,
    /// The user wrote other text in place of a hunk.
    pub edited: bool,
}

impl PartialChange {
    /// Compares the changes. `None` if a file had another content in between, so that its hunks
    /// are not the proposed ones. Paths are shown relative to `cwd`.
    pub(crate) fn new(proposed: &[ToolContent], made: &[&ToolContent], cwd: &Path) -> Option<PartialChange> {
        let mut change = PartialChange::default();
        for content in proposed {
            let ToolContent::Diff { path, old_text, new_text } = content else { continue };
            let made = made.iter().find_map(|made| match made {
                ToolContent::Diff { path: at, old_text, new_text } if at == path => Some((old_text, new_text)),
                _ => None,
            });
            if made.is_some_and(|(old, _)| old != old_text) {
                return None;
            }
            let name = path.strip_prefix(cwd).unwrap_or(path).display().to_string();
            let made = made.map(|(_, new)| new.as_str());
            match old_text {
                None => change.add(made == Some(new_text), made.is_some(), || name),
                Some(old) => change.compare(&name, old, new_text, made.unwrap_or(old)),
            }
        }
        (change.proposed > 0).then_some(change)
    }

    fn compare(&mut self, name: &str, old: &str, proposed: &str, made: &str) {
        let text = |text: &str, hunk: &DiffHunk| line_text(text.as_bytes(), &hunk.new);
        let made_hunks = hunks(old.as_bytes(), made.as_bytes());
        for hunk in hunks(old.as_bytes(), proposed.as_bytes()) {
            let is_same = |one: &DiffHunk| one.old == hunk.old && text(made, one) == text(proposed, &hunk);
            let overlaps = |one: &DiffHunk| one.old.start < hunk.old.end && hunk.old.start < one.old.end;
            let is_applied = made_hunks.iter().any(is_same);
            self.add(is_applied, made_hunks.iter().any(overlaps), || format!("{name} line {}", hunk.old.start + 1));
        }
    }

    /// Counts a hunk. `changed`: its place was changed in some way.
    fn add(&mut self, applied: bool, changed: bool, name: impl FnOnce() -> String) {
        self.proposed += 1;
        if !applied && changed {
            self.edited = true;
        } else if !applied {
            self.omitted.push(name());
        }
    }

    /// Describes the result in one line.
    pub(crate) fn text(&self) -> String {
        let with = if self.edited { "with your changes" } else { "" };
        if self.omitted.is_empty() {
            return with.into();
        }
        let (applied, with) = (self.proposed - self.omitted.len(), if self.edited { ", with your changes" } else { "" });
        format!("{applied} of {} hunks applied{with}; not applied: {}", self.proposed, self.omitted.join(", "))
    }
}
