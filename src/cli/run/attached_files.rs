//! `nuncio run --file`: reads files as the content blocks that editors send for them.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::content::{HTML, PDF};
use crate::documents::DocumentKind;
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::process::ProcessLauncher;
use crate::protocol::acp;
use crate::workspace::{media_type, read_bounded};

/// Unreserved characters (RFC 3986) and `/`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Reads the files that are attached to the first prompt. Relative paths are resolved against the
/// current directory. The error names the file.
pub(super) async fn read(paths: &[PathBuf], launcher: &ProcessLauncher) -> Result<Vec<acp::ContentBlock>> {
    let (mut blocks, mut left) = (Vec::new(), limits::MESSAGE_ATTACHMENTS_BYTES_MAX);
    for path in paths {
        let named = |error: Error| Error { message: format!("--file {}: {}", path.display(), error.message), ..error };
        let bytes = read_bytes(path).map_err(named)?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            let most = limits::MESSAGE_ATTACHMENTS_BYTES_MAX >> 20;
            named(Error::new(Kind::TooLarge, format!("all files of a prompt together exceed {most} MiB")))
        })?;
        let absolute = std::path::absolute(path).map_err(|error| named(unreadable(&error)))?;
        blocks.push(block(&absolute, bytes, launcher).await.map_err(named)?);
    }
    Ok(blocks)
}

/// Reads a file with an absolute path as a content block. The error names the file.
pub(in crate::cli) async fn read_file(path: &Path, launcher: &ProcessLauncher) -> Result<acp::ContentBlock> {
    let named = |error: Error| Error { message: format!("{}: {}", path.display(), error.message), ..error };
    let bytes = read_bytes(path).map_err(named)?;
    block(path, bytes, launcher).await.map_err(named)
}

fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    read_bounded(path, limits::ATTACHMENT_BYTES_MAX as u64).map_err(|error| unreadable(&error))
}

fn unreadable(error: &std::io::Error) -> Error {
    let reason = match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => error.to_string(),
    };
    Error::invalid_params(reason)
}

/// Converts a file to a content block by its first bytes, not by its name.
async fn block(path: &Path, bytes: Vec<u8>, launcher: &ProcessLauncher) -> Result<acp::ContentBlock> {
    let uri = format!("file://{}", percent_encode(path.as_os_str().as_bytes(), PATH));
    let kind = media_type(&bytes);
    let text = match kind {
        _ if kind.starts_with("image/") => {
            at_most(&bytes, limits::IMAGE_BYTES_MAX, "an image")?;
            return Ok(acp::ContentBlock::Image(acp::ImageContent::new(STANDARD.encode(bytes), kind)));
        }
        _ if kind.starts_with("audio/") => {
            return Ok(acp::ContentBlock::Audio(acp::AudioContent::new(STANDARD.encode(bytes), kind)));
        }
        PDF => {
            let contents = acp::BlobResourceContents::new(STANDARD.encode(bytes), uri).mime_type(kind.to_owned());
            return Ok(resource(acp::EmbeddedResourceResource::BlobResourceContents(contents)));
        }
        HTML | "text/plain" => {
            at_most(&bytes, limits::TEXT_BYTES_MAX, "a text")?;
            String::from_utf8(bytes).map_err(|_| Error::invalid_params("the text is not valid UTF-8"))?
        }
        _ => {
            let Some(document) = DocumentKind::from_media_type(kind) else {
                let hint = "text, PNG, JPEG, GIF and WebP images, audio, PDF, Word, Excel and OpenDocument files can be attached";
                return Err(Error::invalid_params("unknown type of binary file").hint(hint));
            };
            launcher.read_document(document, &bytes).await.map_err(Error::invalid_params)?
        }
    };
    let contents = acp::TextResourceContents::new(text, uri).mime_type(kind.to_owned());
    Ok(resource(acp::EmbeddedResourceResource::TextResourceContents(contents)))
}

fn resource(contents: acp::EmbeddedResourceResource) -> acp::ContentBlock {
    acp::ContentBlock::Resource(acp::EmbeddedResource::new(contents))
}

fn at_most(bytes: &[u8], most: usize, what: &str) -> Result<()> {
    if bytes.len() <= most {
        return Ok(());
    }
    let hint = "without --file, name the file in the prompt: the model reads parts of it";
    Err(Error::new(Kind::TooLarge, format!("{what} of more than {} MiB cannot be attached", most >> 20)).hint(hint))
}
