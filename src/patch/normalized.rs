//! A file's content with `\n` line endings and without a byte order mark, and the mapping of its
//! byte offsets back to the file.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use super::lines::MARK;

/// The content of a file without byte order mark and without `\r` in line endings.
pub(crate) struct NormalizedContent<'c> {
    pub(crate) bytes: Cow<'c, [u8]>,
    /// Length of the removed byte order mark: 0 or 3.
    mark_bytes: usize,
    /// Offsets in `bytes` before which a `\r` was removed, ascending.
    removed: Vec<usize>,
}

impl<'c> NormalizedContent<'c> {
    pub(crate) fn new(content: &'c [u8]) -> NormalizedContent<'c> {
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
            return NormalizedContent { bytes: Cow::Borrowed(content_without), mark_bytes, removed };
        }
        bytes.extend_from_slice(&content_without[done..]);
        NormalizedContent { bytes: Cow::Owned(bytes), mark_bytes, removed }
    }

    /// Converts the offset `place` in `bytes` to an offset in the file. At a line ending, the
    /// result is the offset before its `\r`.
    pub(crate) fn origin(&self, place: usize) -> usize {
        self.mark_bytes + place + self.removed.partition_point(|removed| *removed < place)
    }

    /// Returns the line numbers, from 1, of `places`, which are ascending offsets in `bytes`.
    pub(crate) fn lines(&self, places: impl Iterator<Item = usize>) -> Vec<usize> {
        let (mut line, mut done) = (1, 0);
        let number = |place: usize| {
            line += memchr::memchr_iter(b'\n', &self.bytes[done..place]).count();
            done = place;
            line
        };
        places.map(number).collect()
    }

    /// Offsets of all `\n` in `bytes`, ascending.
    pub(crate) fn breaks(&self) -> Vec<usize> {
        memchr::memchr_iter(b'\n', &self.bytes).collect()
    }

    /// Returns the file's original line endings inside the range `place`. If there are none,
    /// returns the first line ending after the range, or else the last one before the range.
    /// `breaks` is the result of [`Self::breaks`].
    pub(crate) fn endings(&self, place: Range<usize>, breaks: &[usize]) -> Vec<&'static str> {
        let first = breaks.partition_point(|at| *at < place.start);
        let inner = breaks[first..].partition_point(|at| *at < place.end);
        let after = || breaks.get(first..=first).or_else(|| breaks.get(first.checked_sub(1)?..first));
        let places = if inner > 0 { &breaks[first..first + inner] } else { after().unwrap_or_default() };
        places.iter().map(|at| if self.removed.binary_search(at).is_ok() { "\r\n" } else { "\n" }).collect()
    }
}
