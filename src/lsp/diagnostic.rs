//! Diagnostics from language servers: conversion from LSP, comparison, and rendering as text. This
//! module performs no I/O.

use std::path::{Path, PathBuf};

use lsp_types::NumberOrString;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

/// Maximum number of diagnostics that are shown at once.
const LSP_SHOWN_MAX: usize = 20;
/// Maximum length of a diagnostic's message, in characters.
const LSP_MESSAGE_CHARS_MAX: usize = 500;

/// How severe a diagnostic is; errors come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiagnosticSeverity {
    Error,
    Warning,
    Information,
}

impl DiagnosticSeverity {
    /// Returns the name in results and in text.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            DiagnosticSeverity::Error => "error",
            DiagnosticSeverity::Warning => "warning",
            DiagnosticSeverity::Information => "information",
        }
    }
}

/// A diagnostic with a position for users, counted in characters from 1.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diagnostic {
    pub file_path: PathBuf,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    pub severity: DiagnosticSeverity,
    /// The message, joined to one line.
    pub message: String,
    /// The tool that reported it: `clang`, `rustc`.
    pub source: Option<String>,
    pub code: Option<String>,
    /// Text of the line, or empty if it is unknown. Identifies a diagnostic whose line moved.
    #[serde(skip)]
    text: String,
}

impl Diagnostic {
    /// Converts an LSP diagnostic. `lines` is the content that was sent to the server. Returns
    /// `None` for hints, which only matter in editors.
    pub(crate) fn read(path: &Path, lines: &[&str], raw: lsp_types::Diagnostic) -> Option<Diagnostic> {
        let severity = match raw.severity {
            Some(lsp_types::DiagnosticSeverity::HINT) => return None,
            Some(lsp_types::DiagnosticSeverity::WARNING) => DiagnosticSeverity::Warning,
            Some(lsp_types::DiagnosticSeverity::INFORMATION) => DiagnosticSeverity::Information,
            // If a diagnostic has no severity, the client chooses one (LSP 3.17, Diagnostic).
            _ => DiagnosticSeverity::Error,
        };
        let start = raw.range.start;
        let text = lines.get(start.line as usize).copied().unwrap_or_default();
        let cut = |text: &str| text.chars().take(LSP_MESSAGE_CHARS_MAX).collect::<String>();
        let message_lines = raw.message.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let message = message_lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
        Some(Diagnostic {
            file_path: path.to_owned(),
            line: start.line.saturating_add(1),
            column: column(text, start.character),
            severity,
            message: cut(&message),
            source: raw.source.map(|source| cut(&source)),
            code: raw.code.map(|code| match code {
                NumberOrString::Number(number) => number.to_string(),
                NumberOrString::String(text) => cut(&text),
            }),
            text: cut(text.trim()),
        })
    }

    /// Renders one line: ``src/a.rs:3:5: error: cannot find value `x` [rustc E0425]``
    fn line(&self, shown: &str) -> String {
        let Diagnostic { line, column, severity, message, .. } = self;
        let from: Vec<&str> = self.source.as_deref().into_iter().chain(self.code.as_deref()).collect();
        let from = if from.is_empty() { String::new() } else { format!(" [{}]", from.join(" ")) };
        format!("{shown}:{line}:{column}: {}: {message}{from}\n", severity.as_str())
    }
}

/// Converts a zero-based offset in UTF-16 units to a one-based column in characters.
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
    // The position is past the end of the line, or the line is unknown.
    column.saturating_add(left)
}

/// Sorts by severity, position and path; errors come first.
pub(crate) fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|one, other| {
        let key = |diagnostic: &Diagnostic| (diagnostic.severity, diagnostic.line, diagnostic.column);
        key(one).cmp(&key(other)).then_with(|| one.file_path.cmp(&other.file_path))
    });
}

/// Returns the diagnostics in `now` that are not in `before`. Compares the message and the text of
/// the line, not the position.
pub(crate) fn new_since(before: &[Diagnostic], now: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut known: Vec<&Diagnostic> = before.iter().collect();
    let mut new = now.to_vec();
    new.retain(|diagnostic| {
        let same = |known: &&Diagnostic| known.message == diagnostic.message && known.text == diagnostic.text;
        known.iter().position(same).map(|place| known.swap_remove(place)).is_none()
    });
    new
}

/// Removes the diagnostics from `new` that are in `before` with the same position and message: a
/// server that is still working may not have updated them.
pub(crate) fn remove_stale(before: &[Diagnostic], new: &mut Vec<Diagnostic>) {
    let place = |diagnostic: &Diagnostic| (diagnostic.line, diagnostic.column);
    let is_stale = |new: &Diagnostic| before.iter().any(|old| place(old) == place(new) && old.message == new.message);
    new.retain(|diagnostic| !is_stale(diagnostic));
}

/// Renders one line per diagnostic, errors first, with a note if the list is truncated. `show`
/// returns the displayed name of a file.
pub(crate) fn render(diagnostics: &[Diagnostic], show: impl Fn(&Path) -> String) -> String {
    let mut sorted = diagnostics.to_vec();
    sort(&mut sorted);
    let shown = sorted.iter().take(LSP_SHOWN_MAX);
    let mut text: String = shown.map(|diagnostic| diagnostic.line(&show(&diagnostic.file_path))).collect();
    if sorted.len() > LSP_SHOWN_MAX {
        text.push_str(&format!("[the first {} of {}]\n", LSP_SHOWN_MAX, sorted.len()));
    }
    text
}
