//! Images that the provider accepts: of a type that it reads, with the media type of their content,
//! and not too large. Other images become text. Also the names of documents.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::traits::ProviderTraits;
use crate::content::Part;
use crate::workspace::image_type;

/// Length of the start of an image that shows its type, in bytes of base64.
const START: usize = 32;
/// Maximum width and height that providers accept for an image, in pixels.
const IMAGE_EDGE_MAX: u32 = 8000;

/// Returns the part for a request. `names` are those of the documents before it.
pub(super) fn adapt<'a>(part: &'a Part, traits: ProviderTraits, names: &mut HashSet<String>) -> Cow<'a, Part> {
    match part {
        Part::Image { mime_type, data } => image(part, mime_type, data, traits),
        Part::Document { mime_type, name, data, text } if traits.has_plain_document_names => {
            let plain = document_name(name.as_deref().unwrap_or_default());
            let mut unique = plain.clone();
            let mut number = 2;
            while !names.insert(unique.clone()) {
                unique = format!("{plain} {number}");
                number += 1;
            }
            match name.as_ref() == Some(&unique) {
                true => Cow::Borrowed(part),
                false => {
                    let (mime_type, data, text) = (mime_type.clone(), data.clone(), text.clone());
                    Cow::Owned(Part::Document { mime_type, name: Some(unique), data, text })
                }
            }
        }
        part => Cow::Borrowed(part),
    }
}

/// Converts the name of a document to one that Anthropic and Amazon Bedrock accept: letters,
/// digits, and single spaces, hyphens, parentheses and brackets.
fn document_name(name: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-()[]".contains(letter);
    let name: String = name.chars().map(|letter| if allowed(letter) { letter } else { ' ' }).take(200).collect();
    let words: Vec<&str> = name.split_whitespace().collect();
    if words.is_empty() { "document".into() } else { words.join(" ") }
}

fn image<'a>(part: &'a Part, mime_type: &str, data: &str, traits: ProviderTraits) -> Cow<'a, Part> {
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
    let Some(found) = image_type(&start).or_else(|| heif_type(&start)) else { return text("its type is not known") };
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
        false => Cow::Owned(Part::Image { mime_type: found.to_owned(), data: data.to_owned() }),
    }
}

/// Returns the longer edge of a PNG image, in pixels (PNG specification, section 11.2.1).
fn png_edge(start: &[u8]) -> Option<u32> {
    let edge = |at: usize| Some(u32::from_be_bytes(start.get(at..at + 4)?.try_into().ok()?));
    Some(edge(16)?.max(edge(20)?))
}

/// Returns the media type of an image of HEIF (ISO/IEC 23008-12), which only Gemini accepts.
fn heif_type(start: &[u8]) -> Option<&'static str> {
    match start.get(4..)?.strip_prefix(b"ftyp")? {
        [b'h', b'e', b'i', ..] => Some("image/heic"),
        [b'm', b'i', b'f', b'1', ..] => Some("image/heif"),
        _ => None,
    }
}
