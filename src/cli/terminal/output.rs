//! Standard output and standard error of the commands.

use std::io::{IsTerminal, Write};

use super::marks::{in_ascii, needs_ascii};
use super::renderer::RenderedText;
use crate::config::Environment;
use crate::error::{Error, Kind, Result};
use crate::event::Event;
use crate::terminal_text;

/// The standard streams that get colours: terminals, unless `NO_COLOR` (<https://no-color.org>) or
/// `TERM=dumb` is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Colours {
    pub stdout: bool,
    pub stderr: bool,
    /// True if standard output is a terminal, on which Markdown is rendered even without colours.
    pub markdown: bool,
    /// The locale is not UTF-8: marks are written in ASCII.
    pub ascii: bool,
}

impl Colours {
    /// Decides from the environment variables and the standard streams.
    pub(crate) fn new(environment: &Environment) -> Colours {
        let (stdout, stderr) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let is_dumb = environment.get("TERM") == Some("dumb");
        let wanted = environment.get("NO_COLOR").is_none() && !is_dumb;
        Colours {
            stdout: wanted && stdout,
            stderr: wanted && stderr,
            markdown: stdout && !is_dumb,
            ascii: needs_ascii(environment),
        }
    }
}

/// Writes human-readable text to standard output, with control sequences escaped.
pub(crate) fn print(text: impl AsRef<str>) -> Result<()> {
    print_exact(terminal_text::output(text.as_ref()))
}

/// Writes JSON to standard output. On a terminal, control characters are escaped.
pub(crate) fn print_json(text: impl AsRef<str>) -> Result<()> {
    match std::io::stdout().is_terminal() {
        true => print_exact(terminal_text::json(text.as_ref())),
        false => print_exact(text),
    }
}

/// Writes an event to standard output as a line of JSON.
pub(crate) fn print_event(event: &Event) -> Result<()> {
    print_json(event_line(event)?)
}

/// Returns an event as a line of JSON, including the line break.
pub(crate) fn event_line(event: &Event) -> Result<String> {
    let line = serde_json::to_string(event).map_err(|error| Error::internal(format!("writing an event: {error}")))?;
    Ok(line + "\n")
}

/// Writes answers to standard output and progress to standard error, with marks in ASCII if `ascii`
/// is true.
pub(crate) fn print_rendered(pieces: Vec<RenderedText>, ascii: bool) -> Result<()> {
    for piece in pieces {
        let (is_answer, text) = (piece.is_answer(), piece.into_text());
        let text = if ascii { in_ascii(&text) } else { text };
        match is_answer {
            true => print_exact(text)?,
            false => print_stderr(text),
        }
    }
    Ok(())
}

/// Writes all pieces to standard output.
pub(crate) fn print_replay(pieces: Vec<RenderedText>) -> Result<()> {
    pieces.into_iter().try_for_each(|piece| print_exact(piece.into_text()))
}

/// Writes text to standard error unchanged. A reader that has closed the pipe does not end the
/// command.
pub(crate) fn print_stderr(text: impl AsRef<str>) {
    let _ = std::io::stderr().lock().write_all(text.as_ref().as_bytes());
}

/// Writes all pieces to standard error.
pub(crate) fn print_question(pieces: Vec<RenderedText>) {
    for piece in pieces {
        print_stderr(piece.into_text());
    }
}

/// Writes text to standard output unchanged. If the pipe is broken, `main` exits without an error
/// message.
pub(crate) fn print_exact(text: impl AsRef<str>) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(text.as_ref().as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| Error::new(Kind::Cancelled, format!("writing the output: {error}")).source(error))
}
