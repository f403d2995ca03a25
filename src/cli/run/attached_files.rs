//! `nuncio run --file`: reads files as the parts of a prompt.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::content::{HTML, PDF, Part};
use crate::documents::DocumentKind;
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::process::ProcessLauncher;
use crate::workspace::{media_type, read_bounded};

/// Unreserved characters (RFC 3986) and `/`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Reads the files that are attached to the first prompt. Relative paths are resolved against the
/// current directory. The error names the file.
pub(super) async fn read(paths: &[PathBuf], launcher: &ProcessLauncher) -> Result<Vec<Part>> {
    let (mut parts, mut left) = (Vec::new(), limits::MESSAGE_ATTACHMENTS_BYTES_MAX);
    for path in paths {
        let named = |error: Error| Error { message: format!("--file {}: {}", path.display(), error.message), ..error };
        let bytes = read_bytes(path).map_err(named)?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            let most = limits::MESSAGE_ATTACHMENTS_BYTES_MAX >> 20;
            named(Error::new(Kind::TooLarge, format!("all files of a prompt together exceed {most} MiB")))
        })?;
        let absolute = std::path::absolute(path).map_err(|error| named(unreadable(&error)))?;
        parts.push(part(&absolute, bytes, launcher).await.map_err(named)?);
    }
    Ok(parts)
}

/// Reads a file with an absolute path as a part of a prompt. The error names the file.
pub(in crate::cli) async fn read_file(path: &Path, launcher: &ProcessLauncher) -> Result<Part> {
    let named = |error: Error| Error { message: format!("{}: {}", path.display(), error.message), ..error };
    let bytes = read_bytes(path).map_err(named)?;
    part(path, bytes, launcher).await.map_err(named)
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

/// Returns the URI of a file with an absolute path.
pub(in crate::cli) fn file_uri(path: &Path) -> String {
    format!("file://{}", percent_encode(path.as_os_str().as_bytes(), PATH))
}

/// Converts a file to a part by its first bytes, not by its name.
async fn part(path: &Path, bytes: Vec<u8>, launcher: &ProcessLauncher) -> Result<Part> {
    let uri = file_uri(path);
    let kind = media_type(&bytes);
    let text = match kind {
        _ if kind.starts_with("image/") => {
            at_most(&bytes, limits::IMAGE_BYTES_MAX, "an image")?;
            return Ok(Part::Image { mime_type: kind.into(), data: STANDARD.encode(bytes) });
        }
        _ if kind.starts_with("audio/") => {
            return Ok(Part::Audio { mime_type: kind.into(), data: STANDARD.encode(bytes) });
        }
        PDF => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            return Ok(Part::Document { mime_type: kind.into(), name, data: STANDARD.encode(bytes), text: None });
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
    Ok(Part::Resource { uri, mime_type: Some(kind.into()), text })
}

fn at_most(bytes: &[u8], most: usize, what: &str) -> Result<()> {
    if bytes.len() <= most {
        return Ok(());
    }
    let hint = "without --file, name the file in the prompt: the model reads parts of it";
    Err(Error::new(Kind::TooLarge, format!("{what} of more than {} MiB cannot be attached", most >> 20)).hint(hint))
}
