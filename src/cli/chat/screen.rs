//! Draws the chat below the terminal's own scrolled text: finished lines are printed once and are
//! never addressed again; below them, a few rows are drawn again when they change.

use std::io::Write;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::cli::terminal::marks::in_ascii;

/// Begins and ends a synchronized update: the terminal shows it at once (DEC mode 2026).
const BEGIN: &str = "\x1b[?2026h\x1b[?25l\r";
const END: &str = "\x1b[?25h\x1b[?2026l";
/// Turns the wrapping of long rows off and on (DECAWM).
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
/// Erases the whole row (EL 2). This also clears the mark that the row continues on the next one,
/// which a terminal that became narrower has set: such rows join when it becomes wider.
const ERASE_ROW: &str = "\x1b[2K";
/// Erases the row of the cursor, and below (ED). ED is not sent in the first column: there, tmux
/// moves the erased rows into the scrollback.
const ERASE_BELOW: &str = "\x1b[2K\x1b[C\x1b[J\r";
/// Erases below a row that was just written, which is shorter than the terminal is wide.
const ERASE_AFTER: &str = "\x1b[C\x1b[J";
/// Shows the alternate screen, and the normal screen with its cursor (DEC mode 1049).
const ALTERNATE: &str = "\x1b[?1049h\x1b[H";
const NORMAL: &str = "\x1b[?1049l";
/// Moves the cursor to the first row and column.
const HOME: &str = "\x1b[H";

/// How long the end of the chat waits for a terminal that does not read.
const CLOSE: Duration = Duration::from_secs(2);

/// The part of the terminal that is drawn again.
pub(crate) struct Screen {
    /// Prints finished lines only.
    plain: bool,
    /// Marks are written in ASCII.
    ascii: bool,
    /// The rows as they are on the terminal.
    drawn: Vec<String>,
    /// The columns and rows of the terminal at the last frame.
    size: (usize, usize),
    /// The row of the cursor, from the first drawn row.
    cursor_row: usize,
    /// The rows of the overlay, which is on the alternate screen.
    overlay: Option<Vec<String>>,
    /// Control sequences for the next frame, for example the title of the terminal.
    control: String,
    /// Writes to the terminal.
    frames: mpsc::Sender<Vec<u8>>,
    /// Has a permit unless a frame is being written.
    written: Arc<Semaphore>,
    /// Cancelled when the terminal is gone.
    gone: CancellationToken,
}

impl Screen {
    /// Creates a screen without rows. A thread writes the frames, because a terminal may stop
    /// reading.
    pub(crate) fn new(plain: bool, ascii: bool) -> Screen {
        let (frames, receiver) = mpsc::channel::<Vec<u8>>();
        let written = Arc::new(Semaphore::new(1));
        let (permits, gone) = (written.clone(), CancellationToken::new());
        let failed = gone.clone();
        tokio::task::spawn_blocking(move || {
            for frame in receiver {
                let mut output = std::io::stdout().lock();
                match output.write_all(&frame).and_then(|()| output.flush()) {
                    Ok(()) => permits.add_permits(1),
                    Err(_) => return failed.cancel(),
                }
            }
        });
        if !plain {
            watch_terminal(gone.clone());
        }
        Screen {
            plain,
            ascii,
            drawn: Vec::new(),
            size: (0, 0),
            cursor_row: 0,
            overlay: None,
            control: String::new(),
            frames,
            written,
            gone,
        }
    }

    /// Waits until the terminal has taken the last frame. Never ends if the terminal is gone.
    pub(crate) async fn ready(&self) {
        // The semaphore is never closed.
        let _ = self.written.acquire().await;
    }

    /// Returns whether the terminal has taken the last frame.
    pub(crate) fn is_ready(&self) -> bool {
        self.written.available_permits() > 0
    }

    /// Waits until the terminal is gone: it has hung up, or cannot be written to. A chat without a
    /// controlling terminal receives no SIGHUP.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Adds a control sequence to the next frame.
    pub(crate) fn control(&mut self, sequence: &str) {
        if !self.plain {
            self.control += sequence;
        }
    }

