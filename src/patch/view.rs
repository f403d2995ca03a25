//! A file's bytes with plain line endings and no byte order mark, and the way back from a place in them to the file.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use super::lines::MARK;

pub struct View<'c> {
    pub bytes: Cow<'c, [u8]>,
    mark_bytes: usize,
    /// Places in `bytes` before which a `\r` is missing, ascending.
    removed: Vec<usize>,
}

impl<'c> View<'c> {
    pub fn of(content: &'c [u8]) -> View<'c> {
        let content_without = content.strip_prefix(MARK).unwrap_or(content);
        let mark_bytes = content.len() - content_without.len();
        let mut bytes = Vec::new();
        let mut removed = Vec::new();
        let mut done = 0;
        for place in memmem::find_iter(content_without, "\r\n") {
            bytes.extend_from_slice(&content_without[done..place]);
            removed.push(bytes.len());
            done = place + 1;
        }
        if removed.is_empty() {
            return View { bytes: Cow::Borrowed(content_without), mark_bytes, removed };
        }
        bytes.extend_from_slice(&content_without[done..]);
        View { bytes: Cow::Owned(bytes), mark_bytes, removed }
    }

    /// Where `place` is in the file: before the `\r` of an ending that begins there.
    pub fn origin(&self, place: usize) -> usize {
        self.mark_bytes + place + self.removed.partition_point(|removed| *removed < place)
    }

    /// The numbers of the lines in which `places` are, which ascend, from 1.
    pub fn lines(&self, places: impl Iterator<Item = usize>) -> Vec<usize> {
        let (mut line, mut done) = (1, 0);
        let number = |place: usize| {
            line += memchr::memchr_iter(b'\n', &self.bytes[done..place]).count();
            done = place;
            line
        };
        places.map(number).collect()
    }

    /// Where the lines end, ascending.
    pub fn breaks(&self) -> Vec<usize> {
        memchr::memchr_iter(b'\n', &self.bytes).collect()
    }

    /// How the lines end that a piece there has: its own endings, else the first one after it, else the last one before it. Of
    /// `breaks`.
    pub fn endings(&self, place: Range<usize>, breaks: &[usize]) -> Vec<&'static str> {
        let first = breaks.partition_point(|at| *at < place.start);
        let inner = breaks[first..].partition_point(|at| *at < place.end);
        let after = || breaks.get(first..=first).or_else(|| breaks.get(first.checked_sub(1)?..first));
        let places = if inner > 0 { &breaks[first..first + inner] } else { after().unwrap_or_default() };
        places.iter().map(|at| if self.removed.binary_search(at).is_ok() { "\r\n" } else { "\n" }).collect()
    }
}
