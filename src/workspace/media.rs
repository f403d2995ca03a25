//! What bytes are, by themselves: names and callers are not asked.

use crate::limits;

/// Magic numbers of the images that models can see.
pub fn image_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// MIME type of a file, by its beginning.
pub fn media_type(bytes: &[u8]) -> &'static str {
    let head = &bytes[..bytes.len().min(limits::BINARY_PROBE_BYTES)];
    // A character may be cut where the beginning ends.
    let is_text = || !head.contains(&0) && std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    match image_type(head) {
        Some(image) => image,
        None if head.starts_with(b"%PDF-") => "application/pdf",
        None if is_text() => "text/plain",
        None => "application/octet-stream",
    }
}
