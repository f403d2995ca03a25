//! Parses the `*** Begin Patch` format. Whitespace around a marker is accepted wherever the line
//! cannot be a line of a file.

use super::hunk::{FilePatch, Hunk, Operation, line_error};
use super::hunk_builder::HunkBuilder;
use super::unified::{hunk_head, unsigned_line};

/// Returns whether `line` is the first line of a patch.
pub(crate) fn is_begin(line: &str) -> bool {
    line.trim() == "*** Begin Patch"
}

enum Marker<'l> {
    End,
    Add(&'l str),
    Delete(&'l str),
    Update(&'l str),
    MoveTo(&'l str),
    EndOfFile,
}

fn marker(line: &str) -> Option<Marker<'_>> {
    let rest = line.trim().strip_prefix("*** ")?;
    let named = |name: &str| rest.strip_prefix(name).map(str::trim);
    match rest {
        "End Patch" => Some(Marker::End),
        "End of File" => Some(Marker::EndOfFile),
        _ => (named("Add File:").map(Marker::Add))
            .or_else(|| named("Delete File:").map(Marker::Delete))
            .or_else(|| named("Update File:").map(Marker::Update))
            .or_else(|| named("Move to:").map(Marker::MoveTo)),
    }
}

struct Reader<'l> {
    lines: &'l [&'l str],
    next: usize,
}

/// Parses the patch whose first line is at index `first`.
pub(crate) fn parse(lines: &[&str], first: usize) -> Result<Vec<FilePatch>, String> {
    let mut reader = Reader { lines, next: first + 1 };
    let mut files = Vec::new();
    loop {
        let Some(line) = reader.take() else {
            return Err("the patch does not end with `*** End Patch`: it may be truncated; send the whole patch".into());
        };
        let at = reader.next - 1;
        match marker(line) {
            Some(Marker::End) if reader.another_follows()? => {}
            Some(Marker::End) => return Ok(files),
            Some(Marker::Add(path)) => {
                files.push(FilePatch { path: named(path, at)?, operation: Operation::Add { content: reader.content()? } });
            }
            Some(Marker::Delete(path)) => {
                files.push(FilePatch { path: named(path, at)?, operation: Operation::Delete { hunks: Vec::new() } });
            }
            Some(Marker::Update(path)) => files.push(FilePatch { path: named(path, at)?, operation: reader.update(at)? }),
            Some(Marker::MoveTo(_) | Marker::EndOfFile) => {
                return Err(line_error(at, format!("`{}` is not inside a file section", line.trim())));
            }
            None if line.trim().is_empty() => {}
            None => {
                let markers = "`*** Add File: PATH`, `*** Delete File: PATH`, `*** Update File: PATH` or `*** End Patch`";
                return Err(line_error(at, format!("expected {markers}, found `{}`", line.trim())));
            }
        }
    }
}

fn named(path: &str, at: usize) -> Result<String, String> {
    if path.is_empty() { Err(line_error(at, "the path is missing")) } else { Ok(path.into()) }
}

impl<'l> Reader<'l> {
    fn take(&mut self) -> Option<&'l str> {
        let line = self.lines.get(self.next).copied()?;
        self.next += 1;
        Some(line)
    }

    fn peek(&self) -> Option<&'l str> {
        self.lines.get(self.next).copied()
    }

    /// Reads the text after `*** End Patch` and returns true if another patch follows. Any other
    /// text is an error, except the end of a heredoc or code fence.
    fn another_follows(&mut self) -> Result<bool, String> {
        let wrapper = |line: &str| line.starts_with("```") || !line.contains(char::is_whitespace);
        while let Some(line) = self.take() {
            match line.trim() {
                _ if is_begin(line) => return Ok(true),
                rest if rest.is_empty() || wrapper(rest) => {}
                rest => return Err(line_error(self.next - 1, format!("`{rest}` follows `*** End Patch`"))),
            }
        }
        Ok(false)
    }

    /// Reads the content of a new file.
    fn content(&mut self) -> Result<String, String> {
        let mut content = String::new();
        let mut blank = 0;
        while let Some(line) = self.peek().filter(|line| marker(line).is_none()) {
            match line.strip_prefix('+') {
                Some(text) => {
                    content.push_str(&"\n".repeat(blank));
                    blank = 0;
                    content.push_str(text);
                    content.push('\n');
                }
                None if line.trim().is_empty() => blank += 1,
                None => return Err(line_error(self.next, format!("each line of a new file must start with +, found `{line}`"))),
            }
            self.next += 1;
        }
        Ok(content)
    }

    /// Reads the rest of an update section, whose marker is the line with the index `at`.
    fn update(&mut self, at: usize) -> Result<Operation, String> {
        let mut move_to = None;
        if let Some(Marker::MoveTo(path)) = self.peek().and_then(marker) {
            move_to = Some(named(path, self.next)?);
            self.next += 1;
        }
        let mut hunks = Vec::new();
        let mut open: Option<HunkBuilder> = None;
        while let Some(line) = self.peek() {
            if self.ends_update(line, open.as_ref().is_some_and(|hunk| !hunk.is_empty())) {
                break;
            }
            let head = line.starts_with("@@");
            match (&mut open, head) {
                (Some(hunk), true) if hunk.is_empty() => hunk.contexts().extend(hunk_head(line).context),
                (_, true) => {
                    self.finish_hunk(open.take(), &mut hunks)?;
                    let head = hunk_head(line);
                    open = Some(HunkBuilder::new(head.context.into_iter().collect(), head.line));
                }
                (Some(hunk), false) if matches!(marker(line), Some(Marker::EndOfFile)) && !line.starts_with(' ') => {
                    hunk.set_at_end();
                    self.finish_hunk(open.take(), &mut hunks)?;
                }
                (None, false) if line.trim().is_empty() => {}
                (hunk, false) => {
                    if !hunk.get_or_insert_default().push(line) {
                        return Err(unsigned_line(self.next, line));
                    }
                }
            }
            self.next += 1;
        }
        self.finish_hunk(open, &mut hunks)?;
        match (&move_to, hunks.as_slice()) {
            (None, []) => Err(line_error(at, "the update has no hunk: nothing would change")),
            _ => Ok(Operation::Update { move_to, hunks }),
        }
    }

    /// Returns true if `line` ends an update section. Inside a hunk, a marker that follows a space
    /// is a line of the file, unless it is the last `*** End Patch`.
    fn ends_update(&self, line: &str, inside: bool) -> bool {
        match marker(line) {
            None | Some(Marker::EndOfFile) => false,
            Some(Marker::End) => {
                let rest = &self.lines[self.next + 1..];
                !line.starts_with(' ') || !inside || !rest.iter().any(|line| marker(line).is_some())
            }
            Some(_) => !line.starts_with(' ') || !inside,
        }
    }

    /// Adds a finished hunk to `hunks`.
    fn finish_hunk(&self, hunk: Option<HunkBuilder>, hunks: &mut Vec<Hunk>) -> Result<(), String> {
        match hunk {
            Some(hunk) if hunk.is_empty() => Err(line_error(self.next.saturating_sub(1), "the hunk has no lines")),
            Some(hunk) => {
                hunks.push(hunk.finish());
                Ok(())
            }
            None => Ok(()),
        }
    }
}
