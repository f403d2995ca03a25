//! A file split into lines, and whitespace inside a line. A byte order mark belongs to no line.

/// The UTF-8 byte order mark.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of a file's content, terminated by `\n` or `\r\n`; the last one may be unterminated.
/// Line numbers start at 0.
pub(crate) struct Lines<'c> {
    /// The whole content, including a byte order mark.
    pub content: &'c [u8],
    /// Byte offset of each line, followed by the end of the content.
    bounds: Vec<usize>,
}

impl<'c> Lines<'c> {
    pub(crate) fn new(content: &'c [u8]) -> Lines<'c> {
        let mut bounds = vec![if content.starts_with(MARK) { MARK.len() } else { 0 }];
        bounds.extend(memchr::memchr_iter(b'\n', content).map(|place| place + 1));
        if bounds.last().is_some_and(|end| *end < content.len()) {
            bounds.push(content.len());
        }
        Lines { content, bounds }
    }

    pub(crate) fn count(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Returns the byte offset of `line`. If `line` is `count()`, this is the end of the content.
    pub(crate) fn start(&self, line: usize) -> usize {
        self.bounds[line]
    }

    /// Returns the line with its ending.
    pub(crate) fn whole(&self, line: usize) -> &'c [u8] {
        &self.content[self.bounds[line]..self.bounds[line + 1]]
    }

    /// Returns the line without its ending.
    pub(crate) fn text(&self, line: usize) -> &'c [u8] {
        let whole = self.whole(line);
        &whole[..whole.len() - ending(whole).len()]
    }

    /// Returns the lines of a range without their endings.
    pub(crate) fn texts(&self, lines: std::ops::Range<usize>) -> impl Iterator<Item = &'c [u8]> {
        lines.map(|line| self.text(line))
    }

    /// Returns whether the last line has an ending or there are no lines.
    pub(crate) fn terminated(&self) -> bool {
        self.count() == 0 || self.content.ends_with(b"\n")
    }

    /// Returns the ending of `line`. If `line` has no ending, returns the ending of the previous
    /// line, or else `\n`.
    pub(crate) fn ending(&self, line: usize) -> &'c [u8] {
        let before = (0..self.count().min(line + 1)).rev().take(2);
        before.map(|line| ending(self.whole(line))).find(|ending| !ending.is_empty()).unwrap_or(b"\n")
    }
}

fn ending(whole: &[u8]) -> &[u8] {
    let bytes = match whole {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    };
    &whole[whole.len() - bytes..]
}

/// Returns whether `byte` is whitespace inside a line. A `\r` that is not part of a line ending is
/// whitespace.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// Returns the line without whitespace at both ends.
pub(crate) fn trim(mut line: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = line
        && is_blank(*first)
    {
        line = rest;
    }
    while let [rest @ .., last] = line
        && is_blank(*last)
    {
        line = rest;
    }
    line
}

/// Returns the parts of the line between whitespace.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty())
}

/// Splits a line into its leading spaces and tabs and the rest.
pub(crate) fn indented(line: &[u8]) -> (&[u8], &[u8]) {
    line.split_at(line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count())
}
