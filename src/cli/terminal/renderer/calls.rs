//! Renders tool calls, permission requests and their results.

use std::sync::Arc;

use super::{RenderedText, Style, TerminalRenderer, progress};
use crate::cli::terminal::amounts::duration;
use crate::cli::terminal::cell::{Cell, CellBody, ShownPart};
use crate::cli::terminal::file_change::FileDiff;
use crate::cli::terminal::partial_change::PartialChange;
use crate::cli::terminal::remarks;
use crate::cli::terminal::styled_text::{Colour, StyledText, TextStyle};
use crate::cli::terminal::syntax::language_of;
use crate::content::{ToolContent, ToolKind};
use crate::event::Actor;
use crate::patch::{self, Side};
use crate::terminal_text::{output, output_line, question as escape_question};
use crate::transcript::{CallPermission, Denial, ToolEndBlock, ToolOutcome};

/// Maximum number of rows of a permission request's content.
const QUESTION_ROWS: usize = 18;
/// Rows of the output of a call: of a failed command, of another command, and of another tool.
const FAILED_ROWS: usize = 5;
const PASSED_ROWS: usize = 2;
const OTHER_ROWS: usize = 5;
/// Minimum width of a title.
const TITLE_COLUMNS_MIN: usize = 12;

/// The counts in the results of reads and searches, and their names in rows.
const COUNTS: [(&str, &str, &str); 4] =
    [("linesRead", "line", "lines"), ("matches", "match", "matches"), ("count", "file", "files"), ("entries", "entry", "entries")];

impl TerminalRenderer {
    /// Renders the content of a permission question. Text that equals the call's title is omitted,
    /// because the question itself shows the title.
    pub(crate) fn question(&self, title: &str, contents: &[ToolContent]) -> Vec<RenderedText> {
        let mut rendered = Vec::new();
        for content in contents {
            match content {
                ToolContent::Diff { path, old_text, new_text } => {
                    let name = path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string();
                    let side = |text| Side::text(name.trim_start_matches('/'), text);
                    let diff = patch::unified_diff(old_text.as_deref().map(side), Some(side(new_text))).text;
                    rendered.extend(escape_question(&diff).trim_end_matches('\n').split('\n').map(|line| self.diff_line(line)));
                }
                ToolContent::Content { content } => {
                    let text = content.as_text();
                    if title != format!("`{}`", text.trim()) {
                        let text = escape_question(&text);
                        rendered.extend(text.trim_end_matches('\n').split('\n').map(|line| progress(&format!("  {line}"))));
                    }
                }
                // The command has not started, so there is no output.
                ToolContent::Terminal { .. } => {}
            }
        }
        rendered
    }

    /// Renders the content of a permission question, with a count of what is too long.
    pub(super) fn short_question(&self, title: &str, contents: &[ToolContent]) -> Vec<RenderedText> {
        let mut rendered = self.question(title, contents);
        if !self.layout().whole && rendered.len() > QUESTION_ROWS + 1 {
            let hidden = rendered.split_off(QUESTION_ROWS).len();
            rendered.push(progress(&self.paint(Style::Dim, &format!("  … {hidden} lines{}", self.hint))));
        }
        rendered
    }

    /// Renders the result of a call, which no earlier line has named.
    pub(super) fn tool_end(&mut self, end: &ToolEndBlock<'_>) -> Vec<RenderedText> {
        let was_asked = self.asked.remove(end.id);
        if self.cancelled.remove(end.id) || end.is_denied || (end.already_shown && end.title.is_empty()) {
            return Vec::new();
        }
        let has_failed = matches!(end.outcome, ToolOutcome::Failed | ToolOutcome::Exited(..=-1 | 1..));
        let looks = matches!(end.kind, Some(ToolKind::Read | ToolKind::Search));
        // A result that has no count, such as diagnostics, is what the call was made for.
        let is_counted = end.details.is_none_or(|details| COUNTS.iter().any(|(name, ..)| details[*name].is_u64()));
        if looks && is_counted && !has_failed && !self.options.replay && end.permission.is_none() {
            return self.look(end);
        }
        let partial = PartialChange::new(&end.proposed, &end.content, &self.cwd);
        // The request has shown the changes. That of the chat was not among the output.
        let content: Vec<&ToolContent> = match (&partial, was_asked) {
            (Some(partial), true) if !partial.edited => {
                end.content.iter().copied().filter(|content| !matches!(content, ToolContent::Diff { .. })).collect()
            }
            (_, true) if end.already_shown => Vec::new(),
            (_, true) => end.content.clone(),
            (_, false) => end.whole.iter().collect(),
        };
        let changes: Vec<FileDiff> = content.iter().filter_map(|content| self.change(content)).collect();
        let mut cell = Cell::new(self.title(end, has_failed, &changes));
        cell.notes.extend(end.permission.as_ref().map(|permission| note(&permission_text(permission))));
        let partial = partial.map(|partial| partial.text()).filter(|text| !text.is_empty());
        cell.notes.extend(partial.map(|text| note(&text)));
        let is_one = changes.len() == 1;
        let texts = content.iter().filter_map(|content| self.output_body(end, content));
        cell.bodies.extend(texts);
        cell.bodies.extend(changes.into_iter().map(|change| CellBody::Change { is_named: !is_one, change }));
        vec![self.cell(cell)]
    }

