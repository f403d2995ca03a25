//! Client-side files and terminals for the tools of a session. The local disk and local processes
//! are the fallback.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{ToolContext, ToolError};
use crate::content::ToolContent;
use crate::limits;
use crate::workspace::{self, Placed};

/// A client's files and terminals. Each call has a timeout. If the client lacks the capability or
/// does not answer in time, the caller uses the local disk or process.
pub trait ClientHands: Send + Sync {
    /// Returns whether the client can read or write files.
    fn has_files(&self) -> bool;

    /// Returns the client's text of a file, unsaved changes included; `None` if the client has no
    /// such method or file, or does not answer in time: the caller uses the disk.
    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Option<String>, Refused>>;

    /// Returns true if the client accepted `text` as the file's content, false if the caller has to
    /// write it. A client that does not answer in time may still write it: see `may_write`.
    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<bool, Refused>>;

    /// Reports that the client did not keep the content it was given. Its files are no longer used
    /// in this session, and the user is notified once.
    fn distrust(&self, path: &Path);

    /// Returns whether a write of the file is pending: requested, and neither confirmed nor
    /// refused.
    fn may_write(&self, path: &Path) -> bool;

    /// Ends a pending write, because the file has the requested content although the client did not
    /// answer.
    fn has_written(&self, path: &Path);

    /// Starts a command in a terminal of the client. `None` if the client has no terminal; nothing
    /// runs then. An error if the client did not answer; the command may be running then.
    fn start<'a>(&'a self, command: &'a TerminalCommand) -> BoxFuture<'a, Result<Option<Box<dyn ClientTerminal>>, String>>;
}

/// The message of an error with which a client refused a request. There is no fallback then.
#[derive(Clone, Debug)]
pub struct Refused(pub String);

/// A command for a client's terminal.
pub struct TerminalCommand {
    pub program: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// Bytes at the end of the output that the client keeps.
    pub output_bytes_max: u64,
}

/// A command that runs in a client's terminal. Dropping it releases the terminal and ends the
/// command.
pub trait ClientTerminal: Send + Sync {
    /// The terminal as content for users; `output` is for clients that cannot show it.
    fn shown(&self, output: String) -> ToolContent;

    /// Waits for the command to end. Returns its exit status, or 128 plus the number of the signal
    /// that ended it; `None` if the client does not report it.
    fn ended(&self) -> BoxFuture<'_, Option<i32>>;

    /// The output so far, and whether it is truncated to its end.
    fn output(&self) -> BoxFuture<'_, Option<(String, bool)>>;

    /// Ends the command.
    fn kill(&self) -> BoxFuture<'_, ()>;
}

impl ToolContext {
    /// The client, if its copy of this file may be used: client files are enabled, the file is in a
    /// directory that the client named, and not too large for a message.
    pub(super) fn client_of(&self, placed: &Placed) -> Option<&Arc<dyn ClientHands>> {
        let named = placed.inside && self.client_roots.iter().any(|root| placed.real.starts_with(root));
        let bytes = std::fs::metadata(&placed.real).map_or(0, |metadata| metadata.len());
        self.client.as_ref().filter(|client| client.has_files() && named && bytes <= limits::CLIENT_FILE_BYTES_MAX)
    }

    /// The client's copy of a file with the content `disk` on disk. Blocks.
    pub(super) fn client_copy(&self, placed: &Placed, disk: Option<&[u8]>) -> Result<ClientCopy, ToolError> {
        let Some(client) = self.client_of(placed).filter(|_| disk.is_none_or(|disk| std::str::from_utf8(disk).is_ok())) else {
            return Ok(ClientCopy::Unknown);
        };
        let text = self.wait_for(client.read_text(&placed.path)).unwrap_or(Ok(None)).map_err(|Refused(why)| {
            let shown = self.workspace.show(&placed.path);
            match disk {
                Some(_) => ToolError(format!("the client refused to read {shown}: {why}")),
                None => ToolError(format!("{shown} is not on the disk, and the client refused to read it: {why}")),
            }
        })?;
        Ok(match (text, disk) {
            (Some(text), Some(disk)) if !differs(disk, &text) => ClientCopy::Same,
            // Some clients report a missing file as an error, some as an empty text.
            (None, None) => ClientCopy::Same,
            (Some(text), None) if text.is_empty() => ClientCopy::Same,
            (Some(text), _) => ClientCopy::Unsaved(text),
            (None, Some(_)) => ClientCopy::Unknown,
        })
    }

