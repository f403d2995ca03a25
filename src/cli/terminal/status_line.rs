//! A line on the terminal that shows what nuncio waits for: a countdown, or an operation.

use std::io::Write;
use std::time::Duration;

use super::activity::CurrentWork;
use crate::session::clock::now_ms;
use crate::terminal_text::output_line;

/// The line is on standard error. It is erased before other output.
pub(crate) struct StatusLine {
    /// False unless standard error is a terminal.
    pub enabled: bool,
    /// Has priority over `work`.
    countdown: Option<Countdown>,
    work: Option<CurrentWork>,
    shown: bool,
}

/// A wait that ends at `until_ms`, in milliseconds since the Unix epoch; `hint` says how to end it.
struct Countdown {
    until_ms: u64,
    what: String,
    hint: &'static str,
}

/// Minimum wait that is shown, in milliseconds.
const SHOWN_MIN_MS: u64 = 2000;
/// How long an operation without output runs before it is shown.
pub(crate) const WORK_SHOWN: Duration = Duration::from_millis(500);
/// The marks of an operation, one for each second.
pub(crate) const MARKS: [char; 4] = ['◐', '◓', '◑', '◒'];
/// Erases the line of the cursor (ECMA-48: EL).
const ERASE: &str = "\r\x1b[2K";
/// Width of a terminal that does not say its width.
const COLUMNS: usize = 80;

impl StatusLine {
    /// Creates an empty line.
    pub(crate) fn new(enabled: bool) -> StatusLine {
        StatusLine { enabled, countdown: None, work: None, shown: false }
    }

    /// Starts a countdown if the wait is long. `what` is followed by the number of seconds.
    pub(crate) fn count_down(&mut self, until_ms: u64, what: String, hint: &'static str) {
        self.erase();
        let long = self.enabled && until_ms.saturating_sub(now_ms()) >= SHOWN_MIN_MS;
        self.countdown = long.then_some(Countdown { until_ms, what, hint });
    }

    /// Shows an operation until it is replaced, after a countdown; `None` removes it.
    pub(crate) fn show_work(&mut self, work: Option<CurrentWork>) {
        let key = |work: &Option<CurrentWork>| work.as_ref().map(|work| (work.since, work.last().to_owned()));
        if self.countdown.is_none() && key(&self.work) != key(&work) {
            self.erase();
        }
        self.work = work.filter(|_| self.enabled);
    }

    /// Waits until the line must be written; never ends if there is nothing to show.
    pub(crate) async fn tick(&self) {
        match (&self.countdown, &self.work) {
            (Some(countdown), _) if self.shown => {
                // The displayed number changes at full seconds before the end.
                let left = countdown.until_ms.saturating_sub(now_ms()) % 1000;
                tokio::time::sleep(Duration::from_millis(left + 1)).await;
            }
            (None, Some(work)) if self.shown => {
                let spent = work.since.elapsed().subsec_nanos();
                tokio::time::sleep(Duration::from_nanos(u64::from(1_000_000_000 - spent) + 1)).await;
            }
            // Output is shown at once.
            (None, Some(work)) if work.last().is_empty() => tokio::time::sleep_until((work.since + WORK_SHOWN).into()).await,
            (None, None) => std::future::pending().await,
            _ => {}
        }
    }

    pub(crate) fn write(&mut self) {
        self.countdown = self.countdown.take().filter(|countdown| countdown.until_ms > now_ms());
        let line = match (&self.countdown, &self.work) {
            (Some(Countdown { until_ms, what, hint }), _) => {
                let left = until_ms.saturating_sub(now_ms()).div_ceil(1000);
                format!("  {} {left} s ({hint})", shortened(what, hint.len() + 16))
            }
            (None, Some(work)) => {
                let seconds = work.since.elapsed().as_secs();
                let title = shortened(&work.title, columns() / 2);
                let text = format!("{title}  {seconds} s  {}", work.last());
                format!("{} {}", MARKS[seconds as usize % MARKS.len()], shortened(text.trim_end(), 2))
            }
            (None, None) => return self.erase(),
        };
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
        (self.countdown, self.work) = (None, None);
        self.erase();
    }
}

/// Shortens a text, so that it fits on the line with `others` more characters.
fn shortened(text: &str, others: usize) -> String {
    let (text, most) = (output_line(text), (columns() - 1).saturating_sub(others));
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Returns the width of the terminal. A line that the terminal wraps cannot be erased.
pub(crate) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
    let columns = size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    columns.unwrap_or(COLUMNS).clamp(20, 200)
}

fn show(text: &str) {
    // A terminal that cannot be written to has no reader.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
