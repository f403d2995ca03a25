//! Reading unified diffs as diff(1) and git write them, and as models do, who miscount lines.

use super::body::Body;
use super::{FilePatch, Hunk, Operation, Sign, wrong};

/// What a head of a hunk says.
pub struct HunkHead {
    /// At which line it begins; see [`Hunk::line`].
    pub line: Option<usize>,
    /// Lines of the file before and after, if they are told.
    counts: Option<(usize, usize)>,
    /// The text after it, unless there are line numbers: then it is that of a line anywhere above.
    pub context: Option<String>,
}

/// `@@ -1,2 +3,4 @@ text`, or `@@ text`, or only `@@`.
pub fn hunk_head(line: &str) -> HunkHead {
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
    let says_something = !text.trim().is_empty() && text.trim() != "...";
    HunkHead { line: None, counts: None, context: says_something.then(|| text.to_owned()) }
}

/// Whether a file may begin here.
pub fn is_head(line: &str) -> bool {
    line.starts_with("diff --git ") || line.starts_with("--- ")
}

/// What the lines before the hunks say of a file.
#[derive(Default)]
struct Head {
    old: Option<String>,
    new: Option<String>,
    is_new: bool,
    is_deleted: bool,
    moved: (Option<String>, Option<String>),
}

/// `first` is the line that begins the first file. Between files may stand what some tools write there, but no line of a hunk.
pub fn parse(lines: &[&str], first: usize) -> Result<Vec<FilePatch>, String> {
    let mut files = Vec::new();
    let mut next = first;
    // Whether any text may stand here, and the first line of it if not.
    let mut free = true;
    let mut other = None;
    while next < lines.len() {
        let line = lines[next];
        if !is_head(line) {
            if line.starts_with("@@ ") {
                return Err(wrong(next, "the hunk belongs to no file: `--- PATH` and `+++ PATH` have to precede it"));
            }
            free |= ends(line);
            if !free && !line.is_empty() {
                let other = *other.get_or_insert(next);
                if line.starts_with([' ', '-', '+']) {
                    return Err(unsigned(lines, other));
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
        files.push(head.file(hunks).map_err(|why| wrong(begin, why))?);
    }
    Ok(files)
}

/// Whether the patch ends here, or one mail or commit of several: a fence, the signature of a mail, the head of the next.
fn ends(line: &str) -> bool {
    line == SIGNATURE || ["```", "From ", "commit "].iter().any(|prefix| line.starts_with(prefix))
}

/// So ends a mail of git.
const SIGNATURE: &str = "-- ";

fn unsigned(lines: &[&str], index: usize) -> String {
    wrong(index, format!("a line of a hunk begins with a blank, - or +, but this is `{}`", lines[index]))
}

fn read_head(lines: &[&str], next: &mut usize) -> Result<Head, String> {
    let mut head = Head::default();
    let mut begun = false;
    while let Some(line) = lines.get(*next).copied() {
        let after = |prefix: &str| line.strip_prefix(prefix);
        if let Some(names) = after("diff --git ") {
            if begun {
                break;
            }
            (head.old, head.new) = both(names);
        } else if let Some(name) = after("--- ") {
            let Some(new) = lines.get(*next + 1).and_then(|line| line.strip_prefix("+++ ")) else {
                return Err(wrong(*next, "`--- PATH` is not followed by `+++ PATH`"));
            };
            (head.old, head.new) = (file_name(name, "a/"), file_name(new, "b/"));
            head.is_new |= head.old.is_none();
            head.is_deleted |= head.new.is_none();
            *next += 2;
            break;
        } else if let Some(mode) = after("new file mode ") {
            if mode.trim() != "100644" {
                return Err(wrong(*next, format!("only plain files (100644) can be made, not {}; use bash for it", mode.trim())));
            }
            head.is_new = true;
        } else if after("deleted file mode ").is_some() {
            head.is_deleted = true;
        } else if let Some(name) = after("rename from ") {
            head.moved.0 = Some(unquoted(name));
        } else if let Some(name) = after("rename to ") {
            head.moved.1 = Some(unquoted(name));
        } else if let Some(mode) = after("old mode ").or(after("new mode ")) {
            return Err(wrong(*next, format!("the mode {} cannot be set here; use bash (chmod) for it", mode.trim())));
        } else if after("copy from ").is_some() {
            return Err(wrong(*next, "a copy cannot be made here; use bash (cp), then patch it"));
        } else if after("GIT binary patch").is_some() || after("Binary files ").is_some() {
            return Err(wrong(*next, "a binary file cannot be patched; use bash for it"));
        } else if !["index ", "similarity index ", "dissimilarity index "].iter().any(|prefix| line.starts_with(prefix)) {
            break;
        }
        begun = true;
        *next += 1;
    }
    Ok(head)
}

impl Head {
    fn file(self, hunks: Vec<Hunk>) -> Result<FilePatch, String> {
        if let (Some(path), Some(to)) = self.moved {
            return Ok(FilePatch { path, operation: Operation::Update { move_to: Some(to), hunks } });
        }
        let path = if self.is_deleted { self.old } else { self.new };
        let Some(path) = path else { return Err("there is no name of a file".into()) };
        let operation = match (self.is_new, self.is_deleted) {
            (true, true) => return Err("a file is either new or deleted".into()),
            (true, false) => Operation::Add { content: content(&hunks)? },
            (false, true) => Operation::Delete { hunks },
            (false, false) if hunks.is_empty() => return Err(format!("there is no hunk for {path}: nothing would change")),
            (false, false) => Operation::Update { move_to: None, hunks },
        };
        Ok(FilePatch { path, operation })
    }
}

/// The lines of a new file.
fn content(hunks: &[Hunk]) -> Result<String, String> {
    let mut content = String::new();
    for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if line.sign != Sign::Add {
            return Err("each line of a new file begins with +".into());
        }
        content.push_str(&line.text);
        if !line.unterminated {
            content.push('\n');
        }
    }
    Ok(content)
}

/// The hunk whose head is at `next`. Its head may miscount: lines that it does not count belong to it, too, as long as they look
/// like it, and lines that it counts may be missing where something else begins.
fn read_hunk(lines: &[&str], next: &mut usize, head: HunkHead) -> Result<Hunk, String> {
    let begin = *next;
    let mut body = Body::new(head.context.into_iter().collect(), head.line);
    let left = |body: &Body| {
        let (before, after) = body.counts();
        head.counts.map(|counts| (counts.0.saturating_sub(before), counts.1.saturating_sub(after)))
    };
    *next += 1;
    while let Some(line) = lines.get(*next).copied() {
        let left = left(&body);
        let file_follows = line.starts_with("--- ")
            && lines.get(*next + 1).is_some_and(|line| line.starts_with("+++ "))
            && lines.get(*next + 2).is_some_and(|line| line.starts_with("@@"))
            // A line `-- x` that becomes `++ y` looks the same, but is the last one of its hunk.
            && left != Some((1, 1));
        let signature = line == SIGNATURE && left == Some((0, 0));
        if file_follows || signature || !body.take(line) {
            break;
        }
        *next += 1;
    }
    match (lines.get(*next), left(&body)) {
        (None, Some((1.., 1..))) => {
            let why = "the patch ends before the hunk has the lines that its head counts";
            return Err(wrong(begin, format!("{why}; it may have been cut: send it whole, or with the right counts")));
        }
        (Some(line), Some((1.., _) | (_, 1..))) if !is_head(line) && !line.starts_with("@@") && !ends(line) => {
            return Err(unsigned(lines, *next));
        }
        _ => {}
    }
    if let Some((before, after)) = head.counts {
        let (old, new) = body.counts();
        // Bare lines that are more than the head counts are no lines of the file.
        let over = old.saturating_sub(before).max(new.saturating_sub(after));
        body.keep_bare_but(over);
    }
    if body.is_empty() {
        return Err(wrong(begin, "the hunk has no lines"));
    }
    Ok(body.finish())
}

/// `a/X b/X`, when both are the same; others come again below.
fn both(names: &str) -> (Option<String>, Option<String>) {
    if let Some(end) = names.strip_prefix('"').and_then(|rest| rest.find("\" ")) {
        return (file_name(&names[..end + 2], "a/"), file_name(&names[end + 3..], "b/"));
    }
    let half = names.len() / 2;
    match (names.get(..half), names.get(half + 1..)) {
        (Some(old), Some(new)) if names.as_bytes().get(half) == Some(&b' ') => (file_name(old, "a/"), file_name(new, "b/")),
        _ => (None, None),
    }
}

/// None for /dev/null. A time after a tab is left out.
fn file_name(name: &str, prefix: &str) -> Option<String> {
    let name = unquoted(name.split('\t').next().unwrap_or(name).trim_end());
    (name != "/dev/null").then(|| name.strip_prefix(prefix).map(str::to_owned).unwrap_or(name))
}

/// A name as git quotes it, in C's way; others stay as they are.
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
