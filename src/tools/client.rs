//! What a client lends to the tools of its sessions: the files that it has open, and its terminals. Our own hands are always behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::ToolContext;
use crate::content::ToolContent;
use crate::limits;
use crate::workspace::Placed;

/// A client's files and terminals. Each call ends within a bound; what the client cannot do, does not do, or does too late is `None` or false,
/// and then the caller does it itself.
pub trait ClientHands: Send + Sync {
    /// Whether it is of any use to ask it for files.
    fn has_files(&self) -> bool;

    /// The text of a file as the client has it, with what is not saved.
    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>>;

    /// True when the client has taken `text` as the file's content.
    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, bool>;

    /// It was told to write a file, said that it did, and did not.
    fn lost(&self, path: &Path);

    /// Starts a command where the user sees it.
    fn start<'a>(&'a self, command: &'a TerminalCommand) -> BoxFuture<'a, Option<Box<dyn ClientTerminal>>>;
}

/// What to run in a client's terminal.
pub struct TerminalCommand {
    pub program: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// Output that the client keeps, its end.
    pub output_bytes_max: u64,
}

/// A command that runs in a client's terminal. Dropping it releases the terminal, which ends a command that still runs.
pub trait ClientTerminal: Send + Sync {
    /// For people.
    fn shown(&self, output: String) -> ToolContent;

    /// Returns when the command has ended: its exit status, or 128 + the number of the signal that ended it. None: the client does not know.
    fn ended(&self) -> BoxFuture<'_, Option<i32>>;

    /// What it has written so far, and whether that is only its end.
    fn output(&self) -> BoxFuture<'_, Option<(String, bool)>>;

    fn kill(&self) -> BoxFuture<'_, ()>;
}

impl ToolContext {
    /// The client, if this file is its business: one inside the roots, not too long for a message, and no link to elsewhere.
    pub(super) fn client_of(&self, placed: &Placed) -> Option<&Arc<dyn ClientHands>> {
        let bytes = std::fs::metadata(&placed.real).map_or(0, |metadata| metadata.len());
        self.client.as_ref().filter(|client| client.has_files() && placed.inside && bytes <= limits::CLIENT_FILE_BYTES_MAX)
    }

    /// What the client has of a file and the disk, which has `disk`, does not. To be called where one may block.
    pub(super) fn unsaved(&self, placed: &Placed, disk: Option<&[u8]>) -> Option<String> {
        if disk.is_some_and(|disk| std::str::from_utf8(disk).is_err()) {
            return None;
        }
        let text = self.wait_for(self.client_of(placed)?.read_text(&placed.path)).flatten();
        text.filter(|text| disk.is_none_or(|disk| differs(disk, text)))
    }

    /// True when the client has taken the file's new content: `bytes`, where `old` was. What an editor would not give back byte by byte
    /// it does not get.
    pub(super) fn client_takes(&self, placed: &Placed, old: Option<&[u8]>, bytes: &[u8]) -> bool {
        let Some(client) = self.client_of(placed).filter(|_| old.is_none_or(survives_an_editor)) else { return false };
        match std::str::from_utf8(bytes) {
            Ok(text) if survives_an_editor(bytes) => self.wait_for(client.write_text(&placed.path, text)).unwrap_or(false),
            _ => false,
        }
    }

    /// The client said that it has written a file, and has not.
    pub(super) fn client_lost(&self, placed: &Placed) {
        if let Some(client) = &self.client {
            client.lost(&placed.path);
        }
    }

    /// None when the call was cancelled before.
    fn wait_for<T>(&self, asked: impl Future<Output = T>) -> Option<T> {
        tokio::runtime::Handle::current().block_on(async {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => None,
                answer = asked => Some(answer),
            }
        })
    }
}

/// Whether editors keep such a content as it is: text without a mark, with one kind of line ending.
fn survives_an_editor(bytes: &[u8]) -> bool {
    let feeds = memchr::memchr_iter(b'\n', bytes).count();
    let pairs = memchr::memmem::find_iter(bytes, b"\r\n").count();
    let returns = memchr::memchr_iter(b'\r', bytes).count();
    let marked = bytes.starts_with(b"\xef\xbb\xbf");
    returns == pairs && (pairs == 0 || pairs == feeds) && !marked && !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

/// Whether a client's text is another one than the disk's. Line endings and a mark do not count: editors show all alike.
fn differs(disk: &[u8], text: &str) -> bool {
    fn plain(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }
    disk != text.as_bytes() && !plain(disk).eq(plain(text.as_bytes()))
}
