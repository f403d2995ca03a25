//! A finished tool call, or another long text, as a few rows. What they omit is kept, to be shown
//! whole.

use std::collections::VecDeque;
use std::sync::Arc;

use super::file_change::FileDiff;
use super::styled_text::{Colour, StyledText, TextStyle};
use super::syntax::SyntaxColours;

/// Maximum number of rows of the changes of a call.
const CHANGE_ROWS: usize = 16;
/// Maximum size of the texts that are kept to be shown whole, in bytes. The last is always kept.
const KEPT_BYTES_MAX: usize = 2 << 20;

/// The part of a text that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownPart {
    /// As many first rows.
    First(usize),
    /// As many last rows.
    Last(usize),
    /// Nothing: the title says enough.
    Title,
}

/// A part of a cell below its title.
pub(crate) enum CellBody {
    Text {
        text: String,
        style: TextStyle,
        part: ShownPart,
    },
    /// Code in a language, with its line numbers before tabs. Shown whole only.
    Code {
        text: String,
        language: String,
    },
    /// A diff in the unified format.
    Diff(String),
    /// A change; with its name if the title does not have it.
    Change {
        change: FileDiff,
        is_named: bool,
    },
}

/// Rows that belong together.
pub(crate) struct Cell {
    pub title: StyledText,
    /// Rows that are always shown, such as the answer to a permission request.
    pub notes: Vec<StyledText>,
    pub bodies: Vec<CellBody>,
}

/// How cells are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellLayout {
    pub columns: usize,
    pub colour: bool,
    /// How to see what is omitted, after its number of lines.
    pub hint: String,
    /// Nothing is omitted.
    pub whole: bool,
}

impl Cell {
    pub(crate) fn new(title: StyledText) -> Cell {
        Cell { title, notes: Vec::new(), bodies: Vec::new() }
    }

    /// Returns whether a part gets the colours of its language.
    pub(crate) fn has_code(&self) -> bool {
        self.bodies.iter().any(|body| matches!(body, CellBody::Change { .. } | CellBody::Code { .. }))
    }

    /// Returns whether rows are omitted.
    pub(crate) fn is_folded(&self, columns: usize) -> bool {
        self.bodies.iter().any(|body| match body {
            CellBody::Text { text, part, .. } => match part {
                ShownPart::First(most) | ShownPart::Last(most) => {
                    text.lines().map(|line| height(line.chars().count(), columns)).sum::<usize>() > *most
                }
                ShownPart::Title => !text.is_empty(),
            },
            CellBody::Code { text, .. } => !text.is_empty(),
            CellBody::Diff(text) => text.lines().count() > CHANGE_ROWS,
            CellBody::Change { change, .. } => change.is_new() || change.added + change.removed > CHANGE_ROWS,
        })
    }

    /// Returns the rows as text.
    pub(crate) fn render(&self, layout: &CellLayout, mut syntax: Option<&mut SyntaxColours>) -> String {
        let mut rows = Vec::from_iter(Some(self.title.clone()).filter(|title| !title.is_empty()));
        rows.extend(self.notes.iter().cloned());
        let mut space = CHANGE_ROWS;
        for body in &self.bodies {
            let syntax = syntax.as_deref_mut();
            match body {
                CellBody::Text { text, style, part } => rows.extend(folded(text_rows(text, *style), *part, layout)),
                CellBody::Code { text, language } if layout.whole => rows.extend(code_rows(text, language, syntax)),
                CellBody::Code { .. } => {}
                CellBody::Diff(text) => rows.extend(folded(diff_rows(text), ShownPart::First(CHANGE_ROWS), layout)),
                CellBody::Change { change, is_named } => {
                    if *is_named {
                        let mut name = StyledText::default();
                        name.push(&format!("  {}", change.name), TextStyle::default());
                        change.counts().0.iter().for_each(|span| name.push(&span.text, span.style));
                        rows.push(name);
                    }
                    if layout.whole || !change.is_new() {
                        let changed = folded(change.rows(syntax), ShownPart::First(space), layout);
                        space = space.saturating_sub(changed.len());
                        rows.extend(changed);
                    }
                }
            }
        }
        rows.iter().map(|row| row.paint(layout.colour) + "\n").collect()
    }

    /// Returns about how much memory the cell takes.
    fn bytes(&self) -> usize {
        let of = |body: &CellBody| match body {
            CellBody::Text { text, .. } | CellBody::Code { text, .. } | CellBody::Diff(text) => text.len(),
            CellBody::Change { change, .. } => change.bytes(),
        };
        self.bodies.iter().map(of).sum()
    }
}

