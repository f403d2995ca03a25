//! Builds a hunk from its lines, for both patch formats.

use super::hunk::{Hunk, HunkLine, Sign};

/// A hunk that is being read.
#[derive(Default)]
pub(crate) struct HunkBuilder {
    hunk: Hunk,
    /// Number of empty lines without a sign at the end of the hunk. They are either blank context
    /// lines or blank lines after the hunk.
    bare: usize,
    /// True after a `\ No newline at end of file`.
    marked: bool,
}

impl HunkBuilder {
    pub(crate) fn new(contexts: Vec<String>, line: Option<usize>) -> HunkBuilder {
        HunkBuilder { hunk: Hunk { contexts, line, ..Hunk::default() }, ..HunkBuilder::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hunk.lines.is_empty()
    }

    pub(crate) fn contexts(&mut self) -> &mut Vec<String> {
        &mut self.hunk.contexts
    }

    /// Adds a line of the patch, including its sign. Returns false if the line cannot belong to a
    /// hunk.
    pub(crate) fn push(&mut self, line: &str) -> bool {
        let (sign, text) = match line.as_bytes().first() {
            Some(b' ') => (Sign::Keep, &line[1..]),
            Some(b'-') => (Sign::Remove, &line[1..]),
            Some(b'+') => (Sign::Add, &line[1..]),
            Some(b'\\') => return self.mark_unterminated(),
            None | Some(b'\r') if line.trim().is_empty() => {
                self.bare += 1;
                return true;
            }
            _ => return false,
        };
        // Empty lines before the first line of a hunk do not belong to it.
        let bare = if self.is_empty() { 0 } else { self.bare };
        self.bare = 0;
        self.hunk.lines.extend(std::iter::repeat_n(blank(), bare));
        self.hunk.lines.push(HunkLine { sign, text: text.into(), unterminated: false });
        true
    }

    /// Handles `\ No newline at end of file`: the previous line has no ending.
    fn mark_unterminated(&mut self) -> bool {
        let Some(last) = self.hunk.lines.last_mut() else { return false };
        last.unterminated = true;
        self.marked = true;
        true
    }

    pub(crate) fn set_at_end(&mut self) {
        self.hunk.at_end = true;
    }

    /// Returns the number of hunk lines in the old file and the number of hunk lines in the new
    /// file.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let count = |sign| self.hunk.lines.iter().filter(|line| line.sign != sign).count();
        (count(Sign::Add) + self.bare, count(Sign::Remove) + self.bare)
    }

    /// Converts the empty lines at the end into context lines, except the last `over` of them.
    pub(crate) fn keep_bare_except(&mut self, over: usize) {
        self.hunk.lines.extend(std::iter::repeat_n(blank(), self.bare.saturating_sub(over)));
        self.bare = 0;
    }

    pub(crate) fn finish(mut self) -> Hunk {
        if self.marked {
            self.hunk.at_end = true;
            let last = self.hunk.lines.iter().rev().find(|line| line.sign != Sign::Remove);
            self.hunk.terminated = Some(last.is_none_or(|line| !line.unterminated));
        }
        self.hunk
    }
}

fn blank() -> HunkLine {
    HunkLine { sign: Sign::Keep, text: String::new(), unterminated: false }
}