    /// Returns the title of a call, with how it ended.
    fn title(&self, end: &ToolEndBlock<'_>, has_failed: bool, changes: &[FileDiff]) -> StyledText {
        let mut result = StyledText::default();
        if let [change] = changes {
            result = change.counts();
        }
        if let ToolOutcome::Exited(code) = end.outcome {
            let style = if has_failed { TextStyle::coloured(Colour::Red) } else { TextStyle::dim() };
            result.push(" · ", TextStyle::dim());
            result.push(&format!("exit {code}"), style);
        }
        let is_timed = changes.is_empty() && !matches!(end.kind, Some(ToolKind::Read | ToolKind::Search | ToolKind::Edit));
        if let Some(time) = end.duration.filter(|_| is_timed) {
            result.push(&format!(" · {}", duration(time)), TextStyle::dim());
        }
        self.named(&end.title, has_failed, result)
    }

    /// Returns a title that fits a row, with its mark and what follows it.
    fn named(&self, title: &str, has_failed: bool, result: StyledText) -> StyledText {
        let mut row = StyledText::default();
        let (mark, colour) = if has_failed { ("✗", Colour::Red) } else { ("●", Colour::Green) };
        row.push(mark, TextStyle::coloured(colour));
        let title = output_line(title);
        let command = title.strip_prefix('`').and_then(|title| title.strip_suffix('`')).unwrap_or(&title);
        let mut text = StyledText::default();
        text.push(&format!(" {command}"), TextStyle::default());
        if !self.options.replay {
            text.shorten(self.layout().columns.saturating_sub(result.width() + 1).max(TITLE_COLUMNS_MIN));
        }
        text.0.iter().chain(&result.0).for_each(|span| row.push(&span.text, span.style));
        row
    }

    /// Keeps a read or a search, to join it with those that follow at once.
    fn look(&mut self, end: &ToolEndBlock<'_>) -> Vec<RenderedText> {
        let text: String = end.whole.iter().filter_map(text_of).collect();
        let number = |name: &str| end.details.and_then(|details| details[name].as_u64());
        let found = COUNTS.iter().find_map(|(name, one, many)| Some((number(name)?, *one, *many)));
        let (count, one, many) = found.unwrap_or((text.lines().count() as u64, "line", "lines"));
        let mut row = StyledText::default();
        row.push(&output_line(&end.title), TextStyle::default());
        row.push(&format!(" {count} {}", if count == 1 { one } else { many }), TextStyle::dim());
        let mut cell = Cell::new(row.clone());
        let path = end.title.split(' ').nth(1).unwrap_or_default();
        let language = language_of(std::path::Path::new(path)).unwrap_or_default().to_owned();
        cell.bodies.push(CellBody::Code { text: output(&text), language });
        self.folded.push(Arc::new(cell));
        self.looks.push(row);
        Vec::new()
    }

    /// Renders the reads and searches that were kept, as many in a row as fit.
    pub(super) fn looks(&self) -> Vec<RenderedText> {
        let mut rows: Vec<StyledText> = Vec::new();
        for look in &self.looks {
            match rows.last_mut() {
                Some(row) if row.width() + 3 + look.width() <= self.layout().columns => row.push(" · ", TextStyle::dim()),
                _ => {
                    let mut row = StyledText::default();
                    row.push("●", TextStyle::coloured(Colour::Green));
                    row.push(" ", TextStyle::default());
                    rows.push(row);
                }
            }
            let row = rows.last_mut().expect("the row was pushed above");
            look.0.iter().for_each(|span| row.push(&span.text, span.style));
        }
        rows.iter().map(|row| progress(&row.paint(self.options.colour))).collect()
    }

