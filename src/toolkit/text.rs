//! Text files: detects the encoding and reads lines in bounded memory.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::RangeInclusive;

/// The encoding of a text file, as shown by its byte order mark. Without a byte order mark it is
/// UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf8Marked,
    Utf16Little,
    Utf16Big,
}

impl Encoding {
    /// Detects the encoding of a file that begins with `head`.
    pub(crate) fn detect(head: &[u8]) -> Encoding {
        match head {
            [0xef, 0xbb, 0xbf, ..] => Encoding::Utf8Marked,
            [0xff, 0xfe, ..] => Encoding::Utf16Little,
            [0xfe, 0xff, ..] => Encoding::Utf16Big,
            _ => Encoding::Utf8,
        }
    }

    /// Decodes a whole file. Invalid parts become U+FFFD; the byte order mark is removed.
    pub(crate) fn decode(self, bytes: &[u8]) -> String {
        let bytes = &bytes[self.mark_bytes()..];
        let unit = match self {
            Encoding::Utf8 | Encoding::Utf8Marked => return String::from_utf8_lossy(bytes).into_owned(),
            Encoding::Utf16Little => u16::from_le_bytes,
            Encoding::Utf16Big => u16::from_be_bytes,
        };
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    }

    /// Encodes a whole file, with the byte order mark of the encoding.
    pub(crate) fn encode(self, text: &str) -> Vec<u8> {
        let wide = |bytes: fn(u16) -> [u8; 2]| "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes).collect();
        match self {
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Utf8Marked => format!("\u{feff}{text}").into_bytes(),
            Encoding::Utf16Little => wide(u16::to_le_bytes),
            Encoding::Utf16Big => wide(u16::to_be_bytes),
        }
    }

    fn mark_bytes(self) -> usize {
        match self {
            Encoding::Utf8 => 0,
            Encoding::Utf8Marked => 3,
            Encoding::Utf16Little | Encoding::Utf16Big => 2,
        }
    }
}

/// A line without its ending.
pub(crate) struct TextLine {
    pub text: String,
    /// Number of bytes of the line after `text`, in the file's encoding.
    pub bytes_left: usize,
    /// Number of bytes of the line before the end of `text`.
    pub bytes_end: usize,
    /// True if the line has bytes that are invalid in the file's encoding.
    pub lossy: bool,
}

/// Reads lines of any length and keeps a limited part of each.
pub(crate) struct TextLines<R> {
    reader: BufReader<R>,
    encoding: Encoding,
    begun: bool,
    /// Number of bytes of the next line that are not kept.
    skipped: usize,
}

/// Size of the buffer for a file, in bytes. A file may be larger than its size says.
const BUFFER_BYTES: RangeInclusive<u64> = 8 << 10..=256 << 10;

impl<R: Read> TextLines<R> {
    /// Reads lines from the beginning of a file of about `size` bytes.
    pub(crate) fn new(reader: R, encoding: Encoding, size: u64) -> TextLines<R> {
        let buffer = size.clamp(*BUFFER_BYTES.start(), *BUFFER_BYTES.end()) as usize;
        TextLines { reader: BufReader::with_capacity(buffer, reader), encoding, begun: false, skipped: 0 }
    }

    /// Reads the next line without its first `skipped` bytes, truncated to `bytes_max` bytes;
    /// `None` at the end of the file.
    pub(crate) fn next(&mut self, skipped: usize, bytes_max: usize) -> io::Result<Option<TextLine>> {
        self.begin()?;
        let wide = matches!(self.encoding, Encoding::Utf16Little | Encoding::Utf16Big);
        self.skipped = if wide { skipped & !1 } else { skipped };
        let mut kept = Vec::new();
        let mut total = 0;
        let ended = match self.encoding {
            Encoding::Utf8 | Encoding::Utf8Marked => self.line(&mut kept, &mut total, bytes_max)?,
            Encoding::Utf16Little => self.wide_line(&mut kept, &mut total, bytes_max, u16::from_le_bytes)?,
            Encoding::Utf16Big => self.wide_line(&mut kept, &mut total, bytes_max, u16::from_be_bytes)?,
        };
        if total == 0 && !ended {
            return Ok(None);
        }
        let skipped = self.skipped.min(total);
        let whole = kept.len() == total - skipped;
        let (text, lossy) = self.decode(&mut kept, whole);
        let bytes_end = skipped + kept.len();
        Ok(Some(TextLine { text, bytes_left: total - bytes_end, bytes_end, lossy }))
    }

