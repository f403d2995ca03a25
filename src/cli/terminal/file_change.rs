//! The change of a file as rows: line numbers, signs, syntax colours and underlined words.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::styled_text::{Colour, StyledText, TextStyle};
use super::syntax::{SyntaxColours, language_of};
use crate::patch::{Side, unified_diff};
use crate::terminal_text::{output, output_line};

/// Columns of a line number.
const NUMBER_COLUMNS: usize = 4;

/// The change of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileDiff {
    path: PathBuf,
    /// The path as it is shown.
    pub name: String,
    /// `None`: the file is new.
    old: Option<String>,
    new: String,
    /// The change in the unified format.
    diff: String,
    pub added: usize,
    pub removed: usize,
}

/// A line of a change. `old` and `new` are numbers of lines from 1.
struct ChangedLine {
    sign: char,
    old: usize,
    new: usize,
    text: String,
}

impl FileDiff {
    /// Compares two texts of a file, whose path is shown relative to `cwd`.
    pub(crate) fn new(path: &Path, old: Option<&str>, new: &str, cwd: &Path) -> FileDiff {
        let name = output_line(&path.strip_prefix(cwd).unwrap_or(path).to_string_lossy());
        let side = |text| Side::text(name.trim_start_matches('/'), text);
        let diff = unified_diff(old.map(side), Some(side(new)));
        let (diff, added, removed) = (diff.text, diff.added, diff.removed);
        FileDiff { path: path.into(), name, old: old.map(String::from), new: new.into(), diff, added, removed }
    }

    /// Returns about how much memory the change takes.
    pub(crate) fn bytes(&self) -> usize {
        self.old.as_ref().map_or(0, String::len) + self.new.len() + self.diff.len()
    }

    pub(crate) fn is_new(&self) -> bool {
        self.old.is_none()
    }

    /// Returns `+n −m`.
    pub(crate) fn counts(&self) -> StyledText {
        let mut counts = StyledText::default();
        if self.added > 0 || self.removed == 0 {
            counts.push(&format!(" +{}", self.added), TextStyle::coloured(Colour::Green));
        }
        if self.removed > 0 {
            counts.push(&format!(" −{}", self.removed), TextStyle::coloured(Colour::Red));
        }
        counts
    }

    /// Returns the changed lines as rows, with the colours of the language of the file.
    pub(crate) fn rows(&self, mut syntax: Option<&mut SyntaxColours>) -> Vec<StyledText> {
        let language = language_of(&self.path).unwrap_or_default();
        let mut coloured = |text: &str| syntax.as_mut().and_then(|syntax| syntax.lines(language, text)).unwrap_or_default();
        let (old, new) = (coloured(self.old.as_deref().unwrap_or_default()), coloured(&self.new));
        let lines = self.lines();
        let others = counterparts(&lines);
        let mut rows: Vec<StyledText> = Vec::new();
        let mut last = None;
        for (at, line) in lines.iter().enumerate() {
            let is_removed = line.sign == '-';
            let (number, code) = if is_removed { (line.old, &old) } else { (line.new, &new) };
            if last.is_some_and(|(old, new)| line.old > old + 1 && line.new > new + 1) {
                let mut gap = StyledText::default();
                gap.push(&format!("{:>NUMBER_COLUMNS$}", "…"), TextStyle::dim());
                rows.push(gap);
            }
            last = Some((line.old, line.new));
            let mut row = StyledText::default();
            row.push(&format!("{number:>NUMBER_COLUMNS$} "), TextStyle::dim());
            let colour = if is_removed { Colour::Red } else { Colour::Green };
            row.push(&line.sign.to_string(), TextStyle::coloured(colour));
            let mut text = StyledText::default();
            match code.get(number - 1).filter(|code| code.text() == line.text) {
                Some(code) => text = code.clone(),
                None => text.push(&line.text, TextStyle::default()),
            }
            if let Some(words) = others[at].and_then(|other| changed_words(&line.text, &lines[other].text)) {
                text.underline(words);
            }
            text.0.iter().for_each(|span| row.push(&output(&span.text), span.style));
            rows.push(row);
        }
        rows
    }

    /// Parses the changed lines of the unified format.
    fn lines(&self) -> Vec<ChangedLine> {
        let (mut old, mut new, mut lines) = (0, 0, Vec::new());
        let mut is_body = false;
        for line in self.diff.lines() {
            let Some(sign) = line.chars().next() else { continue };
            if let Some(header) = line.strip_prefix("@@ -") {
                let number = |part: &str| part.split([',', ' ']).next().and_then(|number| number.parse().ok()).unwrap_or(0);
                let (before, after) = header.split_once('+').unwrap_or((header, ""));
                // An empty side has the number of the line before it.
                (old, new, is_body) = (number(before).max(1), number(after).max(1), true);
                continue;
            }
            if !is_body {
                continue;
            }
            if matches!(sign, '-' | '+') {
                lines.push(ChangedLine { sign, old, new, text: line[1..].into() });
            }
            old += usize::from(matches!(sign, '-' | ' '));
            new += usize::from(matches!(sign, '+' | ' '));
        }
        lines
    }
}

/// Returns for each line the line in its place, where as many lines were added as removed.
fn counterparts(lines: &[ChangedLine]) -> Vec<Option<usize>> {
    let mut others = vec![None; lines.len()];
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, sign: char| {
            let follows = |(number, line): &(usize, &ChangedLine)| {
                let before = from.checked_add(*number).and_then(|at| lines.get(at.checked_sub(1)?)).filter(|_| from + number > at);
                let is_next = |before: &ChangedLine| line.old <= before.old + 1 && line.new <= before.new + 1;
                line.sign == sign && before.is_none_or(is_next)
            };
            lines[from..].iter().enumerate().take_while(follows).count()
        };
        let removed = run(at, '-');
        let added = run(at + removed, '+');
        if removed == added {
            for line in at..at + removed {
                (others[line], others[line + removed]) = (Some(line + removed), Some(line));
            }
        }
        at += (removed + added).max(1);
    }
    others
}

/// Returns the bytes of a line that differ from another one, if they have something in common.
fn changed_words(line: &str, other: &str) -> Option<Range<usize>> {
    let before = common(line.chars(), other.chars());
    let after = common(line[before..].chars().rev(), other[before..].chars().rev());
    let is_alike = line.trim().len() < 2 * (before + after);
    let changed = before..line.len() - after;
    (is_alike && !changed.is_empty()).then(|| words(line, changed))
}

/// Returns the bytes of the characters that two texts begin with.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum()
}

/// Extends a range to whole words.
fn words(text: &str, range: Range<usize>) -> Range<usize> {
    let is_word = |character: &char| character.is_alphanumeric() || *character == '_';
    let before: usize = text[..range.start].chars().rev().take_while(is_word).map(char::len_utf8).sum();
    let after: usize = text[range.end..].chars().take_while(is_word).map(char::len_utf8).sum();
    range.start - before..range.end + after
}
