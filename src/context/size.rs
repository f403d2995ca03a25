//! Approximate sizes of messages, in bytes of the text that a provider tokenizes.

use std::sync::Arc;

use crate::content::Part;
use crate::model::{Block, Message, ToolResult};

/// The size of an image or a sound, whose encoded size does not determine its tokens.
const IMAGE_BYTES: usize = 6_000;
/// Roles, ids and names, which each message and block has.
const FRAME_BYTES: usize = 16;

pub(crate) fn message_bytes(message: &Message) -> usize {
    FRAME_BYTES
        + match message {
            Message::User(parts) => parts_bytes(parts),
            Message::Assistant(blocks) => blocks.iter().map(block_bytes).sum(),
            Message::ToolResults(results) => results.iter().map(result_bytes).sum(),
        }
}

/// Returns the sizes of attached documents and images, of tool results, and of everything else.
pub(crate) fn by_source(messages: &[Arc<Message>]) -> [usize; 3] {
    let (mut files, mut results, mut rest) = (0, 0, 0);
    for message in messages {
        match &**message {
            Message::User(parts) => {
                let (texts, attached): (Vec<&Part>, Vec<&Part>) = parts.iter().partition(|part| matches!(part, Part::Text { .. }));
                files += attached.into_iter().map(part_bytes).sum::<usize>();
                rest += texts.into_iter().map(part_bytes).sum::<usize>() + FRAME_BYTES;
            }
            Message::Assistant(_) => rest += message_bytes(message),
            Message::ToolResults(_) => results += message_bytes(message),
        }
    }
    [files, results, rest]
}

pub(super) fn block_bytes(block: &Block) -> usize {
    FRAME_BYTES
        + match block {
            Block::Thinking { text, .. } | Block::Text { text, .. } => text.len(),
            Block::ToolCall { name, input, input_text, .. } => {
                name.len() + input_text.as_ref().map_or_else(|| serde_json::to_string(input).unwrap_or_default().len(), String::len)
            }
        }
}

pub(super) fn result_bytes(result: &ToolResult) -> usize {
    FRAME_BYTES + parts_bytes(&result.output)
}

pub(crate) fn parts_bytes(parts: &[Part]) -> usize {
    parts.iter().map(part_bytes).sum()
}

pub(crate) fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } | Part::Note { text } => text.len(),
        Part::Image { .. } | Part::Audio { .. } => IMAGE_BYTES,
        // A model that reads the document itself receives about the same text.
        Part::Document { data, text, .. } => text.as_ref().map_or(data.len() / 4, String::len),
        Part::Resource { .. } | Part::ResourceLink { .. } => part.as_text().len(),
    }
}
