//! Reading `*** Begin Patch`. Markers may have blanks around them where no line of a file can stand.

use super::body::Body;
use super::unified::hunk_head;
use super::{FilePatch, Hunk, Operation, is_begin, wrong};

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

/// `first` is the line that begins the patch.
pub fn parse(lines: &[&str], first: usize) -> Result<Vec<FilePatch>, String> {
    let mut reader = Reader { lines, next: first + 1 };
    let mut files = Vec::new();
    loop {
        let Some(line) = reader.take() else {
            return Err("the patch does not end with `*** End Patch`: it may have been cut, send it whole".into());
        };
        let at = reader.next - 1;
        match marker(line) {
            Some(Marker::End) if reader.begins_again()? => {}
            Some(Marker::End) => return Ok(files),
            Some(Marker::Add(path)) => {
                files.push(FilePatch { path: named(path, at)?, operation: Operation::Add { content: reader.content()? } });
            }
            Some(Marker::Delete(path)) => {
                files.push(FilePatch { path: named(path, at)?, operation: Operation::Delete { hunks: Vec::new() } });
            }
            Some(Marker::Update(path)) => files.push(FilePatch { path: named(path, at)?, operation: reader.update(at)? }),
            Some(Marker::MoveTo(_) | Marker::EndOfFile) => return Err(wrong(at, format!("`{}` belongs to no file", line.trim()))),
            None if line.trim().is_empty() => {}
            None => {
                let markers = "`*** Add File: PATH`, `*** Delete File: PATH`, `*** Update File: PATH` or `*** End Patch`";
                return Err(wrong(at, format!("`{}` is neither {markers}", line.trim())));
            }
        }
    }
}

fn named(path: &str, at: usize) -> Result<String, String> {
    if path.is_empty() { Err(wrong(at, "there is no path")) } else { Ok(path.into()) }
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

    /// After an end: whether another patch follows. Of other text only the end of a heredoc or a fence may.
    fn begins_again(&mut self) -> Result<bool, String> {
        let wrapper = |line: &str| line.starts_with("```") || !line.contains(char::is_whitespace);
        while let Some(line) = self.take() {
            match line.trim() {
                _ if is_begin(line) => return Ok(true),
                rest if rest.is_empty() || wrapper(rest) => {}
                rest => return Err(wrong(self.next - 1, format!("`{rest}` stands after `*** End Patch`"))),
            }
        }
        Ok(false)
    }

    /// The lines of a new file.
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
                None => return Err(wrong(self.next, format!("each line of a new file begins with +, but this is `{line}`"))),
            }
            self.next += 1;
        }
        Ok(content)
    }

    /// What follows the marker at line `at`.
    fn update(&mut self, at: usize) -> Result<Operation, String> {
        let mut move_to = None;
        if let Some(Marker::MoveTo(path)) = self.peek().and_then(marker) {
            move_to = Some(named(path, self.next)?);
            self.next += 1;
        }
        let mut hunks = Vec::new();
        let mut open: Option<Body> = None;
        while let Some(line) = self.peek() {
            if self.closes(line, open.as_ref().is_some_and(|body| !body.is_empty())) {
                break;
            }
            let head = line.starts_with("@@");
            match (&mut open, head) {
                (Some(body), true) if body.is_empty() => body.contexts().extend(hunk_head(line).context),
                (_, true) => {
                    self.close(open.take(), &mut hunks)?;
                    let head = hunk_head(line);
                    open = Some(Body::new(head.context.into_iter().collect(), head.line));
                }
                (Some(body), false) if matches!(marker(line), Some(Marker::EndOfFile)) && !line.starts_with(' ') => {
                    body.at_end();
                    self.close(open.take(), &mut hunks)?;
                }
                (None, false) if line.trim().is_empty() => {}
                (body, false) => {
                    let fits = body.get_or_insert_default().take(line);
                    if !fits {
                        return Err(wrong(
                            self.next,
                            format!("a line of a hunk begins with a blank, - or +, but this is `{line}`"),
                        ));
                    }
                }
            }
            self.next += 1;
        }
        self.close(open, &mut hunks)?;
        match (&move_to, hunks.as_slice()) {
            (None, []) => Err(wrong(at, "the update has no hunk: nothing would change")),
            _ => Ok(Operation::Update { move_to, hunks }),
        }
    }

    /// Whether `line` ends an update. Inside a hunk a line that begins with a blank is one of the file, but for the last end.
    fn closes(&self, line: &str, inside: bool) -> bool {
        match marker(line) {
            None | Some(Marker::EndOfFile) => false,
            Some(Marker::End) => {
                let rest = &self.lines[self.next + 1..];
                !line.starts_with(' ') || !inside || !rest.iter().any(|line| marker(line).is_some())
            }
            Some(_) => !line.starts_with(' ') || !inside,
        }
    }

    fn close(&self, body: Option<Body>, hunks: &mut Vec<Hunk>) -> Result<(), String> {
        match body {
            Some(body) if body.is_empty() => Err(wrong(self.next.saturating_sub(1), "the hunk has no lines")),
            Some(body) => {
                hunks.push(body.finish());
                Ok(())
            }
            None => Ok(()),
        }
    }
}
