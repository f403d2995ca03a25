//! Characters that look alike: composed and decomposed letters, curly and straight quotes, dashes,
//! spaces. Models often write the plain form of a character that the file has in another form.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use crate::limits;

/// A text in which each character is replaced by the plain form of the characters that look like
/// it, and the mapping of its byte offsets back to the text.
pub(crate) struct FoldedText<'t> {
    pub(crate) bytes: Cow<'t, [u8]>,
    /// The characters that are not ASCII, ascending: the range in `bytes`, and that in the text.
    changed: Vec<(Range<usize>, Range<usize>)>,
}

impl<'t> FoldedText<'t> {
    pub(crate) fn new(text: &'t [u8]) -> FoldedText<'t> {
        if text.is_ascii() {
            return FoldedText { bytes: Cow::Borrowed(text), changed: Vec::new() };
        }
        let mut folded = FoldedText { bytes: Cow::Owned(Vec::with_capacity(text.len())), changed: Vec::new() };
        let mut start = 0;
        for chunk in text.utf8_chunks() {
            folded.push_text(chunk.valid(), start);
            start += chunk.valid().len();
            folded.bytes.to_mut().extend_from_slice(chunk.invalid());
            start += chunk.invalid().len();
        }
        folded
    }

    /// Appends a part of the text that begins at the offset `start`.
    fn push_text(&mut self, text: &str, start: usize) {
        let bytes = self.bytes.to_mut();
        let is_mark = |byte: usize| text[byte..].chars().next().is_some_and(|next| canonical_combining_class(next) != 0);
        let mut place = 0;
        while let Some(character) = text[place..].chars().next() {
            let mut end = place + character.len_utf8();
            // A letter and its accents are one character. Most characters are followed by ASCII.
            while text.as_bytes().get(end).is_some_and(|byte| !byte.is_ascii()) && is_mark(end) {
                end += text[end..].chars().next().map_or(0, char::len_utf8);
            }
            let from = bytes.len();
            if character.is_ascii() && end == place + 1 {
                bytes.push(text.as_bytes()[place]);
            } else {
                for character in text[place..end].nfd() {
                    push_plain(character, bytes);
                }
                self.changed.push((from..bytes.len(), start + place..start + end));
            }
            place = end;
        }
    }

    /// Converts a range of `bytes` to a range of the text. Returns `None` if the range begins or
    /// ends inside a character of the text.
    pub(crate) fn origin(&self, range: Range<usize>) -> Option<Range<usize>> {
        let before = |place: usize, last: Option<&(Range<usize>, Range<usize>)>| match last {
            Some((folded, _)) if place < folded.end && place > folded.start => None,
            Some((folded, text)) if place == folded.start && !folded.is_empty() => Some(text.start),
            Some((folded, text)) => Some(text.end + place - folded.end),
            None => Some(place),
        };
        // Invisible characters at both ends are outside of the range.
        let at_start = self.changed.partition_point(|(folded, _)| folded.start <= range.start);
        let at_end = self.changed.partition_point(|(folded, _)| folded.start < range.end);
        let last = |count: usize| count.checked_sub(1).and_then(|last| self.changed.get(last));
        let (start, end) = (before(range.start, last(at_start))?, before(range.end, last(at_end))?);
        (start <= end).then_some(start..end)
    }
}

/// Appends the plain form of a character; nothing for an invisible one.
fn push_plain(character: char, bytes: &mut Vec<u8>) {
    let mut own = [0; 4];
    let plain = match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{02bc}' | '\u{00b4}' => "'",
        '\u{201c}'..='\u{201f}' | '\u{2033}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        '\u{00a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        '\u{00ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' => "",
        '\u{2026}' => "...",
        '\u{ff01}'..='\u{ff5e}' => {
            // Full-width forms are in the order of ASCII.
            bytes.push((u32::from(character) - 0xff01) as u8 + b'!');
            return;
        }
        _ => character.encode_utf8(&mut own),
    };
    bytes.extend_from_slice(plain.as_bytes());
}

/// Applies the change from `old` to `new` onto `found`, the text of the file that looks like `old`:
/// what `old` and `new` share keeps the characters of the file. Returns `new` if `found` does not
/// look like `old`.
pub(crate) fn carry<'n>(old: &str, new: &'n str, found: &str) -> Cow<'n, str> {
    let (plain, there) = (FoldedText::new(old.as_bytes()), FoldedText::new(found.as_bytes()));
    if old == found || plain.bytes != there.bytes {
        return Cow::Borrowed(new);
    }
    let (old_chars, new_chars): (Vec<(usize, char)>, Vec<char>) = (old.char_indices().collect(), new.chars().collect());
    let only: Vec<char> = old_chars.iter().map(|(_, character)| *character).collect();
    let deadline = Instant::now() + limits::DIFF_TIME;
    let place = |index: usize| old_chars.get(index).map_or(old.len(), |(place, _)| *place);
    let mut text = String::with_capacity(new.len());
    for operation in capture_diff_slices_deadline(Algorithm::Myers, &only, &new_chars, Some(deadline)) {
        let kept = match operation {
            DiffOp::Equal { old_index, len, .. } => {
                // The offset in `found` is that of the same plain text.
                let plain = plain.folded(place(old_index)..place(old_index + len));
                plain.and_then(|plain| there.origin(plain)).and_then(|range| found.get(range))
            }
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => None,
        };
        match kept {
            Some(kept) => text.push_str(kept),
            None => text.extend(&new_chars[operation.new_range()]),
        }
    }
    Cow::Owned(text)
}

impl FoldedText<'_> {
    /// Converts a range of the text to a range of `bytes`. Returns `None` if the range begins or
    /// ends inside a letter with its accents.
    fn folded(&self, range: Range<usize>) -> Option<Range<usize>> {
        let convert = |place: usize| {
            let after = self.changed.partition_point(|(_, text)| text.start < place);
            match after.checked_sub(1).and_then(|last| self.changed.get(last)) {
                Some((_, text)) if place < text.end => None,
                Some((folded, text)) => Some(folded.end + place - text.end),
                None => Some(place),
            }
        };
        Some(convert(range.start)?..convert(range.end)?)
    }
}

/// Applies the change from the lines `old` to the lines `new` onto `found`, lines of the file that
/// look like `old` except for whitespace at their ends. Returns the lines `old` and `new` with the
/// characters of the file, or `None` if they need no change.
pub(crate) fn carry_lines(old: &[&[u8]], new: &[&[u8]], found: &[&[u8]]) -> Option<(Vec<String>, Vec<String>)> {
    let texts =
        |lines: &[&[u8]]| lines.iter().map(|line| std::str::from_utf8(line).ok().map(str::to_owned)).collect::<Option<Vec<_>>>();
    if old.len() != found.len() || old.iter().chain(found).all(|line| line.is_ascii()) {
        return None;
    }
    let (old, new, found) = (texts(old)?, texts(new)?, texts(found)?);
    let mut there = Vec::with_capacity(old.len());
    for (old, found) in old.iter().zip(&found) {
        let (own, other) = (old.trim(), found.trim());
        if FoldedText::new(own.as_bytes()).bytes != FoldedText::new(other.as_bytes()).bytes {
            return None;
        }
        let indentation = &old[..old.len() - old.trim_start().len()];
        there.push(format!("{indentation}{other}{}", &old[old.trim_end().len().max(indentation.len())..]));
    }
    if new.is_empty() {
        return Some((there, new));
    }
    let carried = carry(&old.join("\n"), &new.join("\n"), &there.join("\n")).split('\n').map(str::to_owned).collect();
    Some((there, carried))
}
