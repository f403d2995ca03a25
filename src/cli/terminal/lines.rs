//! Lines and keys that the user types on the terminal.

use parking_lot::Mutex as SyncMutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::{JoinHandle, spawn_blocking};

/// Maximum number of bytes that arrive together with a key. More bytes are a paste.
const KEY_BYTES: usize = 64;

/// The lines and keys of standard input. One question is asked at a time, by the holder of the
/// lock.
#[derive(Default)]
pub(crate) struct TerminalLines {
    /// The read that is waiting for a line. It outlives a question that is withdrawn, because a
    /// read of the terminal cannot be cancelled; its line then answers the next question.
    reading: Mutex<Option<JoinHandle<Option<String>>>>,
    /// The settings of the terminal while keys are read.
    settings: SyncMutex<Option<Termios>>,
}

/// The right to read lines.
pub(crate) struct TypedLines<'a> {
    lines: &'a TerminalLines,
    reading: MutexGuard<'a, Option<JoinHandle<Option<String>>>>,
}

/// A key that the user pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypedKey {
    /// `None` for keys without a character, and for pasted text.
    pub character: Option<char>,
    /// Enter came together with the key.
    pub with_enter: bool,
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

    /// Discards what the user typed before a question appears.
    pub(crate) fn discard_typed(&self) {
        // Fails without a terminal, which has nothing to discard.
        let _ = tcflush(stdin(), QueueSelector::IFlush);
    }

    /// Waits for a key. Returns `None` at the end of the input. Cancel safe.
    pub(crate) async fn key(&mut self) -> Option<TypedKey> {
        // A line is being read for a question that was withdrawn.
        if self.reading.is_some() || !self.lines.turn_off(LocalModes::ICANON | LocalModes::ECHO) {
            return Some(key_of(self.next().await?.as_bytes()));
        }
        let _restore = RestoreOnDrop(self.lines);
        // Dropping `_cancel` ends the read.
        let (cancelled, _cancel) = std::io::pipe().ok()?;
        let bytes = spawn_blocking(move || read_key(&cancelled)).await.ok()??;
        Some(key_of(&bytes))
    }
}

struct RestoreOnDrop<'a>(&'a TerminalLines);

impl Drop for RestoreOnDrop<'_> {
    fn drop(&mut self) {
        self.0.restore();
    }
}

/// Interprets bytes that arrived together.
fn key_of(bytes: &[u8]) -> TypedKey {
    let text = String::from_utf8_lossy(bytes);
    let key = text.strip_suffix('\n').unwrap_or(&text);
    let mut characters = key.chars();
    let character = match (characters.next(), characters.next()) {
        (Some(character), None) => Some(character),
        (None, _) => Some('\n'),
        // A key such as an arrow sends several characters.
        (Some(_), Some(_)) => None,
    };
    TypedKey { character, with_enter: key.len() < text.len() }
}

/// Waits for a key. Returns `None` at the end of the input, or when `cancelled` has no writer.
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
        let mut bytes = vec![0; KEY_BYTES];
        let count = read(input, &mut bytes).ok().filter(|count| *count > 0)?;
        bytes.truncate(count);
        // Ctrl-D ends the input, as in a line.
        return (bytes != [4]).then_some(bytes);
    }
}

fn read_line() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}
