//! The effect of a command, which determines how permission rules apply to it.

/// The effect of a command, derived from its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "side effect is the established term")]
pub(crate) enum Effect {
    /// The words describe everything that the command does.
    Transparent,
    /// Runs another command of the command line and does nothing else. Allowed if the other command
    /// is allowed.
    Wrapper,
    /// Does more than its words describe, such as writing a file or removing the files that it
    /// finds. A pattern that matches the words does not allow the command.
    SideEffect,
    /// Runs code that cannot be analysed, or is itself a command that cannot be analysed.
    Opaque,
}