    /// Lets the client write the file's new content and returns whether it did. Content that
    /// editors do not preserve byte for byte is never sent. Blocks.
    pub(super) fn client_writes(&self, placed: &Placed, bytes: &[u8]) -> Result<bool, ToolError> {
        let Some(client) = self.client_of(placed) else { return Ok(false) };
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|_| editors_preserve(bytes)) else { return Ok(false) };
        // Not every client creates missing parent directories.
        let parents = workspace::create_parents(&placed.real).map_err(|error| self.failed("creating", &placed.path, error))?;
        let written = self.wait_for(client.write_text(&placed.path, text)).unwrap_or(Ok(false));
        if written.is_err() {
            parents.remove();
        }
        written
            .map_err(|Refused(why)| ToolError(format!("the client refused to write {}: {why}", self.workspace.show(&placed.path))))
    }

    /// Returns whether a write of the file by the client is pending.
    pub(super) fn client_may_write(&self, placed: &Placed) -> bool {
        self.client.as_ref().is_some_and(|client| client.may_write(&placed.path))
    }

    /// Returns whether the client has written `bytes` without an answer; `disk` is the file's
    /// content now.
    pub(super) fn client_wrote_silently(&self, placed: &Placed, bytes: &[u8], disk: Option<&[u8]>) -> bool {
        let Some(client) = self.client.as_ref().filter(|client| client.may_write(&placed.path)) else { return false };
        let written = disk == Some(bytes);
        if written {
            client.has_written(&placed.path);
        }
        written
    }

    /// See [`ClientHands::distrust`].
    pub(super) fn distrust_client(&self, placed: &Placed) {
        if let Some(client) = &self.client {
            client.distrust(&placed.path);
        }
    }

    /// Waits for a request to the client; `None` if the call is cancelled first.
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

/// A client's copy of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ClientCopy {
    /// The client was not asked or did not answer; only the file on disk is known.
    #[default]
    Unknown,
    /// The copy equals the file on disk.
    Same,
    /// The copy has unsaved changes.
    Unsaved(String),
}

impl ClientCopy {
    /// The text with unsaved changes, if there are any.
    pub fn unsaved(&self) -> Option<&str> {
        match self {
            ClientCopy::Unsaved(text) => Some(text),
            ClientCopy::Unknown | ClientCopy::Same => None,
        }
    }
}

/// Returns whether editors preserve this content byte for byte: text without byte order mark and
/// with uniform line endings.
pub(super) fn editors_preserve(bytes: &[u8]) -> bool {
    let feeds = memchr::memchr_iter(b'\n', bytes).count();
    let pairs = memchr::memmem::find_iter(bytes, b"\r\n").count();
    let returns = memchr::memchr_iter(b'\r', bytes).count();
    let marked = bytes.starts_with(b"\xef\xbb\xbf");
    returns == pairs && (pairs == 0 || pairs == feeds) && !marked && !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

/// Returns whether a client's text differs from the file on disk. Line endings, a byte order mark
/// and one final newline are ignored, because clients drop or add them.
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

/// A client's text with the line endings and the final newline of `like`. Editors report line feeds
/// only, and some drop the last one.
pub(super) fn with_endings_of(text: &str, like: &[u8]) -> Vec<u8> {
    let mut text = text.to_owned();
    if like.ends_with(b"\n") && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if like.contains(&b'\r') && !text.contains('\r') {
        text = text.replace('\n', "\r\n");
    }
    text.into_bytes()
}

/// Returns whether `found` is `written`, possibly changed by a formatter on save. A formatter may
/// change whitespace, punctuation and order, but not the words; it keeps the kind of line ending
/// and a final newline, and adds no blank lines at the end.
pub(super) fn is_same_or_formatted(written: &[u8], found: &[u8]) -> bool {
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