    /// Prints finished lines, each with its line break, and draws the rows below them, which must
    /// be shorter than the terminal is wide. `cursor` is the row and column of the cursor in
    /// `rows`, `size` the columns and rows of the terminal.
    pub(crate) fn draw(&mut self, finished: &str, rows: Vec<String>, cursor: (usize, usize), size: (usize, usize)) {
        if self.plain {
            return self.send(finished.into());
        }
        let mut frame = self.leave_overlay();
        // A terminal that changed its size may have changed or dropped rows.
        let resized = std::mem::replace(&mut self.size, size) != size;
        if !resized && frame.is_empty() && finished.is_empty() && rows == self.drawn && cursor.0 == self.cursor_row {
            // Only the column may differ.
            let frame = format!("\r{}", right(cursor.1));
            return self.send(frame);
        }
        frame += BEGIN;
        frame += &up(self.cursor_row);
        if resized || !finished.is_empty() {
            frame += ERASE_BELOW;
            frame += &finished.replace('\n', "\r\n");
        }
        frame += NO_WRAP;
        for (number, row) in rows.iter().enumerate() {
            frame += if number > 0 { "\r\n" } else { "" };
            frame += ERASE_ROW;
            frame += row;
        }
        frame += if rows.len() < self.drawn.len() { ERASE_AFTER } else { "" };
        frame += WRAP;
        frame += &up(rows.len().saturating_sub(1) - cursor.0.min(rows.len().saturating_sub(1)));
        frame += "\r";
        frame += &right(cursor.1);
        frame += END;
        (self.drawn, self.cursor_row) = (rows, cursor.0);
        self.send(frame);
    }

    /// Draws rows on the alternate screen, until the next call of [`Screen::draw`].
    pub(crate) fn draw_overlay(&mut self, rows: Vec<String>) {
        if self.overlay.as_ref() == Some(&rows) {
            return;
        }
        let mut frame = String::new();
        if self.overlay.is_none() {
            frame += ALTERNATE;
        }
        frame += BEGIN;
        frame += HOME;
        frame += NO_WRAP;
        let lines: Vec<String> = rows.iter().map(|row| format!("{ERASE_ROW}{row}")).collect();
        frame += &lines.join("\r\n");
        frame += ERASE_AFTER;
        frame += WRAP;
        frame += END;
        self.overlay = Some(rows);
        self.send(frame);
    }

    fn leave_overlay(&mut self) -> String {
        if self.overlay.take().is_some() { NORMAL.into() } else { String::new() }
    }

    fn send(&mut self, frame: String) {
        let frame = if self.ascii { in_ascii(&frame) } else { frame };
        let frame = frame + &std::mem::take(&mut self.control);
        if !frame.is_empty()
            && let Ok(permit) = self.written.try_acquire()
        {
            permit.forget();
            // Fails if the terminal is gone.
            let _ = self.frames.send(frame.into_bytes());
        }
    }

    /// Erases the rows, for a program that uses the terminal. The next frame begins at the cursor.
    pub(crate) async fn release(&mut self) {
        let erase = async {
            self.ready().await;
            self.draw("", vec![String::new()], (0, 0), self.size);
            self.ready().await;
        };
        let _ = tokio::time::timeout(CLOSE, erase).await;
        (self.drawn, self.cursor_row) = (Vec::new(), 0);
    }

    /// Erases the rows, and prints the last lines, if the terminal takes them in time.
    pub(crate) async fn close(mut self, finished: &str) {
        let gone = self.gone.clone();
        let close = async {
            self.ready().await;
            self.draw(finished, vec![String::new()], (0, 0), self.size);
            self.ready().await;
        };
        tokio::select! {
            _ = tokio::time::timeout(CLOSE, close) => {}
            () = gone.cancelled() => {}
        }
    }
}

/// Reports that the terminal has hung up, which a chat without output would not notice.
fn watch_terminal(gone: CancellationToken) {
    tokio::task::spawn_blocking(move || {
        let stdin = rustix::stdio::stdin();
        // Without requested events, only a hangup or an error ends the wait.
        while poll(&mut [PollFd::new(&stdin, PollFlags::empty())], None) == Err(Errno::INTR) {}
        gone.cancel();
    });
}

fn up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

fn right(columns: usize) -> String {
    if columns == 0 { String::new() } else { format!("\x1b[{columns}C") }
}
