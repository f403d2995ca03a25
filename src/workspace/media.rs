//! Detects media types from file contents. File names and declared types are not used.

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

/// Returns the MIME type of a file by its first bytes.
pub(crate) fn media_type(bytes: &[u8]) -> &'static str {
    let head = &bytes[..bytes.len().min(limits::BINARY_PROBE_BYTES)];
    // The probe may end within a character.
    let is_text = || !head.contains(&0) && std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    match image_type(head) {
        Some(image) => image,
        None if head.starts_with(b"%PDF-") => "application/pdf",
        None if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WAVE") => "audio/wav",
        None if head.starts_with(b"ID3") => "audio/mpeg",
        None if head.starts_with(b"OggS") => "audio/ogg",
        None if head.starts_with(b"fLaC") => "audio/flac",
        None if is_text() => "text/plain",
        None => "application/octet-stream",
    }
}
