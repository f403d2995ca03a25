//! Patches of several files, in the two formats that models write: `*** Begin Patch` and unified diffs. Reading them is here and
//! below, what they do to a content is in `place`.

mod body;
mod envelope;
mod place;
mod unified;

pub use place::{Patched, apply};

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// As it was written, without the prefix of a diff.
    pub path: String,
    pub operation: Operation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Replaces a file that is there.
    Add { content: String },
    /// With hunks they must leave nothing of the file.
    Delete { hunks: Vec<Hunk> },
    /// With neither a new path nor a hunk it would be nothing; there is no such operation.
    Update { move_to: Option<String>, hunks: Vec<Hunk> },
}

/// Lines that stand together in a file, and what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Lines before it, of which each is looked for after the one before.
    pub contexts: Vec<String>,
    /// The line at which it begins, or after which when it has no old lines, from 1. Only a hint.
    pub line: Option<usize>,
    /// One or more.
    pub lines: Vec<HunkLine>,
    /// It ends with the file. Only a hint.
    pub at_end: bool,
    /// Whether the last line of the file has its ending afterwards, if the patch says so.
    pub terminated: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    pub sign: Sign,
    /// Without its `\n`.
    pub text: String,
    /// It has no `\n` in the file either.
    pub unterminated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Keep,
    Remove,
    Add,
}

/// Reads a patch. What stands around it (a shell's heredoc, a fence, the head of a mail) does not count. The error names the line of
/// the patch, from 1, and says what is wrong.
pub fn parse(patch: &str) -> Result<Vec<FilePatch>, String> {
    let patch = patch.strip_prefix('\u{feff}').unwrap_or(patch);
    let mut lines: Vec<&str> = patch.strip_suffix('\n').unwrap_or(patch).split('\n').collect();
    let begins = |line: &&str| is_begin(line) || unified::is_head(line);
    let Some(first) = lines.iter().position(begins) else {
        return Err("there is no `*** Begin Patch` and no `--- ` and `+++ ` of a unified diff: nothing to apply".into());
    };
    if lines[first].ends_with('\r') {
        // All of it is in CRLF; else a `\r` is part of the line that it ends.
        lines.iter_mut().for_each(|line| *line = line.strip_suffix('\r').unwrap_or(line));
    }
    let files = if is_begin(lines[first]) { envelope::parse(&lines, first)? } else { unified::parse(&lines, first)? };
    if files.is_empty() { Err("the patch is empty: it names no file".into()) } else { Ok(files) }
}

fn is_begin(line: &str) -> bool {
    line.trim() == "*** Begin Patch"
}

/// What an error says of a line of the patch, `index` from 0.
fn wrong(index: usize, why: impl std::fmt::Display) -> String {
    format!("line {} of the patch: {why}", index + 1)
}
