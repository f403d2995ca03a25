//! What a client lends to the tools of its sessions: the files that it has open, and its terminals. Our own hands are always behind it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{ToolContext, ToolError};
use crate::content::ToolContent;
use crate::limits;
use crate::workspace::{self, Placed};

/// A client's files and terminals. Each call ends within a bound; what the client cannot do, or does not do in time, the caller does itself.
pub trait ClientHands: Send + Sync {
    /// Whether it is of any use to ask it for files.
    fn has_files(&self) -> bool;

    /// Returns the client's text of a file, unsaved changes included; `None` if the client has no
    /// such method or file, or does not answer in time: the caller uses the disk.
    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Option<String>, Refused>>;

    /// Returns true if the client accepted `text` as the file's content, false if the caller has to
    /// write it. A client that does not answer in time may still write it: see `may_write`.
    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<bool, Refused>>;

    /// The client does not return what it was given to write. Its files are not used any more in
    /// this session, and the user is notified once.
    fn distrust(&self, path: &Path);

    /// Whether it was told to write the file, and has neither done it nor refused.
    fn may_write(&self, path: &Path) -> bool;

    /// The file has what the client was told to write, although it did not answer: nothing is
    /// pending any more.
    fn has_written(&self, path: &Path);

    /// Starts a command where the user sees it. None: it has no terminal, and nothing runs. An error: it did not say, so that something may.
    fn start<'a>(&'a self, command: &'a TerminalCommand) -> BoxFuture<'a, Result<Option<Box<dyn ClientTerminal>>, String>>;
}

/// A client's error in answer to a request: its message. Nothing else does what the client refused.
#[derive(Clone, Debug)]
pub struct Refused(pub String);

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
    /// The client, if it may be asked for this file: client files are not turned off, the file is in
    /// a directory that the client named, and not too long for a message.
    pub(super) fn client_of(&self, placed: &Placed) -> Option<&Arc<dyn ClientHands>> {
        let named = placed.inside && self.client_roots.iter().any(|root| placed.real.starts_with(root));
        let bytes = std::fs::metadata(&placed.real).map_or(0, |metadata| metadata.len());
        self.client.as_ref().filter(|client| client.has_files() && named && bytes <= limits::CLIENT_FILE_BYTES_MAX)
    }

    /// What the client has of a file of which the disk has `disk`. Blocks.
    pub(super) fn held(&self, placed: &Placed, disk: Option<&[u8]>) -> Result<Held, ToolError> {
        let Some(client) = self.client_of(placed).filter(|_| disk.is_none_or(|disk| std::str::from_utf8(disk).is_ok())) else {
            return Ok(Held::Unknown);
        };
        let text = self.wait_for(client.read_text(&placed.path)).unwrap_or(Ok(None)).map_err(|Refused(why)| {
            let shown = self.workspace.show(&placed.path);
            match disk {
                Some(_) => ToolError(format!("the client refused to read {shown}: {why}")),
                None => ToolError(format!("{shown} is not on the disk, and the client refused to read it: {why}")),
            }
        })?;
        Ok(match (text, disk) {
            (Some(text), Some(disk)) if !differs(disk, &text) => Held::Same,
            // Some clients report a missing file as an error, some as an empty text.
            (None, None) => Held::Same,
            (Some(text), None) if text.is_empty() => Held::Same,
            (Some(text), _) => Held::Unsaved(text),
            (None, Some(_)) => Held::Unknown,
        })
    }

    /// Returns true if the client accepted the file's new content. Content that an editor would not
    /// return byte for byte is not given to it. Blocks.
    pub(super) fn client_takes(&self, placed: &Placed, bytes: &[u8]) -> Result<bool, ToolError> {
        let Some(client) = self.client_of(placed) else { return Ok(false) };
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|_| survives_an_editor(bytes)) else { return Ok(false) };
        // Not every client creates missing parent directories.
        let parents = workspace::create_parents(&placed.real).map_err(|error| self.failed("creating", &placed.path, error))?;
        let taken = self.wait_for(client.write_text(&placed.path, text)).unwrap_or(Ok(false));
        if taken.is_err() {
            parents.remove();
        }
        taken.map_err(|Refused(why)| ToolError(format!("the client refused to write {}: {why}", self.workspace.show(&placed.path))))
    }

    /// The client was told to write the file, and may do it at any time.
    pub(super) fn client_may_write(&self, placed: &Placed) -> bool {
        self.client.as_ref().is_some_and(|client| client.may_write(&placed.path))
    }

    /// Whether the client has written `bytes` without an answer: `disk` is what the file has now.
    pub(super) fn client_wrote_silently(&self, placed: &Placed, bytes: &[u8], disk: Option<&[u8]>) -> bool {
        let Some(client) = self.client.as_ref().filter(|client| client.may_write(&placed.path)) else { return false };
        let written = disk == Some(bytes);
        if written {
            client.has_written(&placed.path);
        }
        written
    }

    /// The client does not return what it was given to write.
    pub(super) fn distrust_client(&self, placed: &Placed) {
        if let Some(client) = &self.client {
            client.distrust(&placed.path);
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

/// Whether a client's text is another one than the disk's. Line endings, a byte order mark and one
/// final newline do not count: clients drop or add them.
fn differs(disk: &[u8], text: &str) -> bool {
    fn lines(bytes: &[u8]) -> Vec<&[u8]> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
    }
    if disk == text.as_bytes() {
        return false;
    }
    let (disk, text) = (lines(disk), lines(text.as_bytes()));
    let one_newline_more = |long: &[&[u8]], short: &[&[u8]]| long.split_last() == Some((&&b""[..], short));
    disk != text && !one_newline_more(&disk, &text) && !one_newline_more(&text, &disk)
}

/// A client's text with the line endings and the final newline of `like`: editors report line feeds
/// only, and some drop the last one.
pub(super) fn spelled_like(text: &str, like: &[u8]) -> Vec<u8> {
    let mut text = text.to_owned();
    if like.ends_with(b"\n") && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if like.contains(&b'\r') && !text.contains('\r') {
        text = text.replace('\n', "\r\n");
    }
    text.into_bytes()
}

/// Whether a client that was given `written` kept it, if it has `found` now. A formatter may change
/// blanks, punctuation and order, but not the words; it keeps the kind of line ending and a final
/// newline, and adds no blank lines at the end.
pub(super) fn is_kept(written: &[u8], found: &[u8]) -> bool {
    fn words(text: &str) -> Vec<&str> {
        let mut words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        words.sort_unstable();
        words
    }
    let final_newlines = |text: &str| text[text.trim_end().len()..].matches('\n').count();
    let (Ok(written), Ok(found)) = (std::str::from_utf8(written), std::str::from_utf8(found)) else {
        return written == found;
    };
    let (before, after) = (final_newlines(written), final_newlines(found));
    written == found
        || (written.contains('\r') == found.contains('\r')
            && (before.min(1)..=before.max(1)).contains(&after)
            && words(written) == words(found))
}
