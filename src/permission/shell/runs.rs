//! The result of analysing which other commands a command runs.

use super::word::Word;

/// The other commands that a command runs, as far as its words show.
pub(crate) enum Runs {
    /// The command is not known to run another command.
    Itself,
    /// The command runs no other command, whatever its operands are.
    Nothing,
    /// The command runs commands that cannot be determined.
    Unknown,
    /// Only the command with these words.
    Only(Vec<Word>),
    /// The commands with these words. The command also has an effect of its own.
    Others(Vec<Vec<Word>>),
    /// A command line for a shell.
    Script(String),
}
