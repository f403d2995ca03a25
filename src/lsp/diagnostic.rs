//! What a language server says of a place in a file, as models and people read it. Pure.

use std::path::{Path, PathBuf};

use lsp_types::{DiagnosticSeverity, NumberOrString};
use serde::Serialize;

use crate::limits;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Information,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Information => "information",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    pub file_path: PathBuf,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    pub severity: Severity,
    /// On one line.
    pub message: String,
    /// Who says so: `clang`, `rustc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The line itself, as far as it is known: it tells whether one that moved is the same.
    #[serde(skip)]
    text: String,
}

impl Diagnostic {
    /// `lines` are the file's, as the server knows it. None: a hint, which is for editors to draw.
    pub fn read(path: &Path, lines: &[&str], said: lsp_types::Diagnostic) -> Option<Diagnostic> {
        let severity = match said.severity {
            Some(DiagnosticSeverity::HINT) => return None,
            Some(DiagnosticSeverity::WARNING) => Severity::Warning,
            Some(DiagnosticSeverity::INFORMATION) => Severity::Information,
            // One that does not say is left to the client (LSP 3.17, Diagnostic).
            _ => Severity::Error,
        };
        let start = said.range.start;
        let text = lines.get(start.line as usize).copied().unwrap_or_default();
        let cut = |text: &str| text.chars().take(limits::LSP_MESSAGE_CHARS_MAX).collect::<String>();
        let said_lines = said.message.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let message = said_lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
        Some(Diagnostic {
            file_path: path.to_owned(),
            line: start.line.saturating_add(1),
            column: column(text, start.character),
            severity,
            message: cut(&message),
            source: said.source.map(|source| cut(&source)),
            code: said.code.map(|code| match code {
                NumberOrString::Number(number) => number.to_string(),
                NumberOrString::String(text) => cut(&text),
            }),
            text: cut(text.trim()),
        })
    }

    /// `src/a.rs:3:5: error: cannot find value `x` [rustc E0425]`
    fn line(&self, shown: &str) -> String {
        let Diagnostic { line, column, severity, message, .. } = self;
        let from: Vec<&str> = self.source.as_deref().into_iter().chain(self.code.as_deref()).collect();
        let from = if from.is_empty() { String::new() } else { format!(" [{}]", from.join(" ")) };
        format!("{shown}:{line}:{column}: {}: {message}{from}\n", severity.as_str())
    }
}

/// UTF-16 units from 0 into characters from 1.
fn column(line: &str, units: u32) -> u32 {
    let mut left = units;
    let mut column = 1;
    for character in line.chars() {
        if left == 0 {
            return column;
        }
        left = left.saturating_sub(character.len_utf16() as u32);
        column += 1;
    }
    // Behind the end of the line, or in a line that is not known.
    column.saturating_add(left)
}

/// Errors first, then by their places.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|one, other| {
        let key = |diagnostic: &Diagnostic| (diagnostic.severity, diagnostic.line, diagnostic.column);
        key(one).cmp(&key(other)).then_with(|| one.file_path.cmp(&other.file_path))
    });
}

/// Those of `now` that are not among `before`: by their message and their line's text, wherever it stands now.
pub fn new_since(before: &[Diagnostic], now: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut known: Vec<&Diagnostic> = before.iter().collect();
    let mut new = now.to_vec();
    new.retain(|diagnostic| {
        let same = |known: &&Diagnostic| known.message == diagnostic.message && known.text == diagnostic.text;
        known.iter().position(same).map(|place| known.swap_remove(place)).is_none()
    });
    new
}

/// Leaves out of `new` what stands just where `before` had it: a server that is still at work may not have looked there again.
pub fn leave_out_stale(before: &[Diagnostic], new: &mut Vec<Diagnostic>) {
    let place = |diagnostic: &Diagnostic| (diagnostic.line, diagnostic.column);
    let is_stale = |new: &Diagnostic| before.iter().any(|old| place(old) == place(new) && old.message == new.message);
    new.retain(|diagnostic| !is_stale(diagnostic));
}

/// A line each, errors first; what is too many is counted. `show` names a file as people know it.
pub fn render(diagnostics: &[Diagnostic], show: impl Fn(&Path) -> String) -> String {
    let mut sorted = diagnostics.to_vec();
    sort(&mut sorted);
    let shown = sorted.iter().take(limits::LSP_SHOWN_MAX);
    let mut text: String = shown.map(|diagnostic| diagnostic.line(&show(&diagnostic.file_path))).collect();
    if sorted.len() > limits::LSP_SHOWN_MAX {
        text.push_str(&format!("[the first {} of {}]\n", limits::LSP_SHOWN_MAX, sorted.len()));
    }
    text
}
