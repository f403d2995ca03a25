//! Tables: aligned columns, cells in several rows, or one row for each cell, as the width allows.

use pulldown_cmark::Alignment;

use crate::cli::terminal::styled_text::{StyledText, TextStyle};

/// Columns between two cells.
const BETWEEN: usize = 3;
/// Minimum width of a column whose cells are wrapped.
const CELL_COLUMNS_MIN: usize = 8;

/// A table; its first row is the head.
#[derive(Debug, Default)]
pub(super) struct MarkdownTable {
    pub alignments: Vec<Alignment>,
    pub rows: Vec<Vec<StyledText>>,
}

impl MarkdownTable {
    /// Returns the rows on a terminal of this width.
    pub(super) fn rendered(&self, columns: usize) -> Vec<StyledText> {
        let count = self.rows.first().map_or(0, Vec::len);
        let space = columns.saturating_sub(count.saturating_sub(1) * BETWEEN);
        let mut widths = self.widths(count, StyledText::width);
        if widths.iter().sum::<usize>() > space {
            let least: Vec<usize> = self.widths(count, StyledText::word_width);
            let least: Vec<usize> =
                least.iter().zip(&widths).map(|(word, width)| (*word).max(CELL_COLUMNS_MIN.min(*width))).collect();
            if least.iter().sum::<usize>() > space {
                return self.by_cell(columns);
            }
            distribute(&mut widths, &least, space);
        }
        let mut out = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            out.extend(self.aligned(row, &widths));
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                let mut rule = StyledText::default();
                rule.push(&rules.join("─┼─"), TextStyle::dim());
                out.push(rule);
            }
        }
        out
    }

    /// Returns the maximum of a measure for each column.
    fn widths(&self, count: usize, measure: impl Fn(&StyledText) -> usize) -> Vec<usize> {
        let mut widths = vec![1; count];
        for row in &self.rows {
            row.iter().zip(&mut widths).for_each(|(cell, width)| *width = measure(cell).max(*width));
        }
        widths
    }

    /// Returns the lines on the screen that a row of the table takes.
    fn aligned(&self, row: &[StyledText], widths: &[usize]) -> Vec<StyledText> {
        let cells: Vec<Vec<StyledText>> = row.iter().zip(widths).map(|(cell, width)| cell.wrapped(*width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |at: usize| {
            let (mut line, mut owed) = (StyledText::default(), 0);
            for (number, width) in widths.iter().enumerate() {
                if number > 0 {
                    line.push(&" ".repeat(owed + 1), TextStyle::default());
                    line.push("│", TextStyle::dim());
                    line.push(" ", TextStyle::default());
                }
                let cell = cells.get(number).and_then(|rows| rows.get(at));
                let blank = width.saturating_sub(cell.map_or(0, StyledText::width));
                let before = match self.alignments.get(number) {
                    Some(Alignment::Right) => blank,
                    Some(Alignment::Center) => blank / 2,
                    Some(Alignment::Left | Alignment::None) | None => 0,
                };
                line.push(&" ".repeat(before), TextStyle::default());
                cell.iter().flat_map(|cell| &cell.0).for_each(|span| line.push(&span.text, span.style));
                owed = blank - before;
            }
            line.trim_end();
            line
        };
        (0..height).map(line).collect()
    }

    /// Returns a row `Name: cell` for each cell, for a table that is too wide.
    fn by_cell(&self, columns: usize) -> Vec<StyledText> {
        let Some((head, body)) = self.rows.split_first() else { return Vec::new() };
        let mut out = Vec::new();
        if body.is_empty() {
            return head.iter().flat_map(|cell| cell.wrapped(columns)).collect();
        }
        for (number, row) in body.iter().enumerate() {
            if number > 0 {
                out.push(StyledText::default());
            }
            for (name, cell) in head.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
                let mut line = StyledText::default();
                name.0.iter().for_each(|span| line.push(&span.text, span.style));
                line.push(": ", TextStyle { bold: true, ..TextStyle::default() });
                cell.0.iter().for_each(|span| line.push(&span.text, span.style));
                out.extend(line.wrapped(columns));
            }
        }
        out
    }
}

/// Reduces widths to a sum of `space`, the widest first, but none below its least.
fn distribute(widths: &mut [usize], least: &[usize], space: usize) {
    let mut open: Vec<usize> = (0..widths.len()).collect();
    open.sort_by_key(|at| widths[*at]);
    // Columns that are narrower than an equal share keep their width.
    let reserved: usize = least.iter().sum();
    let mut spare = space.saturating_sub(reserved);
    for (done, at) in open.iter().enumerate() {
        let share = spare / (open.len() - done);
        let width = widths[*at].min(least[*at] + share);
        spare -= width - least[*at];
        widths[*at] = width;
    }
}
