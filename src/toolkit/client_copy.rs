//! The client's copies of files: reads and writes them for a call, and compares them with the disk.

use std::collections::HashMap;
use std::sync::Arc;

use super::client::{ClientAccess, ClientRefusal};
use super::context::ToolContext;
use super::output::ToolError;
use crate::workspace::{self, ResolvedPath};

/// Largest file that is requested from a client, in bytes.
const CLIENT_FILE_BYTES_MAX: u64 = 8 << 20;

impl ToolContext {
    /// Returns the client if its copy of this file may be used: client files must be enabled, and
    /// the file must be in a directory that the client named and not be too large for a message.
    pub(crate) fn client_of(&self, resolved: &ResolvedPath) -> Option<&Arc<dyn ClientAccess>> {
        let named = resolved.inside && self.client_roots.iter().any(|root| resolved.real.starts_with(root));
        let bytes = std::fs::metadata(&resolved.real).map_or(0, |metadata| metadata.len());
        self.client.as_ref().filter(|client| client.has_files() && named && bytes <= CLIENT_FILE_BYTES_MAX)
    }

    /// Reads the client's copy of a file. `disk` is the content of the file on disk. Blocks the
    /// thread.
    pub(crate) fn client_copy(&self, resolved: &ResolvedPath, disk: Option<&[u8]>) -> Result<ClientCopy, ToolError> {
        let Some(client) = self.client_of(resolved).filter(|_| disk.is_none_or(|disk| std::str::from_utf8(disk).is_ok())) else {
            return Ok(ClientCopy::Unknown);
        };
        let text = self.wait_for(client.read_text(&resolved.path)).unwrap_or(Ok(None)).map_err(|ClientRefusal(why)| {
            let shown = self.workspace.show(&resolved.path);
            match disk {
                Some(_) => ToolError(format!("the client refused to read {shown}: {why}")),
                None => ToolError(format!("{shown} is not on the disk, and the client refused to read it: {why}")),
            }
        })?;
        self.check_place(resolved, "read")?;
        let text = text.map(|text| match disk.is_some_and(|disk| disk.ends_with(b"\n")) && !client.has_exact_texts() {
            true => with_final_newline(text),
            false => text,
        });
        let copy = match (text, disk) {
            (Some(text), Some(disk)) if !differs(disk, &text, client.has_exact_texts()) => ClientCopy::Same,
            // Some clients report a missing file as an error, some as an empty text.
            (None, None) => ClientCopy::Same,
            (Some(text), None) if text.is_empty() => ClientCopy::Same,
            (Some(text), _) => ClientCopy::Unsaved(text),
            (None, Some(_)) => ClientCopy::Unknown,
        };
        client.note_unsaved(&resolved.path, copy.unsaved().is_some());
        Ok(copy)
    }

