//! Rules 27 to 30: images.

mod formats;

use super::magic::{self, ImageHeader};
use super::refusal::Refusals;
use super::view::{Block, Content, View};
use super::{Platform, model};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let images: Vec<InlineImage<'_>> = view.all_blocks().filter_map(InlineImage::from_block).collect();
    for image in &images {
        if view.platform == Platform::DeepSeek && view.protocol == Protocol::OpenaiChat {
            let words = "Failed to deserialize the JSON body into the target type: unknown variant `image_url`, expected `text`";
            refused.add(30, image.place, words);
            continue;
        }
        formats::check(view, image, refused);
        length(view, image, refused);
        edges(view, image, images.len(), refused);
    }
    counts(view, &images, refused);
}

/// An image with its data in the request.
struct InlineImage<'a> {
    place: &'a str,
    mime: Option<&'a str>,
    data: &'a str,
    header: Option<ImageHeader>,
}

impl<'a> InlineImage<'a> {
    fn from_block(block: &'a Block<'a>) -> Option<InlineImage<'a>> {
        let Content::Image { mime, data } = block.content else { return None };
        Some(InlineImage { place: &block.place, mime, data, header: magic::read(data) })
    }
}

/// Rule 27: length of the base64 text.
fn length(view: &View<'_>, image: &InlineImage<'_>, refused: &mut Refusals) {
    let length = image.data.len();
    let bytes = length / 4 * 3;
    let (size, most) = match (view.protocol, view.platform) {
        (Protocol::Anthropic, Platform::Anthropic) => (length, 10_485_760),
        // 3.75 MB on Bedrock.
        (Protocol::Anthropic, _) | (Protocol::Bedrock, _) => (length, 5_242_880),
        (Protocol::Gemini, Platform::Vertex) => (bytes, 7 << 20),
        (_, Platform::OpenAi | Platform::Azure) => (length, 10_485_760),
        (_, Platform::Xai) => (bytes, 10 << 20),
        _ => return,
    };
    if size <= most {
        return;
    }
    let place = image.place;
    match view.protocol {
        Protocol::Anthropic => {
            let words =
                format!("{place}.image.source.base64: image exceeds {} MB maximum: {size} bytes > {most} bytes", most >> 20);
            refused.add(27, place, words);
        }
        Protocol::OpenaiChat | Protocol::OpenaiResponses => {
            let words = format!(
                "Invalid '{place}.image_url': string too long. Expected a string with maximum length {most}, but got a string \
                 with length {size} instead."
            );
            refused.add_code(27, "string_above_max_length", place, words);
        }
        _ => refused.add(27, place, format!("{place}: image exceeds the maximum size: {size} > {most}")),
    }
}

/// Rule 28: width and height.
fn edges(view: &View<'_>, image: &InlineImage<'_>, count: usize, refused: &mut Refusals) {
    let Some((width, height)) = image.header.as_ref().and_then(|header| header.size) else { return };
    let edge = width.max(height);
    let place = image.place;
    let is_anthropic = view.protocol == Protocol::Anthropic;
    if is_anthropic && count > 20 && edge > 2000 && edge <= 8000 {
        let words = format!(
            "{place}.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image \
             requests: 2000 pixels"
        );
        refused.add_code(28, "image_dimensions_too_large", place, words);
    }
    if (is_anthropic || view.protocol == Protocol::Bedrock) && edge > 8000 {
        let words =
            format!("{place}.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels");
        refused.add_code(28, "image_dimensions_too_large", place, words);
    }
    if view.platform == Platform::Groq && u64::from(width) * u64::from(height) > 33_177_600 {
        refused.add(28, place, "image has too many pixels: the maximum is 33177600");
    }
}

/// Rule 27: numbers of images, and the size of the request.
fn counts(view: &View<'_>, images: &[InlineImage<'_>], refused: &mut Refusals) {
    let size = view.text.len();
    if view.protocol == Protocol::Anthropic && size > 32 << 20 {
        refused.add_status(27, 413, None, "", "Request exceeds the maximum size");
    }
    if view.platform == Platform::Groq && !images.is_empty() && size > 4 << 20 {
        refused.add_status(27, 413, Some("request_too_large"), "", "Request Entity Too Large");
    }
    if view.protocol == Protocol::Bedrock {
        for turn in &view.turns {
            let inside = turn.blocks.iter().flat_map(Block::with_content);
            if inside.filter(|block| matches!(block.content, Content::Image { .. })).count() > 20 {
                let words = format!("The number of images in the Message object at {} exceeds the limit of 20.", turn.place);
                refused.add(27, &*turn.place, words);
            }
        }
    }
    let is_mistral = view.platform == Platform::Mistral && model::is_mistral(view.model);
    if is_mistral && images.len() > 8 {
        refused.add_code(27, "3051", "messages", "Too many images in request: the maximum is 8");
    }
}
