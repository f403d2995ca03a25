//! Rule 29: type and bytes of images.

use super::InlineImage;
use crate::provider::Protocol;
use crate::rules::Platform;
use crate::rules::refusal::Refusals;
use crate::rules::view::View;

const USUAL: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

pub fn check(view: &View<'_>, image: &InlineImage<'_>, refused: &mut Refusals) {
    let known: &[&str] = match (view.protocol, view.platform) {
        // Its own API has no types.
        (Protocol::Ollama, _) => return,
        (Protocol::Gemini, _) => &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
        (_, Platform::Xai) => &["image/jpeg", "image/png"],
        _ => USUAL,
    };
    // Bedrock has formats: `png`.
    let mime = image.mime.map(|mime| if mime.contains('/') { mime.to_owned() } else { format!("image/{mime}") });
    let mime = mime.unwrap_or_default();
    let place = image.place;
    let bytes = image.header.as_ref().map(|header| header.mime);
    if !known.contains(&mime.as_str()) {
        refused.add_code(29, "invalid_value", place, unknown_type(view, place, &mime));
    } else if bytes.is_none_or(|bytes| !known.contains(&bytes)) {
        refused.add_code(29, "image_parse_error", place, damaged(view, place));
    } else if let Some(bytes) = bytes.filter(|bytes| *bytes != mime && is_compared(view)) {
        let words = format!(
            "{place}.image.source.base64.data: The image was specified using the {mime} media type, but the image appears to be a \
             {bytes} image"
        );
        refused.add(29, place, words);
    }
}

/// Only Claude's servers compare the type with the bytes.
fn is_compared(view: &View<'_>) -> bool {
    view.protocol == Protocol::Anthropic || view.protocol == Protocol::Bedrock && view.is_model(&["claude"])
}

fn unknown_type(view: &View<'_>, place: &str, mime: &str) -> String {
    match view.protocol {
        Protocol::Anthropic => format!(
            "{place}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        ),
        Protocol::Gemini => format!("Unsupported MIME type: {mime}"),
        Protocol::Bedrock => {
            let format = mime.trim_start_matches("image/");
            let constraint = "Member must satisfy enum value set: [gif, jpeg, png, webp]";
            crate::rules::names::constraint(format, &format!("{place}.image.format"), constraint)
        }
        _ => format!(
            "Invalid image data: unsupported MIME type '{mime}'. Supported types: image/jpeg, image/png, image/gif, image/webp."
        ),
    }
}

fn damaged(view: &View<'_>, place: &str) -> String {
    match view.protocol {
        Protocol::Anthropic => format!("{place}: Could not process image"),
        Protocol::Gemini => {
            "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
                .into()
        }
        Protocol::Bedrock => "Could not process image".into(),
        _ => match view.platform {
            Platform::LlamaCpp | Platform::LmStudio => "Failed to load image or audio file".into(),
            _ => "The image data you provided does not represent a valid image. Please check your input and try again with one of \
                  the following image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp']."
                .into(),
        },
    }
}
