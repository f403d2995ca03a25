//! A parsed patch: its files and their hunks.

/// The part of a patch that concerns one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// The path as written, without the `a/` or `b/` prefix of a diff.
    pub path: String,
    /// The change to the file.
    pub operation: Operation,
}

/// A change to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates the file, which must not exist.
    Add {
        /// The whole content.
        content: String,
    },
    /// Deletes the file.
    Delete {
        /// If there are hunks, they must remove the whole content of the file.
        hunks: Vec<Hunk>,
    },
    /// Changes the content, the path, or both.
    Update {
        /// The new path of a moved file.
        move_to: Option<String>,
        /// The changes to the content.
        hunks: Vec<Hunk>,
    },
}

/// Consecutive lines of a file and the changes to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Lines that precede the hunk in the file, in this order (`@@ context`).
    pub contexts: Vec<String>,
    /// Hint: the line number, from 1, at which the hunk starts. If the hunk has no old lines, this
    /// is the number of the line before the hunk.
    pub line: Option<usize>,
    /// The lines; at least one.
    pub lines: Vec<HunkLine>,
    /// Hint: the hunk ends at the end of the file.
    pub at_end: bool,
    /// True if the last line of the new file has a line ending; `None` if the patch does not say.
    pub terminated: Option<bool>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    /// The first character of the line in the patch.
    pub sign: Sign,
    /// The line without its sign and its `\n`.
    pub text: String,
    /// True if the line has no `\n` in the file.
    pub unterminated: bool,
}

/// The role of a line in a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// ` `: the line is kept.
    Keep,
    /// `-`: the line is removed.
    Remove,
    /// `+`: the line is added.
    Add,
}

/// Formats an error message about the patch line with this index, from 0.
pub(crate) fn line_error(index: usize, why: impl std::fmt::Display) -> String {
    format!("line {} of the patch: {why}", index + 1)
}
