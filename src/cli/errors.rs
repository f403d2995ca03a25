//! Exit codes, and errors on standard error.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::terminal::output::print_stderr;
use crate::content::StopReason;
use crate::error::{Error, Kind};
use crate::model::FailureInfo;
use crate::terminal_text::{output, output_line};

/// Returns the exit code of a command that failed: 1 failure, 2 usage or settings error, 3 the
/// model cannot be reached, 4 denied, 130 interrupted.
pub(crate) fn exit_code(error: &Error) -> u8 {
    let unreachable = FailureInfo::read(error.details.as_ref()).is_some_and(|info| info.unreachable);
    if error.kind == Kind::ModelError && unreachable { 3 } else { error.kind.row().exit }
}

/// The exit code of a command in which a tool call was denied.
pub(crate) const DENIED: u8 = 4;

/// The exit code of a command after which the project's checks fail.
pub(crate) const CHECKS_FAILED: u8 = 1;

/// The exit code of a command that a signal or the user interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Returns the exit code of a command whose turn stopped for this reason.
pub(crate) fn stop_code(reason: StopReason) -> u8 {
    match reason {
        StopReason::EndTurn => 0,
        StopReason::Cancelled => INTERRUPTED,
        _ => 1,
    }
}

/// Prints an error and its hint to standard error.
pub(crate) fn report(error: &Error) {
    print_stderr(text(&error.message, error.hint.as_deref()));
}

/// Returns an error and its hint as lines for the terminal.
pub(crate) fn text(message: &str, hint: Option<&str>) -> String {
    let hint = hint.map(|hint| format!("  {}\n", output(hint))).unwrap_or_default();
    format!("nuncio: {}\n{hint}", output(message))
}

/// Prints a usage error to standard error. For an unknown command, suggests `nuncio run`, because
/// the word may be a prompt.
pub(crate) fn report_usage(error: &clap::Error) {
    print_stderr(output(&error.render().to_string()));
    if let Some(unknown) = unknown_command(error) {
        print_stderr(format!("\n  to pass it as a prompt: nuncio run \"{}\"\n", output_line(&unknown)));
    }
}

/// Returns whether a command failed because the reader of its output has closed the pipe.
pub(crate) fn is_broken_pipe(error: &Error) -> bool {
    let source = error.source.as_ref().and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Returns the argument of an error for an unknown command.
pub(super) fn unknown_command(error: &clap::Error) -> Option<String> {
    let unknown = error.get(ContextKind::InvalidSubcommand).filter(|_| error.kind() == ErrorKind::InvalidSubcommand);
    match unknown {
        Some(ContextValue::String(unknown)) => Some(unknown.clone()),
        _ => None,
    }
}
