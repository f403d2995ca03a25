//! Collects the matches of one file for `grep`.

use std::io;
use std::ops::Range;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::limits;

/// Maximum number of bytes that `grep` shows of one line.
const GREP_LINE_BYTES_MAX: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::tools) enum GrepMode {
    Content,
    FilesWithMatches,
    Count,
}

pub(crate) struct FileHits {
    /// Number of matching lines (with `multiline`, of matches).
    pub matches: u64,
    pub lines: Vec<HitLine>,
    /// True if some lines were not kept.
    pub more: bool,
}

/// A line of a `grep` result, with its number.
pub(crate) enum HitLine {
    Match(u64, String),
    Context(u64, String),
    /// A gap between groups of lines.
    Break,
}

impl HitLine {
    /// Writes the line in ripgrep's format: `path:12:text`, `path-11-text`, `--`.
    pub(crate) fn write(&self, path: &str, out: &mut String) {
        match self {
            HitLine::Match(number, text) => out.push_str(&format!("{path}:{number}:{text}\n")),
            HitLine::Context(number, text) => out.push_str(&format!("{path}-{number}-{text}\n")),
            HitLine::Break => out.push_str("--\n"),
        }
    }
}

/// Collects the matches of one file while it is searched.
pub(crate) struct Hits<'c> {
    mode: GrepMode,
    matcher: &'c RegexMatcher,
    cancel: &'c CancellationToken,
    hits: FileHits,
    binary: bool,
}

impl<'c> Hits<'c> {
    /// Creates a collector for the results that `mode` shows. It stops early after a cancellation.
    pub(crate) fn new(mode: GrepMode, matcher: &'c RegexMatcher, cancel: &'c CancellationToken) -> Hits<'c> {
        Hits { mode, matcher, cancel, hits: FileHits { matches: 0, lines: Vec::new(), more: false }, binary: false }
    }

    /// Returns the matches; `None` if there are none, or the file is binary.
    pub(crate) fn found(self) -> Option<FileHits> {
        (self.hits.matches > 0 && !self.binary).then_some(self.hits)
    }

    /// Adds lines. Returns false, to stop the search, once one more line than the maximum shown is
    /// kept, which is enough to report a truncated result.
    /// Of a long line, the part around the first of `places` in it is kept.
    fn push(&mut self, bytes: &[u8], first: Option<u64>, places: &[Range<usize>], line: fn(u64, String) -> HitLine) -> bool {
        let mut start = 0;
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        for (index, text) in text.split(|byte| *byte == b'\n').enumerate() {
            if self.hits.lines.len() > limits::GREP_LINES_MAX {
                self.hits.more = true;
                return false;
            }
            let place = places.iter().find(|place| place.end > start && place.start < start + text.len());
            let place = place.map_or(0..0, |place| place.start.saturating_sub(start)..place.end - start);
            self.hits.lines.push(line(first.unwrap_or(0) + index as u64, shorten(text, place)));
            start += text.len() + 1;
        }
        true
    }
}

impl Hits<'_> {
    /// Returns the matches in `bytes`, if a line of them may be too long to be shown as a whole.
    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        if bytes.len() > GREP_LINE_BYTES_MAX {
            // This matcher has no error.
            let _ = self.matcher.find_iter(bytes, |found| {
                places.push(found.start()..found.end());
                places.len() < limits::GREP_LINES_MAX
            });
        }
        places
    }
}

/// Returns the part of a long line around the match at `place`.
fn shorten(line: &[u8], place: Range<usize>) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= GREP_LINE_BYTES_MAX {
        return String::from_utf8_lossy(line).into_owned();
    }
    let lead = GREP_LINE_BYTES_MAX.saturating_sub(place.len()) / 2;
    let fits = place.end <= GREP_LINE_BYTES_MAX;
    let start = if fits { 0 } else { place.start.saturating_sub(lead).min(line.len() - GREP_LINE_BYTES_MAX) };
    let is_inside = |place: &usize| line.get(*place).is_some_and(|byte| (0x80..0xc0).contains(byte));
    let start = (start..line.len()).find(|place| !is_inside(place)).unwrap_or(start);
    let end = (start + GREP_LINE_BYTES_MAX).min(line.len());
    let part = String::from_utf8_lossy(&line[start..end]);
    let before = if start > 0 { format!("[{start} bytes before] ") } else { String::new() };
    let after = if end < line.len() { format!(" [{} more bytes]", line.len() - end) } else { String::new() };
    format!("{before}{}{after}", part.trim_end_matches('\u{fffd}'))
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.hits.matches += 1;
        let more = match self.mode {
            GrepMode::Content => {
                let places = self.places(found.bytes());
                self.push(found.bytes(), found.line_number(), &places, HitLine::Match)
            }
            GrepMode::FilesWithMatches => false,
            GrepMode::Count => true,
        };
        Ok(more && !self.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.push(context.bytes(), context.line_number(), &[], HitLine::Context))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.hits.lines.push(HitLine::Break);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}
