//! Type and size of an image, from its first bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The header of an image.
pub struct ImageHeader {
    pub mime: &'static str,
    /// Width and height, if the header has them.
    pub size: Option<(u32, u32)>,
}

/// Reads base64 text. `None` if the text is not base64, or the bytes are not an image that a
/// provider knows.
pub fn read(data: &str) -> Option<ImageHeader> {
    let bytes = STANDARD.decode(data).ok()?;
    png(&bytes).or_else(|| gif(&bytes)).or_else(|| webp(&bytes)).or_else(|| jpeg(&bytes)).or_else(|| other(&bytes))
}

fn png(bytes: &[u8]) -> Option<ImageHeader> {
    let rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    (rest.get(4..8)? == b"IHDR").then_some(())?;
    let number = |at: usize| Some(u32::from_be_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    Some(ImageHeader { mime: "image/png", size: Some((number(8)?, number(12)?)) })
}

fn gif(bytes: &[u8]) -> Option<ImageHeader> {
    let rest = bytes.strip_prefix(b"GIF87a").or_else(|| bytes.strip_prefix(b"GIF89a"))?;
    let number = |at: usize| Some(u32::from(u16::from_le_bytes(rest.get(at..at + 2)?.try_into().ok()?)));
    Some(ImageHeader { mime: "image/gif", size: Some((number(0)?, number(2)?)) })
}

fn webp(bytes: &[u8]) -> Option<ImageHeader> {
    (bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP").then_some(())?;
    let byte = |at: usize| bytes.get(at).copied().map(u32::from);
    let size = match bytes.get(12..16)? {
        b"VP8X" => {
            let number = |at: usize| Some(1 + (byte(at)? | byte(at + 1)? << 8 | byte(at + 2)? << 16));
            number(24).zip(number(27))
        }
        b"VP8L" => {
            let bits = byte(21)? | byte(22)? << 8 | byte(23)? << 16 | byte(24)? << 24;
            Some((1 + (bits & 0x3fff), 1 + (bits >> 14 & 0x3fff)))
        }
        _ => {
            let number = |at: usize| Some((byte(at)? | byte(at + 1)? << 8) & 0x3fff);
            number(26).zip(number(28))
        }
    };
    Some(ImageHeader { mime: "image/webp", size: Some(size?) })
}

fn jpeg(bytes: &[u8]) -> Option<ImageHeader> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let number = |at: usize| Some(u32::from(u16::from_be_bytes(rest.get(at..at + 2)?.try_into().ok()?)));
        (rest.first()? == &0xff).then_some(())?;
        match *rest.get(1)? {
            // Padding, and markers without a length.
            0xff => rest = &rest[1..],
            0x01 | 0xd0..=0xd8 => rest = &rest[2..],
            // The start of a frame.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some(ImageHeader { mime: "image/jpeg", size: Some((number(7)?, number(5)?)) });
            }
            _ => rest = rest.get(2 + number(2)? as usize..)?,
        }
    }
}

/// Formats that only some providers read.
fn other(bytes: &[u8]) -> Option<ImageHeader> {
    let header = |mime| Some(ImageHeader { mime, size: None });
    match bytes.get(4..12) {
        Some(b"ftypheic" | b"ftypheix" | b"ftypmif1") => return header("image/heic"),
        Some(b"ftypavif") => return header("image/avif"),
        _ => {}
    }
    if bytes.starts_with(b"BM") {
        return header("image/bmp");
    }
    let is_tiff = bytes.starts_with(b"II*\0") || bytes.starts_with(b"MM\0*");
    if is_tiff { header("image/tiff") } else { None }
}