    /// Skips at most `most` lines and returns the number of skipped lines. Stops early if `go_on`
    /// returns false.
    pub(crate) fn skip(&mut self, most: u64, go_on: impl Fn() -> bool) -> io::Result<u64> {
        let mut passed = 0;
        if matches!(self.encoding, Encoding::Utf16Little | Encoding::Utf16Big) {
            while passed < most && go_on() && self.next(0, 0)?.is_some() {
                passed += 1;
            }
            return Ok(passed);
        }
        self.begin()?;
        // True if the beginning of a line was skipped, but not yet its end.
        let mut open = false;
        while passed < most && go_on() {
            let buffer = self.reader.fill_buf()?;
            let Some(last) = buffer.last() else { return Ok(passed + u64::from(open)) };
            let (ends, length) = (memchr::memchr_iter(b'\n', buffer), buffer.len());
            let count = ends.clone().count() as u64;
            if passed + count >= most {
                let end = ends.clone().nth((most - passed - 1) as usize).unwrap_or(length - 1);
                self.reader.consume(end + 1);
                return Ok(most);
            }
            passed += count;
            open = *last != b'\n';
            self.reader.consume(length);
        }
        Ok(passed)
    }

    /// Skips the byte order mark.
    fn begin(&mut self) -> io::Result<()> {
        let mut mark = [0; 3];
        let bytes = if self.begun { 0 } else { self.encoding.mark_bytes() };
        self.begun = true;
        self.reader.read_exact(&mut mark[..bytes])
    }

    /// Reads a line. Returns true if it ended with a line feed, which is not kept.
    fn line(&mut self, kept: &mut Vec<u8>, total: &mut usize, bytes_max: usize) -> io::Result<bool> {
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let end = memchr::memchr(b'\n', buffer);
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            let wanted = &piece[piece.len().min(self.skipped.saturating_sub(*total))..];
            kept.extend_from_slice(&wanted[..wanted.len().min(bytes_max - kept.len())]);
            *total += piece.len();
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// Reads a line of UTF-16, as [`TextLines::line`] does for UTF-8.
    fn wide_line(&mut self, kept: &mut Vec<u8>, total: &mut usize, bytes_max: usize, unit: fn([u8; 2]) -> u16) -> io::Result<bool> {
        loop {
            let mut pair = [0; 2];
            match self.reader.read_exact(&mut pair) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                read => read?,
            }
            if unit(pair) == u16::from(b'\n') {
                return Ok(true);
            }
            if *total >= self.skipped && kept.len() + 2 <= bytes_max {
                kept.extend_from_slice(&pair);
            }
            *total += 2;
        }
    }

    /// Decodes a line; returns the text and whether some bytes were invalid. If the line was
    /// truncated, an incomplete last character is removed from `bytes`; otherwise a final `\r` is
    /// removed from the text.
    fn decode(&self, bytes: &mut Vec<u8>, whole: bool) -> (String, bool) {
        let (mut text, lossy) = match self.encoding {
            Encoding::Utf8 | Encoding::Utf8Marked => {
                if !whole {
                    while bytes.last().is_some_and(|byte| (0x80..0xc0).contains(byte)) {
                        bytes.pop();
                    }
                    if bytes.last().is_some_and(|byte| *byte >= 0xc0) {
                        bytes.pop();
                    }
                }
                match std::str::from_utf8(bytes) {
                    Ok(text) => (text.to_owned(), false),
                    Err(_) => (String::from_utf8_lossy(bytes).into_owned(), true),
                }
            }
            Encoding::Utf16Little | Encoding::Utf16Big => {
                let little = self.encoding == Encoding::Utf16Little;
                let unit = |pair: &[u8]| {
                    if little { u16::from_le_bytes([pair[0], pair[1]]) } else { u16::from_be_bytes([pair[0], pair[1]]) }
                };
                if !whole && bytes.len() >= 2 && (0xd800..0xdc00).contains(&unit(&bytes[bytes.len() - 2..])) {
                    bytes.truncate(bytes.len() - 2);
                }
                let units: Vec<u16> = bytes.chunks_exact(2).map(unit).collect();
                match String::from_utf16(&units) {
                    Ok(text) => (text, false),
                    Err(_) => (String::from_utf16_lossy(&units), true),
                }
            }
        };
        if whole && text.ends_with('\r') {
            text.pop();
        }
        (text, lossy)
    }
}
