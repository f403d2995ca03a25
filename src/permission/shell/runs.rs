//! The result of analysing which other commands a command runs.

use super::word::Word;

/// The other commands that a command runs, derived from its words.
pub(crate) enum Runs {
    /// The command is not known to run another command.
    Itself,
    /// The command runs no other command, whatever its operands are.
    Nothing,
    /// The command runs commands that cannot be determined.
    Unknown,
    /// Only the command with these words.
    Only(Vec<Word>),
    /// The commands with these words. The command also has its own effect.
    Others(Vec<Vec<Word>>),
    /// A command line for a shell.
    Script(String),
}
