//! The effect of a command on permissions.

/// The effect of a command, as far as its text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "side effect is the established term")]
pub(crate) enum Effect {
    /// The words describe everything that the command does.
    Transparent,
    /// Runs another command of the line and does nothing else. It is allowed if that command is.
    Wrapper,
    /// Does something more, such as writing a file or removing files it finds. A pattern for its
    /// words does not allow that.
    SideEffect,
    /// Runs code that cannot be analysed, or cannot be analysed itself.
    Opaque,
}
