//! Renders tool calls, permission requests and their results.

use std::path::Path;

use super::{OUTPUT_LINES, RenderedText, Style, TerminalRenderer, progress};
use crate::cli::terminal::partial_change::PartialChange;
use crate::cli::terminal::remarks;
use crate::content::ToolContent;
use crate::id::ToolCallId;
use crate::patch::{self, Side};
use crate::terminal_text::{output, output_line, question as escape_question};
use crate::transcript::{Denial, ToolEndBlock, ToolOutcome};

impl TerminalRenderer {
    /// Renders the content of a permission question in full. Text that equals the call's title is
    /// omitted, because the question itself shows the title.
    pub(crate) fn question(&self, title: &str, contents: &[ToolContent]) -> Vec<RenderedText> {
        let mut rendered = Vec::new();
        for content in contents {
            match content {
                ToolContent::Diff { path, old_text, new_text } => {
                    let diff = self.diff(path, old_text.as_deref(), new_text);
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

    /// Renders a line with the title of a call, to which the next lines belong.
    pub(super) fn call_line(&mut self, mark: &str, id: &ToolCallId, title: &str) -> RenderedText {
        self.last_call = Some((id.clone(), title.into()));
        progress(&format!("{} {}", self.paint(Style::Cyan, mark), output_line(title)))
    }

    /// Repeats the title of a call if another call was shown since its start, or if it changed.
    pub(super) fn repeated_title(&mut self, id: &ToolCallId, title: &str) -> Option<RenderedText> {
        let follows = self.last_call.as_ref().is_some_and(|(last, shown)| last == id && shown == title);
        (!follows && !title.is_empty()).then(|| self.call_line("↳", id, title))
    }

    /// Renders the result of a call.
    pub(super) fn tool_end(&mut self, end: &ToolEndBlock<'_>) -> Vec<RenderedText> {
        let partial = PartialChange::new(&end.proposed, &end.content, &self.cwd);
        let changes = partial.as_ref().is_none_or(|partial| partial.edited);
        let shown = end.content.iter().filter(|content| changes || !matches!(content, ToolContent::Diff { .. }));
        let mut content: Vec<RenderedText> = shown.flat_map(|content| self.tool_content(end.outcome, content)).collect();
        if let Some(partial) = partial {
            content.insert(0, progress(&self.paint(Style::Yellow, &format!("  {}", output_line(&partial.text())))));
        }
        let head = if content.is_empty() { None } else { self.repeated_title(end.id, &end.title) };
        head.into_iter().chain(content).collect()
    }

    /// Renders the denial of a call. The first of its kind says how to allow such calls.
    pub(super) fn denied(&mut self, denial: &Denial<'_>) -> Vec<RenderedText> {
        let mut lines = Vec::from_iter(self.repeated_title(denial.id, &denial.title));
        let word = if denial.cancelled { "cancelled" } else { "denied" };
        lines.push(progress(&self.paint(Style::Yellow, &format!("  {word}: {}", output(&denial.reason)))));
        let Some(hint) = remarks::denial_hint(denial, self.mode, &self.cwd) else { return lines };
        let is_new = !self.options.replay && !self.hinted.contains(&hint);
        if is_new {
            self.hinted.push(hint);
        }
        lines.extend(is_new.then(|| progress(&self.paint(Style::Dim, &format!("  to allow it: {hint}")))));
        lines
    }

    fn tool_content(&self, outcome: ToolOutcome, content: &ToolContent) -> Vec<RenderedText> {
        match content {
            ToolContent::Content { content } => vec![self.tool_output(outcome, &content.as_text())],
            ToolContent::Terminal { output, .. } => vec![self.tool_output(outcome, output)],
            ToolContent::Diff { path, old_text, new_text } => {
                let diff = output(&self.diff(path, old_text.as_deref(), new_text));
                diff.lines().map(|line| self.diff_line(line)).collect()
            }
        }
    }

    fn diff(&self, path: &Path, old_text: Option<&str>, new_text: &str) -> String {
        let name = path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string();
        let side = |text| Side::text(name.trim_start_matches('/'), text);
        patch::unified_diff(old_text.map(side), Some(side(new_text))).text
    }

    /// Renders the first lines of a tool's output, or the last lines if the call failed; of a
    /// command, the last lines, which have its summary, and the exit code.
    fn tool_output(&self, outcome: ToolOutcome, text: &str) -> RenderedText {
        let text = output(text);
        let (text, code) = match outcome {
            ToolOutcome::Exited(code) => {
                let code = format!("exit code: {code}");
                (text.trim_end().strip_suffix(&code).unwrap_or(&text), Some(code))
            }
            ToolOutcome::Completed | ToolOutcome::Failed => (text.as_str(), None),
        };
        let lines: Vec<&str> = text.lines().collect();
        let hidden = lines.len().saturating_sub(OUTPUT_LINES);
        let note = |which: &str| (hidden > 0).then(|| format!("… {hidden} {which} lines"));
        let (before, shown, after) = match outcome {
            ToolOutcome::Completed => (None, &lines[..lines.len() - hidden], note("more")),
            ToolOutcome::Failed | ToolOutcome::Exited(_) => (note("earlier"), &lines[hidden..], code),
        };
        let lines = before.as_deref().into_iter().chain(shown.iter().copied()).chain(after.as_deref());
        let lines: Vec<String> = lines.map(|line| format!("  {line}")).collect();
        let style = if outcome == ToolOutcome::Failed { Style::Red } else { Style::Dim };
        progress(&self.paint(style, &lines.join("\n")))
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
}
