//! A parsed patch: its files and their hunks.

/// The part of a patch that concerns one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// The path as written, without the `a/` or `b/` prefix of a diff.
    pub path: String,
    /// The change of the file.
    pub operation: Operation,
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates the file or replaces its content.
    Add {
        /// The whole content.
        content: String,
    },
    /// Deletes the file.
    Delete {
        /// If present, they must remove the whole content.
        hunks: Vec<Hunk>,
    },
    /// Changes the content, the path or both; at least one of them.
    Update {
        /// The new path of a moved file.
        move_to: Option<String>,
        /// The changes of the content.
        hunks: Vec<Hunk>,
    },
}

/// Successive lines of a file and their changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Lines that precede the hunk in the file, in this order (`@@ context`).
    pub contexts: Vec<String>,
    /// Hint: the line at which the hunk starts, from 1; without old lines, the line before it.
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
    /// ` `: the line stays.
    Keep,
    /// `-`: the line is removed.
    Remove,
    /// `+`: the line is added.
    Add,
}

/// An error message for the line of the patch with this index, from 0.
pub(crate) fn line_error(index: usize, why: impl std::fmt::Display) -> String {
    format!("line {} of the patch: {why}", index + 1)
}
