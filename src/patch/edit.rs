//! Replacing a piece of a file by another. Finds the piece and leaves every other byte as it was.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memmem;

/// A file after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    pub bytes: Vec<u8>,
    /// How the piece was found.
    pub strategy: &'static str,
    pub match_count: usize,
    /// Line of the first match, from 1.
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// Old and new are the same.
    Identical,
    /// There is nothing to look for.
    Empty,
    /// `nearest`: the line most like the first one that was looked for, from 1, and its text.
    NotFound { nearest: Option<(usize, String)> },
    /// The lines at which it was found, from 1.
    Several { lines: Vec<usize> },
}

/// Replaces `old` by `new`: at its only place, or at all with `replace_all`. Line endings need not be those of the file: `old`
/// with LF fits a file with CRLF, and what is put in takes the endings of the file. A `\r` in `old` that fits is taken literally.
pub fn edit(content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<Edited, EditError> {
    if old.is_empty() {
        return Err(EditError::Empty);
    }
    if old == new {
        return Err(EditError::Identical);
    }
    if old.contains('\r') && memmem::find(content, old.as_bytes()).is_some() {
        return replace(&View::of(Cow::Borrowed(content)), content, old, new, replace_all);
    }
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    if old == new {
        return Err(EditError::Identical);
    }
    let new = if ends_in_crlf(content) { new.replace('\n', "\r\n") } else { new };
    replace(&View::without_cr(content), content, &old, &new, replace_all)
}

fn replace(view: &View<'_>, content: &[u8], old: &str, new: &str, replace_all: bool) -> Result<Edited, EditError> {
    let found: Vec<usize> = memmem::find_iter(&view.bytes, old).collect();
    let Some(first) = found.first().copied() else {
        return Err(EditError::NotFound { nearest: nearest(&view.bytes, old) });
    };
    let line = |place: usize| memchr::memchr_iter(b'\n', &view.bytes[..place]).count() + 1;
    if found.len() > 1 && !replace_all {
        return Err(EditError::Several { lines: found.into_iter().map(line).collect() });
    }
    let mut bytes = Vec::with_capacity(content.len() + found.len() * new.len());
    let mut done = 0;
    for place in &found {
        bytes.extend_from_slice(&content[done..view.origin(*place)]);
        bytes.extend_from_slice(new.as_bytes());
        done = view.origin(place + old.len());
    }
    bytes.extend_from_slice(&content[done..]);
    Ok(Edited { bytes, strategy: "exact", match_count: found.len(), line: line(first) })
}

/// A file's bytes without the `\r` of its line endings, and where those were.
struct View<'c> {
    bytes: Cow<'c, [u8]>,
    /// Places in `bytes` before which a `\r` is missing, ascending.
    removed: Vec<usize>,
}

impl<'c> View<'c> {
    fn of(bytes: Cow<'c, [u8]>) -> View<'c> {
        View { bytes, removed: Vec::new() }
    }

    fn without_cr(content: &'c [u8]) -> View<'c> {
        let mut bytes = Vec::new();
        let mut removed = Vec::new();
        let mut done = 0;
        for place in memmem::find_iter(content, "\r\n") {
            bytes.extend_from_slice(&content[done..place]);
            removed.push(bytes.len());
            done = place + 1;
        }
        if removed.is_empty() {
            return View::of(Cow::Borrowed(content));
        }
        bytes.extend_from_slice(&content[done..]);
        View { bytes: Cow::Owned(bytes), removed }
    }

    /// Where `place` is in the file: before the `\r` of an ending that begins there.
    fn origin(&self, place: usize) -> usize {
        place + self.removed.partition_point(|removed| *removed < place)
    }
}

/// Whether most lines end so.
fn ends_in_crlf(content: &[u8]) -> bool {
    let crlf = memmem::find_iter(content, "\r\n").count();
    crlf * 2 > memchr::memchr_iter(b'\n', content).count()
}

/// How alike two lines must be to be worth telling, of 1.
const ALIKE: f64 = 0.5;
/// Files up to this size are searched for a similar line.
const NEAREST_BYTES_MAX: usize = 4 << 20;

fn nearest(content: &[u8], old: &str) -> Option<(usize, String)> {
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    if content.len() > NEAREST_BYTES_MAX {
        return None;
    }
    let mut pairs: HashMap<&[u8], i32> = HashMap::new();
    for pair in wanted.as_bytes().windows(2) {
        *pairs.entry(pair).or_default() += 1;
    }
    let mut best: Option<(f64, usize, &[u8])> = None;
    for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let trimmed = line.trim_ascii();
        let score = if trimmed == wanted.as_bytes() { 1.0 } else { likeness(&pairs, wanted.len(), trimmed) };
        if score >= ALIKE && best.is_none_or(|(so_far, ..)| score > so_far) {
            best = Some((score, index + 1, line));
        }
    }
    best.map(|(_, number, line)| (number, String::from_utf8_lossy(line).trim_end().to_owned()))
}

/// Dice's coefficient over pairs of bytes.
fn likeness(pairs: &HashMap<&[u8], i32>, wanted_bytes: usize, line: &[u8]) -> f64 {
    let total = (wanted_bytes + line.len()).saturating_sub(2);
    if line.len() < 2 || total == 0 || line.len() > wanted_bytes * 3 || wanted_bytes > line.len() * 3 {
        return 0.0;
    }
    let mut left = pairs.clone();
    let mut common = 0;
    for pair in line.windows(2) {
        if let Some(count) = left.get_mut(pair)
            && *count > 0
        {
            *count -= 1;
            common += 1;
        }
    }
    f64::from(common) * 2.0 / total as f64
}
