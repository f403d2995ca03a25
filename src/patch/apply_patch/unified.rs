//! Parses unified diffs written by `diff -u`, by git, and by models, which often miscount lines.

use super::hunk::{FilePatch, Hunk, Operation, Sign, line_error};
use super::hunk_builder::HunkBuilder;

pub(crate) struct HunkHead {
    /// See [`Hunk::line`].
    pub(crate) line: Option<usize>,
    /// Number of hunk lines in the old file and in the new file, if the header contains these
    /// numbers.
    counts: Option<(usize, usize)>,
    /// The text after `@@`. `None` if the header has line numbers: the text then repeats some
    /// earlier line of the file, not necessarily the nearest one, and is not usable as a hint.
    pub(crate) context: Option<String>,
}

/// Reads `@@ -1,2 +3,4 @@ text`, `@@ text` or `@@`.
pub(crate) fn hunk_head(line: &str) -> HunkHead {
    let rest = line.trim_start_matches('@');
    let numbers = |range: &str, sign| {
        let (start, count) = range.strip_prefix(sign)?.split_once(',').unwrap_or((range.get(1..)?, "1"));
        Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
    };
    let mut words = rest.split_whitespace();
    if let (Some(before), Some(after)) = (words.next(), words.next())
        && let (Some((line, before)), Some((_, after))) = (numbers(before, '-'), numbers(after, '+'))
    {
        return HunkHead { line: Some(line), counts: Some((before, after)), context: None };
    }
    let text = rest.strip_prefix(' ').unwrap_or(rest).trim_end().trim_end_matches("@@").trim_end();
    let has_context = !text.trim().is_empty() && text.trim() != "...";
    HunkHead { line: None, counts: None, context: has_context.then(|| text.to_owned()) }
}

/// Returns true if the line may start the section for a file.
pub(crate) fn is_head(line: &str) -> bool {
    line.starts_with("diff --git ") || line.starts_with("--- ")
}

/// The header of a file: the lines before its hunks.
#[derive(Default)]
struct FileHead {
    old: Option<String>,
    new: Option<String>,
    is_new: bool,
    is_deleted: bool,
    /// Old and new path of a rename.
    moved: (Option<String>, Option<String>),
}

/// Parses the diff whose first file starts at index `first`. Text between the sections of two files
/// is ignored, but a hunk line there is an error.
pub(crate) fn parse(lines: &[&str], first: usize) -> Result<Vec<FilePatch>, String> {
    let mut files = Vec::new();
    let mut next = first;
    // If `free` is true, any text is allowed between files. If it is false, `other` is the index of
    // the first line that belongs to no hunk.
    let mut free = true;
    let mut other = None;
    while next < lines.len() {
        let line = lines[next];
        if !is_head(line) {
            if line.starts_with("@@ ") {
                return Err(line_error(next, "the hunk has no file: `--- PATH` and `+++ PATH` must precede it"));
            }
            free |= is_end(line);
            if !free && !line.is_empty() {
                let other = *other.get_or_insert(next);
                if line.starts_with([' ', '-', '+']) {
                    return Err(unsigned_line(other, lines[other]));
                }
            }
            next += 1;
            continue;
        }
        let begin = next;
        let head = read_head(lines, &mut next)?;
        let mut hunks = Vec::new();
        while let Some(line) = lines.get(next).filter(|line| line.starts_with("@@")) {
            hunks.push(read_hunk(lines, &mut next, hunk_head(line))?);
        }
        (free, other) = (hunks.is_empty(), None);
        files.push(head.file(hunks).map_err(|why| line_error(begin, why))?);
    }
    Ok(files)
}

/// Returns true if the line ends the patch, or one of several emails or commits: a code fence, an
/// email signature, or the header of the next email or commit.
fn is_end(line: &str) -> bool {
    line == SIGNATURE || ["```", "From ", "commit "].iter().any(|prefix| line.starts_with(prefix))
}

/// The separator before the signature in emails written by git.
const SIGNATURE: &str = "-- ";

/// Returns the error for a hunk line without a sign. `index` is the index of the line in the patch,
/// from 0.
pub(crate) fn unsigned_line(index: usize, line: &str) -> String {
    line_error(index, format!("a line of a hunk must start with a space, - or +, found `{line}`"))
}

/// Reads the header of a file and advances `next` to the line after it.
fn read_head(lines: &[&str], next: &mut usize) -> Result<FileHead, String> {
    let mut head = FileHead::default();
    let mut begun = false;
    while let Some(line) = lines.get(*next).copied() {
        let after = |prefix: &str| line.strip_prefix(prefix);
        if let Some(names) = after("diff --git ") {
            if begun {
                break;
            }
            (head.old, head.new) = git_names(names);
        } else if let Some(name) = after("--- ") {
            let Some(new) = lines.get(*next + 1).and_then(|line| line.strip_prefix("+++ ")) else {
                return Err(line_error(*next, "`--- PATH` is not followed by `+++ PATH`"));
            };
            (head.old, head.new) = (file_name(name, "a/"), file_name(new, "b/"));
            head.is_new |= head.old.is_none();
            head.is_deleted |= head.new.is_none();
            *next += 2;
            break;
        } else if let Some(mode) = after("new file mode ") {
            if mode.trim() != "100644" {
                let mode = mode.trim();
                return Err(line_error(*next, format!("cannot create a file of mode {mode}, only 100644; use bash for it")));
            }
            head.is_new = true;
        } else if after("deleted file mode ").is_some() {
            head.is_deleted = true;
        } else if let Some(name) = after("rename from ") {
            head.moved.0 = Some(unquoted(name));
        } else if let Some(name) = after("rename to ") {
            head.moved.1 = Some(unquoted(name));
        } else if let Some(mode) = after("old mode ").or(after("new mode ")) {
            return Err(line_error(*next, format!("cannot set the mode {}; use bash (chmod) for it", mode.trim())));
        } else if after("copy from ").is_some() {
            return Err(line_error(*next, "cannot copy a file; use bash (cp), then patch the copy"));
        } else if after("GIT binary patch").is_some() || after("Binary files ").is_some() {
            return Err(line_error(*next, "cannot patch a binary file; use bash for it"));
        } else if !["index ", "similarity index ", "dissimilarity index "].iter().any(|prefix| line.starts_with(prefix)) {
            break;
        }
        begun = true;
        *next += 1;
    }
    Ok(head)
}

