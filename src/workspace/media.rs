//! Detects media types from file contents. File names and declared types are not used.

use memchr::memmem;

use crate::content::{DOCX, HTML, ODS, ODT, PDF, XLSX};
use crate::limits;

/// Returns the MIME type of an image that models accept, by its magic number.
pub(crate) fn image_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Returns the MIME type of a file by its first bytes; of a zip file, by all bytes.
pub(crate) fn media_type(bytes: &[u8]) -> &'static str {
    let head = &bytes[..bytes.len().min(limits::BINARY_PROBE_BYTES)];
    // The probe may end within a character.
    let is_text = || !head.contains(&0) && std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    match image_type(head) {
        Some(image) => image,
        None if head.starts_with(b"%PDF-") => PDF,
        None if is_zip(head) => zip_type(bytes),
        None if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WAVE") => "audio/wav",
        None if head.starts_with(b"ID3") => "audio/mpeg",
        None if head.starts_with(b"OggS") => "audio/ogg",
        None if head.starts_with(b"fLaC") => "audio/flac",
        None if is_text() && begins_as_html(head) => HTML,
        None if is_text() => "text/plain",
        None => UNKNOWN,
    }
}

const UNKNOWN: &str = "application/octet-stream";

/// Returns whether a file begins as a zip file.
pub(crate) fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04")
}

/// Returns the MIME type of an office document, which is a zip file. An OpenDocument file begins
/// with an uncompressed entry `mimetype`; the others are recognised by the name of an entry.
fn zip_type(bytes: &[u8]) -> &'static str {
    let declared = bytes.get(30..).and_then(|entry| entry.strip_prefix(b"mimetype"));
    let declares =
        |kind: &str| declared.is_some_and(|rest| rest.starts_with(kind.as_bytes()) && rest[kind.len()..].starts_with(b"PK"));
    let has = |entry: &str| memmem::find(bytes, entry.as_bytes()).is_some();
    match () {
        () if declares(ODT) => ODT,
        () if declares(ODS) => ODS,
        () if has("word/document.xml") => DOCX,
        () if has("xl/workbook.xml") => XLSX,
        () => UNKNOWN,
    }
}

fn begins_as_html(head: &[u8]) -> bool {
    let head =
        String::from_utf8_lossy(&head[..head.len().min(64)]).trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}
