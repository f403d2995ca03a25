//! The lines of a hunk, which both formats share.

use super::{Hunk, HunkLine, Sign};

/// A hunk as it is read.
#[derive(Default)]
pub struct Body {
    hunk: Hunk,
    /// Empty lines at the end that lack their sign: blank context, or nothing but space before what follows.
    bare: usize,
    marked: bool,
}

impl Body {
    pub fn new(contexts: Vec<String>, line: Option<usize>) -> Body {
        Body { hunk: Hunk { contexts, line, ..Hunk::default() }, ..Body::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.hunk.lines.is_empty()
    }

    pub fn contexts(&mut self) -> &mut Vec<String> {
        &mut self.hunk.contexts
    }

    /// Takes a line with its sign in. False when it is none.
    pub fn take(&mut self, line: &str) -> bool {
        let (sign, text) = match line.as_bytes().first() {
            Some(b' ') => (Sign::Keep, &line[1..]),
            Some(b'-') => (Sign::Remove, &line[1..]),
            Some(b'+') => (Sign::Add, &line[1..]),
            Some(b'\\') => return self.mark(),
            None | Some(b'\r') if line.trim().is_empty() => {
                self.bare += 1;
                return true;
            }
            _ => return false,
        };
        // A blank line before the first one of a hunk is only space.
        let bare = if self.is_empty() { 0 } else { self.bare };
        self.bare = 0;
        self.hunk.lines.extend(std::iter::repeat_n(blank(), bare));
        self.hunk.lines.push(HunkLine { sign, text: text.into(), unterminated: false });
        true
    }

    /// `\ No newline at end of file`: the line before has no ending.
    fn mark(&mut self) -> bool {
        let Some(last) = self.hunk.lines.last_mut() else { return false };
        last.unterminated = true;
        self.marked = true;
        true
    }

    pub fn at_end(&mut self) {
        self.hunk.at_end = true;
    }

    /// Lines of the file that it holds, before and after.
    pub fn counts(&self) -> (usize, usize) {
        let count = |sign| self.hunk.lines.iter().filter(|line| line.sign != sign).count();
        (count(Sign::Add) + self.bare, count(Sign::Remove) + self.bare)
    }

    /// Makes the bare lines at the end, but for the last `over`, a part of it.
    pub fn keep_bare_but(&mut self, over: usize) {
        self.hunk.lines.extend(std::iter::repeat_n(blank(), self.bare.saturating_sub(over)));
        self.bare = 0;
    }

    pub fn finish(mut self) -> Hunk {
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
