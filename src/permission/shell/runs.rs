//! The commands that a command runs.

use super::word::Word;

/// The commands that a command runs, as far as its words show.
pub(crate) enum Runs {
    /// No known command.
    Itself,
    /// No command, whatever the operands.
    Nothing,
    /// Unknown commands.
    Unknown,
    /// Only the command with these words.
    Only(Vec<Word>),
    /// The commands with these words, in addition to an effect of its own.
    Others(Vec<Vec<Word>>),
    /// A command line for a shell.
    Script(String),
}