/// The last cells of which rows were omitted.
#[derive(Clone, Default)]
pub(crate) struct FoldedCells(VecDeque<Arc<Cell>>);

impl FoldedCells {
    pub(crate) fn push(&mut self, cell: Arc<Cell>) {
        self.0.push_back(cell);
        while self.0.len() > 1 && self.0.iter().map(|cell| cell.bytes()).sum::<usize>() > KEPT_BYTES_MAX {
            self.0.pop_front();
        }
    }

    /// Returns the cells as text, the newest last, and the number of lines before it.
    pub(crate) fn whole(&self, layout: &CellLayout, mut syntax: Option<&mut SyntaxColours>) -> (String, usize) {
        let layout = CellLayout { whole: true, ..layout.clone() };
        let (mut text, mut before) = (String::new(), 0);
        for cell in &self.0 {
            text += if text.is_empty() { "" } else { "\n" };
            before = text.lines().count();
            text += &cell.render(&layout, syntax.as_deref_mut());
        }
        (text, before)
    }
}

fn text_rows(text: &str, style: TextStyle) -> Vec<StyledText> {
    let row = |line: &str| {
        let mut row = StyledText::default();
        // A message of the user has marks of its own.
        let indent = if line.starts_with("> ") { "" } else { "  " };
        row.push(&format!("{indent}{line}"), style);
        row
    };
    text.lines().map(row).collect()
}

fn diff_rows(diff: &str) -> Vec<StyledText> {
    let row = |line: &str| {
        let mut row = StyledText::default();
        let style = match line.as_bytes().first() {
            Some(b'+') => TextStyle::coloured(Colour::Green),
            Some(b'-') => TextStyle::coloured(Colour::Red),
            _ => TextStyle::dim(),
        };
        row.push(&format!("  {line}"), style);
        row
    };
    diff.lines().map(row).collect()
}

/// Returns code with colours, and its line numbers.
fn code_rows(text: &str, language: &str, syntax: Option<&mut SyntaxColours>) -> Vec<StyledText> {
    let lines: Vec<(&str, &str)> = text.lines().map(|line| line.split_once('\t').unwrap_or(("", line))).collect();
    let code: Vec<&str> = lines.iter().map(|(_, code)| *code).collect();
    let coloured = syntax.and_then(|syntax| syntax.lines(language, &code.join("\n"))).unwrap_or_default();
    let row = |(at, (number, code)): (usize, &(&str, &str))| {
        let mut row = StyledText::default();
        row.push(&format!("{:>4} ", number.trim()), TextStyle::dim());
        match coloured.get(at) {
            Some(coloured) => coloured.0.iter().for_each(|span| row.push(&span.text, span.style)),
            None => row.push(code, TextStyle::default()),
        }
        row
    };
    lines.iter().enumerate().map(row).collect()
}

/// Returns the number of rows of a line on the terminal.
fn height(width: usize, columns: usize) -> usize {
    width.max(1).div_ceil(columns.max(1))
}

/// Reduces rows to a part of them, with a row that counts what is omitted.
pub(crate) fn folded(rows: Vec<StyledText>, part: ShownPart, layout: &CellLayout) -> Vec<StyledText> {
    let total: usize = rows.iter().map(|row| height(row.width(), layout.columns)).sum();
    let (most, is_last) = match part {
        _ if layout.whole => return rows,
        ShownPart::Title => return Vec::new(),
        ShownPart::First(most) => (most, false),
        ShownPart::Last(most) => (most, true),
    };
    if total <= most || (total == most + 1 && rows.len() == total) {
        return rows;
    }
    let count = rows.len();
    let (mut shown, mut left) = (Vec::new(), most);
    let mut rows = rows;
    if is_last {
        rows.reverse();
    }
    for mut row in rows {
        let rows = height(row.width(), layout.columns);
        if rows > left {
            if shown.is_empty() && left > 0 {
                row.shorten(left * layout.columns);
                shown.push(row);
            }
            break;
        }
        left -= rows;
        shown.push(row);
    }
    let hidden = count - shown.len();
    let mut note = StyledText::default();
    if hidden > 0 {
        note.push(&format!("  … {hidden} line{}{}", if hidden == 1 { "" } else { "s" }, layout.hint), TextStyle::dim());
        shown.push(note);
    }
    if is_last {
        shown.reverse();
    }
    shown
}
