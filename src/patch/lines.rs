//! A file as lines: where each begins, what it says, how it ends. A byte order mark belongs to no line.

/// The mark of UTF-8.
pub const MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of a content, which end with `\n` or `\r\n`; the last one may lack its ending. Numbers are from 0.
pub struct Lines<'c> {
    content: &'c [u8],
    /// Where each line begins, and last the end of the content.
    bounds: Vec<usize>,
}

impl<'c> Lines<'c> {
    pub fn of(content: &'c [u8]) -> Lines<'c> {
        let mut bounds = vec![if content.starts_with(MARK) { MARK.len() } else { 0 }];
        bounds.extend(memchr::memchr_iter(b'\n', content).map(|place| place + 1));
        if bounds.last().is_some_and(|end| *end < content.len()) {
            bounds.push(content.len());
        }
        Lines { content, bounds }
    }

    pub fn count(&self) -> usize {
        self.bounds.len() - 1
    }

    /// With the mark.
    pub fn content(&self) -> &'c [u8] {
        self.content
    }

    /// Where the line begins; that of the line after the last one is the end of the content.
    pub fn start(&self, line: usize) -> usize {
        self.bounds[line]
    }

    /// With its ending.
    pub fn whole(&self, line: usize) -> &'c [u8] {
        &self.content[self.bounds[line]..self.bounds[line + 1]]
    }

    /// Without its ending.
    pub fn text(&self, line: usize) -> &'c [u8] {
        let whole = self.whole(line);
        &whole[..whole.len() - ending(whole).len()]
    }

    pub fn texts(&self, lines: std::ops::Range<usize>) -> impl Iterator<Item = &'c [u8]> {
        lines.map(|line| self.text(line))
    }

    /// Whether the last line has its ending; so have no lines at all.
    pub fn terminated(&self) -> bool {
        self.count() == 0 || self.content.ends_with(b"\n")
    }

    /// The ending of the line, or when it has none of the one before it.
    pub fn ending(&self, line: usize) -> &'c [u8] {
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

/// A blank inside a line. A `\r` that belongs to no ending is one.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// Without the blanks at both ends.
pub fn trim(mut line: &[u8]) -> &[u8] {
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

/// What stands between blanks.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty())
}

/// The spaces and tabs before the first word, and the rest.
pub fn indented(line: &[u8]) -> (&[u8], &[u8]) {
    line.split_at(line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count())
}
