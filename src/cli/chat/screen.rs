//! Draws the chat below the terminal's own scrolled text: finished lines are printed once and are
//! never addressed again; below them, a few rows are drawn again when they change.

use std::io::Write;
use std::time::Duration;

use tokio::sync::mpsc;

/// Begins and ends a synchronized update: the terminal shows it at once (DEC mode 2026).
const BEGIN: &str = "\x1b[?2026h\x1b[?25l\r";
const END: &str = "\x1b[?25h\x1b[?2026l";
/// Turns the wrapping of long rows off and on (DECAWM).
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
/// Erases to the end of the row, and below the cursor (EL, ED).
const ERASE_ROW: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

/// How long the end of the chat waits for a terminal that does not read.
const CLOSE: Duration = Duration::from_secs(2);

/// The part of the terminal that is drawn again.
pub(crate) struct Screen {
    /// The rows as they are on the terminal.
    drawn: Vec<String>,
    /// The row of the cursor, from the first drawn row.
    cursor_row: usize,
    /// Writes to the terminal, one frame at a time.
    frames: mpsc::Sender<Vec<u8>>,
}

impl Screen {
    /// Creates a screen without rows. A thread writes the frames, because a terminal may stop
    /// reading.
    pub(crate) fn new() -> Screen {
        let (frames, mut receiver) = mpsc::channel::<Vec<u8>>(1);
        tokio::task::spawn_blocking(move || {
            while let Some(frame) = receiver.blocking_recv() {
                let mut output = std::io::stdout().lock();
                // A terminal that is gone sends SIGHUP.
                let _ = output.write_all(&frame).and_then(|()| output.flush());
            }
        });
        Screen { drawn: Vec::new(), cursor_row: 0, frames }
    }

    /// Waits until the terminal can take a frame.
    pub(crate) async fn ready(&self) {
        // The thread ends only after the screen.
        let _ = self.frames.reserve().await;
    }

    /// Returns whether the terminal can take a frame now.
    pub(crate) fn is_ready(&self) -> bool {
        self.frames.capacity() > 0
    }

    /// Prints finished lines, each with its line break, and draws the rows below them. `cursor` is
    /// the row and column of the cursor in `rows`.
    pub(crate) fn draw(&mut self, finished: &str, rows: Vec<String>, cursor: (usize, usize)) {
        if finished.is_empty() && rows == self.drawn && cursor.0 == self.cursor_row {
            // Only the column may differ.
            let frame = format!("\r{}", right(cursor.1));
            let _ = self.frames.try_send(frame.into_bytes());
            return;
        }
        let mut frame = String::from(BEGIN);
        frame += &up(self.cursor_row);
        if !finished.is_empty() {
            frame += ERASE_BELOW;
            frame += &finished.replace('\n', "\r\n");
        }
        frame += NO_WRAP;
        for (number, row) in rows.iter().enumerate() {
            frame += if number > 0 { "\r\n" } else { "" };
            frame += row;
            frame += ERASE_ROW;
        }
        frame += if rows.len() < self.drawn.len() { ERASE_BELOW } else { "" };
        frame += WRAP;
        frame += &up(rows.len().saturating_sub(1) - cursor.0.min(rows.len().saturating_sub(1)));
        frame += "\r";
        frame += &right(cursor.1);
        frame += END;
        (self.drawn, self.cursor_row) = (rows, cursor.0);
        let _ = self.frames.try_send(frame.into_bytes());
    }

    /// Forgets the rows, because other output follows them.
    pub(crate) fn forget(&mut self) {
        (self.drawn, self.cursor_row) = (Vec::new(), 0);
    }

    /// Erases the rows, and prints the last lines, if the terminal takes them in time.
    pub(crate) async fn close(mut self, finished: &str) {
        let close = async {
            self.ready().await;
            self.draw(finished, vec![String::new()], (0, 0));
            self.ready().await;
        };
        let _ = tokio::time::timeout(CLOSE, close).await;
    }
}

fn up(rows: usize) -> String {
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A") }
}

fn right(columns: usize) -> String {
    if columns == 0 { String::new() } else { format!("\x1b[{columns}C") }
}