impl FileHead {
    /// Creates the operation that this header and `hunks` describe.
    fn file(self, hunks: Vec<Hunk>) -> Result<FilePatch, String> {
        if let (Some(path), Some(to)) = self.moved {
            return Ok(FilePatch { path, operation: Operation::Update { move_to: Some(to), hunks } });
        }
        let path = if self.is_deleted { self.old } else { self.new };
        let Some(path) = path else { return Err("the file name is missing".into()) };
        let operation = match (self.is_new, self.is_deleted) {
            (true, true) => return Err("a file cannot be both new and deleted".into()),
            (true, false) => Operation::Add { content: content(&hunks)? },
            (false, true) => Operation::Delete { hunks },
            (false, false) if hunks.is_empty() => return Err(format!("{path} has no hunk: nothing would change")),
            (false, false) => Operation::Update { move_to: None, hunks },
        };
        Ok(FilePatch { path, operation })
    }
}

/// Returns the content of a new file. Fails if a line of `hunks` is not an added line.
fn content(hunks: &[Hunk]) -> Result<String, String> {
    let mut content = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if line.sign != Sign::Add {
            return Err("each line of a new file must start with +".into());
        }
        content.push_str(&line.text);
        if !line.unterminated {
            content.push('\n');
        }
    }
    Ok(content)
}

/// Reads the hunk whose header is at `next`. The line counts in the header may be too small or too
/// large: additional lines with a sign still belong to the hunk, and the hunk may end early if the
/// next hunk or file begins.
fn read_hunk(lines: &[&str], next: &mut usize, head: HunkHead) -> Result<Hunk, String> {
    let begin = *next;
    let mut hunk = HunkBuilder::new(head.context.into_iter().collect(), head.line);
    let left = |hunk: &HunkBuilder| {
        let (before, after) = hunk.counts();
        head.counts.map(|counts| (counts.0.saturating_sub(before), counts.1.saturating_sub(after)))
    };
    *next += 1;
    while let Some(line) = lines.get(*next).copied() {
        let left = left(&hunk);
        let file_follows = line.starts_with("--- ")
            && lines.get(*next + 1).is_some_and(|line| line.starts_with("+++ "))
            && lines.get(*next + 2).is_some_and(|line| line.starts_with("@@"))
            // A hunk that ends with the change of a line `-- x` to `++ y` looks the same.
            && left != Some((1, 1));
        let signature = line == SIGNATURE && left == Some((0, 0));
        if file_follows || signature || !hunk.push(line) {
            break;
        }
        *next += 1;
    }
    match (lines.get(*next), left(&hunk)) {
        (None, Some((1.., 1..))) => {
            let why = "the hunk has fewer lines than its header counts";
            return Err(line_error(
                begin,
                format!("{why}: the patch may be truncated; send the whole patch, or correct the counts"),
            ));
        }
        (Some(line), Some((1.., _) | (_, 1..))) if !is_head(line) && !line.starts_with("@@") && !is_end(line) => {
            return Err(unsigned_line(*next, line));
        }
        _ => {}
    }
    if let Some((before, after)) = head.counts {
        let (old, new) = hunk.counts();
        // Empty lines beyond the line counts in the header do not belong to the hunk.
        let over = old.saturating_sub(before).max(new.saturating_sub(after));
        hunk.keep_bare_except(over);
    }
    if hunk.is_empty() {
        return Err(line_error(begin, "the hunk has no lines"));
    }
    Ok(hunk.finish())
}

/// Returns the two file names in `a/X b/X` if they are equal or quoted. Other names are ambiguous
/// here, but the lines after `diff --git` repeat them.
fn git_names(names: &str) -> (Option<String>, Option<String>) {
    if let Some(end) = names.strip_prefix('"').and_then(|rest| rest.find("\" ")) {
        return (file_name(&names[..end + 2], "a/"), file_name(&names[end + 3..], "b/"));
    }
    let half = names.len() / 2;
    match (names.get(..half), names.get(half + 1..)) {
        (Some(old), Some(new)) if names.as_bytes().get(half) == Some(&b' ') => (file_name(old, "a/"), file_name(new, "b/")),
        _ => (None, None),
    }
}

/// Returns the name without `prefix` and without a timestamp after a tab; `None` for /dev/null.
fn file_name(name: &str, prefix: &str) -> Option<String> {
    let name = unquoted(name.split('\t').next().unwrap_or(name).trim_end());
    (name != "/dev/null").then(|| name.strip_prefix(prefix).map(str::to_owned).unwrap_or(name))
}

/// Decodes a name that git quotes as a C string; other names stay unchanged.
fn unquoted(name: &str) -> String {
    let name = name.trim_end();
    let Some(inner) = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return name.to_owned() };
    let mut bytes = Vec::new();
    let mut rest = inner.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                rest = after;
            }
            (b'\\', [escaped, after @ ..]) => {
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    other => *other,
                });
                rest = after;
            }
            _ => bytes.push(*byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
