//! A line on the terminal that shows what nuncio waits for: a countdown, or the progress of a call.

use std::io::Write;
use std::time::Duration;

use crate::session::clock::now_ms;
use crate::terminal_text::output_line;

/// The line is on standard error. It is erased before other output.
pub(crate) struct StatusLine {
    /// False unless standard error is a terminal.
    pub enabled: bool,
    content: Option<StatusContent>,
    shown: bool,
}

enum StatusContent {
    /// `until_ms` is in milliseconds since the Unix epoch; `hint` says how to end the wait.
    Countdown {
        until_ms: u64,
        what: String,
        hint: &'static str,
    },
    Text(String),
}

/// Minimum wait that is shown, in milliseconds.
const SHOWN_MIN_MS: u64 = 2000;
/// Erases the line of the cursor (ECMA-48: EL).
const ERASE: &str = "\r\x1b[2K";
/// Maximum length of the line. A line that is wrapped by the terminal cannot be erased.
const CHARS_MAX: usize = 79;

impl StatusLine {
    /// Creates an empty line.
    pub(crate) fn new(enabled: bool) -> StatusLine {
        StatusLine { enabled, content: None, shown: false }
    }

    /// Starts a countdown if the wait is long. `what` is followed by the number of seconds.
    pub(crate) fn count_down(&mut self, until_ms: u64, what: String, hint: &'static str) {
        let long = until_ms.saturating_sub(now_ms()) >= SHOWN_MIN_MS;
        self.set(long.then_some(StatusContent::Countdown { until_ms, what, hint }));
    }

    /// Shows a text until it is replaced. Does not replace a countdown.
    pub(crate) fn show_text(&mut self, text: &str) {
        if !matches!(self.content, Some(StatusContent::Countdown { .. })) {
            self.set(Some(StatusContent::Text(text.into())));
        }
    }

    fn set(&mut self, content: Option<StatusContent>) {
        self.erase();
        self.content = content.filter(|_| self.enabled);
    }

    /// Waits until the line must be written again; never ends if there is nothing to show.
    pub(crate) async fn tick(&self) {
        match &self.content {
            Some(StatusContent::Countdown { until_ms, .. }) if self.shown => {
                // The displayed number changes at full seconds before the end.
                let left = until_ms.saturating_sub(now_ms()) % 1000;
                tokio::time::sleep(Duration::from_millis(left + 1)).await;
            }
            Some(_) if !self.shown => {}
            _ => std::future::pending().await,
        }
    }

    /// Writes the line, or erases it at the end of a countdown.
    pub(crate) fn write(&mut self) {
        let line = match &self.content {
            Some(StatusContent::Countdown { until_ms, what, hint }) => {
                let left = until_ms.saturating_sub(now_ms()).div_ceil(1000);
                (left > 0).then(|| format!("  {} {left} s ({hint})", shortened(what, hint.len() + 16)))
            }
            Some(StatusContent::Text(text)) => Some(format!("  {}", shortened(text, 2))),
            None => None,
        };
        let Some(line) = line else { return self.stop() };
        self.shown = true;
        show(&format!("{ERASE}{line}"));
    }

    /// Erases the line until the next [`StatusLine::tick`].
    pub(crate) fn erase(&mut self) {
        if std::mem::take(&mut self.shown) {
            show(ERASE);
        }
    }

    /// Removes the content and erases the line.
    pub(crate) fn stop(&mut self) {
        self.content = None;
        self.erase();
    }

    /// Removes a text; a countdown continues.
    pub(crate) fn remove_text(&mut self) {
        if matches!(self.content, Some(StatusContent::Text(_))) {
            self.stop();
        }
    }
}

/// Shortens a text, so that it fits on the line with `others` more characters.
fn shortened(text: &str, others: usize) -> String {
    let (text, most) = (output_line(text), CHARS_MAX.saturating_sub(others));
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn show(text: &str) {
    // A terminal that cannot be written to has no reader.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
