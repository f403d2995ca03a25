//! What a client lends to the tools of its sessions: the files that it has open, and its terminals. Our own hands are always behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::ToolContext;
use crate::content::ToolContent;
use crate::limits;
use crate::workspace::Placed;

/// A client's files and terminals. Each call ends within a bound; what the client cannot do, or does not do in time, the caller does itself.
pub trait ClientHands: Send + Sync {
    /// Whether it is of any use to ask it for files.
    fn has_files(&self) -> bool;

    /// The text of a file as the client has it, with what is not saved. None: it does not say.
    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>>;

    /// True when the client has taken `text` as the file's content. One that does not answer may still write it: see `may_write`.
    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, bool>;

    /// It was told to write a file, said that it did, and did not.
    fn lost(&self, path: &Path);

    /// Whether it was told to write the file, and has neither done it nor refused.
    fn may_write(&self, path: &Path) -> bool;

    /// Starts a command where the user sees it. None: it has no terminal, and nothing runs. An error: it did not say, so that something may.
    fn start<'a>(&'a self, command: &'a TerminalCommand) -> BoxFuture<'a, Result<Option<Box<dyn ClientTerminal>>, String>>;
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

    /// What the client has of a file of which the disk has `disk`. To be called where one may block.
    pub(super) fn held(&self, placed: &Placed, disk: Option<&[u8]>) -> Held {
        let Some(client) = self.client_of(placed).filter(|_| disk.is_none_or(|disk| std::str::from_utf8(disk).is_ok())) else {
            return Held::Unknown;
        };
        match (self.wait_for(client.read_text(&placed.path)).flatten(), disk) {
            (Some(text), Some(disk)) if !differs(disk, &text) => Held::Same,
            (Some(text), _) => Held::Unsaved(text),
            // A file that is nowhere: clients say so by an error.
            (None, None) => Held::Same,
            (None, Some(_)) => Held::Unknown,
        }
    }

    /// True when the client has taken the file's new content. What an editor would not give back byte by byte it does not get.
    pub(super) fn client_takes(&self, placed: &Placed, bytes: &[u8]) -> bool {
        let Some(client) = self.client_of(placed) else { return false };
        match std::str::from_utf8(bytes) {
            Ok(text) if survives_an_editor(bytes) => self.wait_for(client.write_text(&placed.path, text)).unwrap_or(false),
            _ => false,
        }
    }

    /// The client was told to write the file, and may do it at any time.
    pub(super) fn client_may_write(&self, placed: &Placed) -> bool {
        self.client.as_ref().is_some_and(|client| client.may_write(&placed.path))
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

/// What a client has of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Held {
    /// It is not asked, or does not say: the disk is all there is to go by.
    #[default]
    Unknown,
    /// What the disk has.
    Same,
    /// A text that is not saved.
    Unsaved(String),
}

impl Held {
    pub fn unsaved(&self) -> Option<&str> {
        match self {
            Held::Unsaved(text) => Some(text),
            Held::Unknown | Held::Same => None,
        }
    }
}

/// Whether editors keep such a content as it is: text without a mark, with one kind of line ending.
pub(super) fn survives_an_editor(bytes: &[u8]) -> bool {
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
