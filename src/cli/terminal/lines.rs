//! Lines that the user types on the terminal.

use tokio::sync::{Mutex, MutexGuard};
use tokio::task::{JoinHandle, spawn_blocking};

/// The lines of standard input. One question is asked at a time, by the holder of the lock.
#[derive(Default)]
pub(crate) struct TerminalLines {
    /// The read that is waiting for a line. It outlives a question that is withdrawn, because a
    /// read of the terminal cannot be cancelled; its line then answers the next question.
    reading: Mutex<Option<JoinHandle<Option<String>>>>,
}

/// The right to read lines.
pub(crate) struct TypedLines<'a> {
    reading: MutexGuard<'a, Option<JoinHandle<Option<String>>>>,
}

impl TerminalLines {
    /// Waits until no other question is open. Cancel safe.
    pub(crate) async fn lock(&self) -> TypedLines<'_> {
        TypedLines { reading: self.reading.lock().await }
    }
}

impl TypedLines<'_> {
    /// Waits for the next line. Returns `None` at the end of the input. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let reading = self.reading.get_or_insert_with(|| spawn_blocking(read_line));
        let line = reading.await.ok().flatten();
        *self.reading = None;
        line
    }
}

fn read_line() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}
