//! Selects the part of a command's output that explains its failure. Pure.

use std::fmt::Write;
use std::ops::Range;

/// Maximum size of one line of a failing part, in bytes.
const VERIFY_LINE_BYTES_MAX: usize = 400;

/// Words that mark a line about a failure, in lower case.
const MARKS: [&str; 12] =
    ["error", "fail", "panicked", "assert", "exception", "traceback", "fatal", "not ok", "expected", "undefined", "cannot", "✗"];
/// Lines that are shown before and after a marked line.
const AROUND: (usize, usize) = (1, 4);
/// Lines at the start that are shown if no line is marked.
const HEAD_LINES: usize = 20;

/// Returns at most about `bytes_max` bytes of `output`: all of it if it is short; else its end, for
/// which a third of the space is reserved, and the lines around the first marked lines. Omitted
/// lines are replaced by their number, long lines are cut.
pub(crate) fn failing_part(output: &str, bytes_max: usize) -> String {
    if output.len() <= bytes_max {
        return output.to_owned();
    }
    let lines: Vec<&str> = output.lines().collect();
    let mut selection = Selection { lines: &lines, selected: vec![false; lines.len()], bytes: 0 };
    let mut end = lines.len();
    while end > 0 && selection.add(end - 1..end, bytes_max / 3) {
        end -= 1;
    }
    let is_marked = |line: &str| {
        let line = line.to_lowercase();
        MARKS.iter().any(|mark| line.contains(mark))
    };
    let mut marked = (0..end).filter(|at| is_marked(lines[*at])).peekable();
    let around: Vec<Range<usize>> = match marked.peek() {
        None => std::iter::once(0..HEAD_LINES.min(end)).collect(),
        Some(_) => marked.map(|at| at.saturating_sub(AROUND.0)..(at + AROUND.1 + 1).min(end)).collect(),
    };
    for range in around {
        if !selection.add(range, bytes_max) {
            break;
        }
    }
    selection.text()
}

struct Selection<'a> {
    lines: &'a [&'a str],
    selected: Vec<bool>,
    /// Size of the selected lines.
    bytes: usize,
}

impl Selection<'_> {
    /// Selects lines unless the selection would exceed `bytes_max`. Returns whether it did.
    fn add(&mut self, range: Range<usize>, bytes_max: usize) -> bool {
        let fresh: Vec<usize> = range.filter(|at| !self.selected[*at]).collect();
        let size: usize = fresh.iter().map(|at| self.lines[*at].len().min(VERIFY_LINE_BYTES_MAX) + 1).sum();
        let fits = self.bytes + size <= bytes_max;
        if fits {
            self.bytes += size;
            fresh.into_iter().for_each(|at| self.selected[at] = true);
        }
        fits
    }

    fn text(&self) -> String {
        let (mut text, mut omitted) = (String::new(), 0);
        for (line, selected) in self.lines.iter().zip(&self.selected) {
            if !selected {
                omitted += 1;
                continue;
            }
            if omitted > 0 {
                let _ = writeln!(text, "[{omitted} lines left out]");
                omitted = 0;
            }
            let shown = &line[..line.floor_char_boundary(VERIFY_LINE_BYTES_MAX)];
            let _ = writeln!(text, "{shown}{}", if shown.len() < line.len() { "…" } else { "" });
        }
        if omitted > 0 {
            let _ = writeln!(text, "[{omitted} lines left out]");
        }
        text
    }
}