    /// Lets the client write the file's new content and returns whether it did. Content that
    /// editors do not preserve byte for byte is never sent. Blocks the thread.
    pub(crate) fn client_writes(&self, resolved: &ResolvedPath, bytes: &[u8]) -> Result<bool, ToolError> {
        let Some(client) = self.client_of(resolved) else { return Ok(false) };
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|_| editors_preserve(bytes)) else { return Ok(false) };
        // Not every client creates missing parent directories.
        let parents = workspace::create_parents(&resolved.real).map_err(|error| self.failed("creating", &resolved.path, error))?;
        let written = self.wait_for(client.write_text(&resolved.path, text)).unwrap_or(Ok(false));
        if written.is_err() {
            parents.remove();
        }
        let written = written.map_err(|ClientRefusal(why)| {
            ToolError(format!("the client refused to write {}: {why}", self.workspace.show(&resolved.path)))
        })?;
        self.check_place(resolved, "wrote").map(|()| written)
    }

    /// Fails if the path of a file leads elsewhere now, because a program has replaced a directory
    /// by a symlink: clients follow symlinks, so that the client may have used another file.
    fn check_place(&self, resolved: &ResolvedPath, did: &str) -> Result<(), ToolError> {
        let now = workspace::followed_path(&resolved.path);
        if now == resolved.real {
            return Ok(());
        }
        self.distrust_client(resolved);
        let (shown, now) = (self.workspace.show(&resolved.path), self.workspace.show(&now));
        Err(ToolError(format!(
            "a symlink has led {shown} to {now} while the editor {did} it: tell the user to check that file, and what made the symlink"
        )))
    }

    /// Returns whether a write of the file by the client is pending.
    pub(crate) fn client_may_write(&self, resolved: &ResolvedPath) -> bool {
        self.client.as_ref().is_some_and(|client| client.may_write(&resolved.path))
    }

    /// Returns whether the client has written `bytes` without answering the write request. `disk`
    /// is the current content of the file on disk.
    pub(crate) fn client_wrote_silently(&self, resolved: &ResolvedPath, bytes: &[u8], disk: Option<&[u8]>) -> bool {
        let Some(client) = self.client.as_ref().filter(|client| client.may_write(&resolved.path)) else { return false };
        let written = disk == Some(bytes);
        if written {
            client.has_written(&resolved.path);
        }
        written
    }

    /// Reports that the client did not keep the content of the file; see
    /// [`ClientAccess::distrust`].
    pub(crate) fn distrust_client(&self, resolved: &ResolvedPath) {
        if let Some(client) = &self.client {
            client.distrust(&resolved.path);
        }
    }

    /// Waits for a request to the client; `None` if the call is cancelled first.
    fn wait_for<T>(&self, asked: impl Future<Output = T>) -> Option<T> {
        tokio::runtime::Handle::current().block_on(self.unless_cancelled(asked)).ok()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClientCopy {
    /// The client was not asked or did not answer; only the file on disk is known.
    #[default]
    Unknown,
    /// The copy equals the file on disk.
    Same,
    /// The client's copy has unsaved changes.
    Unsaved(String),
}

impl ClientCopy {
    /// Returns the text with unsaved changes, if there are any.
    pub(crate) fn unsaved(&self) -> Option<&str> {
        match self {
            ClientCopy::Unsaved(text) => Some(text),
            ClientCopy::Unknown | ClientCopy::Same => None,
        }
    }
}

/// Returns whether editors preserve this content byte for byte: text without byte order mark and
/// with uniform line endings.
pub(crate) fn editors_preserve(bytes: &[u8]) -> bool {
    let feeds = memchr::memchr_iter(b'\n', bytes).count();
    let pairs = memchr::memmem::find_iter(bytes, b"\r\n").count();
    let returns = memchr::memchr_iter(b'\r', bytes).count();
    let marked = bytes.starts_with(b"\xef\xbb\xbf");
    returns == pairs && (pairs == 0 || pairs == feeds) && !marked && !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

/// Returns whether a client's text differs from the file on disk. Line endings and a byte order
/// mark are ignored, and one final newline, unless the text `is_exact`.
fn differs(disk: &[u8], text: &str, is_exact: bool) -> bool {
    fn lines(bytes: &[u8]) -> Vec<&[u8]> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect()
    }
    if disk == text.as_bytes() {
        return false;
    }
    let (disk, text) = (lines(disk), lines(text.as_bytes()));
    let one_newline_more = |long: &[&[u8]], short: &[&[u8]]| long.split_last() == Some((&&b""[..], short));
    disk != text && (is_exact || !one_newline_more(&disk, &text) && !one_newline_more(&text, &disk))
}

/// Adds the final newline that some editors drop.
fn with_final_newline(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Converts a client's text to the line endings of `like`, because editors report line feeds only.
pub(crate) fn with_endings_of(text: &str, like: &[u8]) -> Vec<u8> {
    if like.contains(&b'\r') && !text.contains('\r') {
        return text.replace('\n', "\r\n").into_bytes();
    }
    text.as_bytes().to_vec()
}

/// Returns whether `found` can be what an editor made of `written` as it saved it. Formatters and
/// fixes on save change whitespace, line endings, order and some of the words. Blank lines at the
/// end that grow with each write are a fault of some clients.
pub(crate) fn is_derived(written: &[u8], found: &[u8]) -> bool {
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
    }
    let final_newlines = |text: &str| text[text.trim_end().len()..].matches('\n').count();
    let (Ok(written), Ok(found)) = (std::str::from_utf8(written), std::str::from_utf8(found)) else {
        return written == found;
    };
    let mut left: HashMap<&str, usize> = HashMap::new();
    words(found).for_each(|word| *left.entry(word).or_default() += 1);
    let (mut all, mut kept) = (0, 0);
    for word in words(written) {
        all += 1;
        if let Some(count) = left.get_mut(word).filter(|count| **count > 0) {
            *count -= 1;
            kept += 1;
        }
    }
    final_newlines(found) <= final_newlines(written).max(1) && kept * 2 >= all
}
