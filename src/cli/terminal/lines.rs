//! Lines and keys that the user types on the terminal.

use std::time::Duration;

use parking_lot::Mutex as SyncMutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::{JoinHandle, spawn_blocking};

use super::output::print_stderr;

/// A key counts as an answer only if no other byte arrives in this time before and after it: a
/// paste can contain any text, and not every terminal marks it.
pub(crate) const QUIET: Duration = Duration::from_millis(100);
/// Number of bytes that are read at once.
const KEY_BYTES: usize = 64;

/// The lines and keys of standard input. One question is asked at a time, by the holder of the
/// lock.
#[derive(Default)]
pub(crate) struct TerminalLines {
    /// The read that is waiting for a line. It outlives a question that is withdrawn, because a
    /// read of the terminal cannot be cancelled.
    reading: Mutex<Option<JoinHandle<Option<String>>>>,
    /// The settings of the terminal while keys are read.
    settings: SyncMutex<Option<Termios>>,
}

/// The right to read lines.
pub(crate) struct TypedLines<'a> {
    lines: &'a TerminalLines,
    reading: MutexGuard<'a, Option<JoinHandle<Option<String>>>>,
}

impl TerminalLines {
    /// Waits until no other question is open. Cancel safe.
    pub(crate) async fn lock(&self) -> TypedLines<'_> {
        TypedLines { lines: self, reading: self.reading.lock().await }
    }

    /// Turns off modes of the terminal. Returns false if standard input is no terminal.
    fn turn_off(&self, modes: LocalModes) -> bool {
        let mut settings = self.settings.lock();
        let Ok(mut wanted) = tcgetattr(stdin()) else { return false };
        settings.get_or_insert_with(|| wanted.clone());
        wanted.local_modes.remove(modes);
        tcsetattr(stdin(), OptionalActions::Now, &wanted).is_ok()
    }

    /// Restores the settings of the terminal.
    pub(crate) fn restore(&self) {
        if let Some(settings) = self.settings.lock().take() {
            // Fails if the terminal is closed.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &settings);
        }
    }
}

impl Drop for TerminalLines {
    fn drop(&mut self) {
        self.restore();
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

    /// Waits for the next line, which the terminal does not show. Returns `None` at the end of the
    /// input. Cancel safe.
    pub(crate) async fn next_hidden(&mut self) -> Option<String> {
        self.lines.turn_off(LocalModes::ECHO);
        let _restore = RestoreOnDrop(self.lines);
        self.next().await
    }

    /// Discards what the user typed before a question appears, until nothing arrives for [`QUIET`].
    /// Cancel safe.
    pub(crate) async fn discard_typed(&self) {
        self.discard(KEY_MODES).await;
    }

    async fn discard(&self, modes: LocalModes) {
        if self.reading.is_some() || !self.lines.turn_off(modes) {
            return;
        }
        let _restore = RestoreOnDrop(self.lines);
        loop {
            // Fails if the terminal is closed, which the next read reports.
            let _ = tcflush(stdin(), QueueSelector::IFlush);
            tokio::time::sleep(QUIET).await;
            if !has_input(Duration::ZERO) {
                return;
            }
        }
    }

    /// Waits for a key. Returns `None` at the end of the input, and a character that is no answer
    /// for other keys and for a paste. Cancel safe.
    pub(crate) async fn key(&mut self) -> Option<char> {
        self.key_without(KEY_MODES).await
    }

    async fn key_without(&mut self, modes: LocalModes) -> Option<char> {
        if self.reading.is_some() {
            // The line was typed for a question that was withdrawn.
            return self.next().await.map(|_| char::default());
        }
        if !self.lines.turn_off(modes) {
            return self
                .next()
                .await
                .map(|line| key_of(line.strip_suffix('\n').filter(|key| !key.is_empty()).unwrap_or(&line).as_bytes()));
        }
        let _restore = RestoreOnDrop(self.lines);
        // Dropping `_cancel` ends the read.
        let (cancelled, _cancel) = std::io::pipe().ok()?;
        spawn_blocking(move || read_key(&cancelled)).await.ok()?.map(|bytes| key_of(&bytes))
    }

    /// Asks a question until the user answers with y or n. The end of the input, Enter and Ctrl-C
    /// are no. Cancel safe.
    pub(crate) async fn confirm(&mut self, question: &str) -> bool {
        // Ctrl-C is read as a key: its signal would end the process without restoring the terminal.
        let modes = KEY_MODES.union(LocalModes::ISIG);
        self.discard(modes).await;
        loop {
            print_stderr(format!("{question}  [y]es  [n]o: "));
            let key = self.key_without(modes).await.unwrap_or('n');
            print_stderr(format!("{}\n", Some(key).filter(|key| key.is_alphanumeric()).unwrap_or(' ')));
            match key {
                'y' | 'Y' => return true,
                'n' | 'N' | '\n' | '\r' | '\u{3}' => return false,
                _ => {}
            }
        }
    }
}

struct RestoreOnDrop<'a>(&'a TerminalLines);

impl Drop for RestoreOnDrop<'_> {
    fn drop(&mut self) {
        self.0.restore();
    }
}

/// The modes of a terminal that are off while a key is read.
const KEY_MODES: LocalModes = LocalModes::ICANON.union(LocalModes::ECHO);

/// Interprets bytes that arrived together. Several characters, such as an arrow key sends, are no
/// answer.
fn key_of(bytes: &[u8]) -> char {
    let text = String::from_utf8_lossy(bytes);
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none()).unwrap_or_default()
}

/// Returns whether standard input has input, or has it within `wait`.
fn has_input(wait: Duration) -> bool {
    let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    poll(&mut [PollFd::new(&stdin(), PollFlags::IN)], Some(&wait)).is_ok_and(|ready| ready > 0)
}

/// Waits for a key, and reads what arrives until [`QUIET`] is over. Returns `None` at the end of
/// the input, or when `cancelled` has no writer.
fn read_key(cancelled: &std::io::PipeReader) -> Option<Vec<u8>> {
    loop {
        let input = stdin();
        let mut ready = [PollFd::new(&input, PollFlags::IN), PollFd::new(cancelled, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return None,
            Ok(_) => {}
        }
        if !ready[1].revents().is_empty() {
            return None;
        }
        break;
    }
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; KEY_BYTES];
        let count = read(stdin(), &mut some).ok().filter(|count| *count > 0)?;
        // Of a paste, the start is enough.
        bytes.extend_from_slice(&some[..count.min(KEY_BYTES.saturating_sub(bytes.len()))]);
        if !has_input(QUIET) {
            // Ctrl-D ends the input, as in a line.
            return (bytes != [4]).then_some(bytes);
        }
    }
}

fn read_line() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}