    /// Renders the denial of a call. The first of its kind says how to allow such calls.
    pub(super) fn denied(&mut self, denial: &Denial<'_>) -> Vec<RenderedText> {
        // The end of the turn says that it was cancelled.
        if denial.cancelled && !self.options.replay {
            self.cancelled.insert(denial.id.clone());
            return Vec::new();
        }
        let mut cell = Cell::new(self.named(&denial.title, true, StyledText::default()));
        let text = match (denial.by, denial.cancelled) {
            (_, true) => format!("cancelled: {}", denial.reason),
            (Actor::Terminal, false) => match denial.reason.strip_prefix("by you") {
                Some(rest) => format!("you denied it{rest}"),
                None => format!("you denied it: {}", denial.reason),
            },
            (_, false) if denial.reason.starts_with("by ") => format!("denied {}", denial.reason),
            (_, false) => format!("denied: {}", denial.reason),
        };
        cell.notes.push(note(&output_line(&text)));
        let hint = remarks::denial_hint(denial, self.mode, &self.cwd);
        if let Some(hint) = hint.filter(|hint| !self.options.replay && !self.hinted.contains(hint)) {
            self.hinted.push(hint);
            cell.notes.push(note(&format!("to allow it: {hint}")));
        }
        vec![self.cell(cell)]
    }

    /// Returns the output of a call, without what is for the model.
    fn output_body(&self, end: &ToolEndBlock<'_>, content: &ToolContent) -> Option<CellBody> {
        let text = output(&text_of(content)?);
        // The end of the turn says it.
        if end.outcome == ToolOutcome::Failed && text.trim() == "cancelled" && !self.options.replay {
            return None;
        }
        let is_noted = |line: &&str| !line.starts_with("[whole output: ");
        let (text, style, part) = match end.outcome {
            ToolOutcome::Exited(code) => {
                let text = text.trim_end().strip_suffix(&format!("exit code: {code}")).unwrap_or(&text).to_owned();
                match code {
                    0 => (text, TextStyle::dim(), ShownPart::Last(PASSED_ROWS)),
                    _ => (text, TextStyle::default(), ShownPart::Last(FAILED_ROWS)),
                }
            }
            ToolOutcome::Failed => (text, TextStyle::coloured(Colour::Red), ShownPart::Last(FAILED_ROWS)),
            ToolOutcome::Completed if end.kind == Some(ToolKind::Fetch) => (text, TextStyle::dim(), ShownPart::Title),
            ToolOutcome::Completed => (text, TextStyle::dim(), ShownPart::First(OTHER_ROWS)),
        };
        let lines: Vec<&str> = text.trim_end().lines().filter(|line| self.options.replay || is_noted(line)).collect();
        Some(CellBody::Text { text: lines.join("\n"), style, part }).filter(|_| !lines.is_empty())
    }

    fn change(&self, content: &ToolContent) -> Option<FileDiff> {
        let ToolContent::Diff { path, old_text, new_text } = content else { return None };
        Some(FileDiff::new(path, old_text.as_deref(), new_text, &self.cwd))
    }

    /// Renders a cell, and keeps it if rows are omitted.
    pub(super) fn cell(&mut self, cell: Cell) -> RenderedText {
        let (layout, cell) = (self.layout(), Arc::new(cell));
        if !layout.whole && cell.is_folded(layout.columns) {
            self.folded.push(cell.clone());
        }
        if layout.colour && cell.has_code() {
            let text = self.syntax.render(move |syntax| cell.render(&layout, syntax));
            return RenderedText::Later { text, is_answer: false };
        }
        RenderedText::Progress(cell.render(&layout, None))
    }

    /// Renders a line of a diff. The line must be escaped for a terminal.
    pub(crate) fn diff_line(&self, line: &str) -> RenderedText {
        let style = match line.as_bytes().first() {
            Some(b'+') => Style::Green,
            Some(b'-') => Style::Red,
            Some(b'@') => Style::Cyan,
            _ => Style::Dim,
        };
        progress(&self.paint(style, &format!("  {line}")))
    }

    /// Renders a diff in the unified format, of which only the first lines are shown if it is long.
    pub(crate) fn short_diff(&mut self, diff: &str) -> String {
        let mut cell = Cell::new(StyledText::default());
        cell.bodies.push(CellBody::Diff(diff.into()));
        self.cell(cell).into_text()
    }
}

/// Returns a row below a title.
fn note(text: &str) -> StyledText {
    let mut row = StyledText::default();
    row.push(&format!("  {}", output_line(text)), TextStyle::coloured(Colour::Yellow));
    row
}

fn permission_text(permission: &CallPermission) -> String {
    let choice = permission.choice.as_ref().map(|choice| format!(" ({choice})")).unwrap_or_default();
    match permission.by {
        Actor::Terminal => format!("you allowed it{choice}"),
        ref by => format!("allowed by {by}{choice}"),
    }
}

fn text_of(content: &ToolContent) -> Option<String> {
    match content {
        ToolContent::Content { content } => Some(content.as_text().into_owned()),
        ToolContent::Terminal { output, .. } => Some(output.clone()),
        ToolContent::Diff { .. } => None,
    }
}
