//! Images that the provider accepts: of a type that it reads, with the media type of their content,
//! and not too large. Other images become text.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::traits::ProviderTraits;
use crate::content::Part;

/// Length of the start of an image that shows its type, in bytes of base64.
const START: usize = 32;
/// Maximum width and height that providers accept for an image, in pixels.
const IMAGE_EDGE_MAX: u32 = 8000;

/// Returns the part for a request.
pub(super) fn adapt(part: &Part, traits: ProviderTraits) -> Cow<'_, Part> {
    let Part::Image { mime_type, data } = part else { return Cow::Borrowed(part) };
    let text = |why: &str| Cow::Owned(Part::text(format!("[{mime_type} image, which cannot be shown: {why}]")));
    if !traits.reads_images {
        return text("the model does not read images");
    }
    if data.len() > traits.image_bytes_max {
        return text("it is too large");
    }
    let Some(start) = data.get(..START.min(data.len()) / 4 * 4).and_then(|start| STANDARD.decode(start).ok()) else {
        return text("its data are damaged");
    };
    let Some(found) = image_type(&start) else { return text("its type is not known") };
    if !traits.image_types.contains(&found) {
        return text("the provider does not accept this type");
    }
    if !data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')) {
        return text("its data are damaged");
    }
    if found == "image/png" && png_edge(&start).is_some_and(|edge| edge > IMAGE_EDGE_MAX || edge == 0) {
        return text("it has too many pixels");
    }
    match found == mime_type {
        true => Cow::Borrowed(part),
        false => Cow::Owned(Part::Image { mime_type: found.to_owned(), data: data.clone() }),
    }
}

/// Returns the longer edge of a PNG image, in pixels (PNG specification, section 11.2.1).
fn png_edge(start: &[u8]) -> Option<u32> {
    let edge = |at: usize| Some(u32::from_be_bytes(start.get(at..at + 4)?.try_into().ok()?));
    Some(edge(16)?.max(edge(20)?))
}

/// Returns the media type of an image by its first bytes.
fn image_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [_, _, _, _, b'f', b't', b'y', b'p', b'h', b'e', b'i', ..] => Some("image/heic"),
        [_, _, _, _, b'f', b't', b'y', b'p', b'm', b'i', b'f', b'1', ..] => Some("image/heif"),
        _ => None,
    }
}
