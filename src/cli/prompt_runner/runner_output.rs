//! How a prompt runner shows events.

use crate::cli::terminal::renderer::TerminalRenderer;

/// How the runner shows events. With `json`, events are printed as JSON lines, and `renderer` is
/// used only for permission questions.
pub(crate) struct RunnerOutput {
    pub json: bool,
    /// Prints the model's messages to standard output, unless `json` is true.
    pub answers: bool,
    pub renderer: TerminalRenderer,
    /// Shows what nuncio waits for in a line that is erased.
    pub status_line: bool,
    /// A user watches standard error: it begins with a line about the session.
    pub watched: bool,
    /// The session is kept, and shows what the output omits.
    pub is_kept: bool,
    /// Marks are written in ASCII, unless an answer goes to a pipe.
    pub ascii: bool,
}
