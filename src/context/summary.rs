//! Compaction: the request for a summary of the conversation, and the messages after it.

use std::sync::Arc;

use super::size::{message_bytes, result_bytes};
use crate::content::{Part, plain_text};
use crate::model::{Block, Message, ToolResult};

/// The prompt for the summary, which follows the conversation.
const PROMPT: &str = include_str!("summary_prompt.md");
/// Precedes the summary in later requests.
const BEFORE: &str = "[The conversation up to here is replaced by this summary of it. Changes to files remain. \
                      Outputs of earlier tool calls can be produced again.]";
/// Follows a prompt whose work had begun before the compaction.
pub(super) const CONTINUE: &str = "[Work on this request began before the summary above, which describes it. Continue it.]";
/// Marks the place of a middle part that was cut out.
const CUT: &str = "\n[… cut …]\n";
/// Tool results that are larger than this are shortened first to make a conversation fit.
const RESULT_BYTES: usize = 2_000;

/// The text that asks for a summary. `focus` is the emphasis that the user asked for.
pub(crate) fn prompt(focus: Option<&str>) -> String {
    let prompt = PROMPT.trim_end();
    match focus {
        Some(focus) => format!("{prompt}\n\nThe user asks for this emphasis: {focus}"),
        None => prompt.into(),
    }
}

/// The parts of the message that replaces the summarized conversation.
pub(super) fn message(summary: &str) -> Vec<Part> {
    vec![Part::text(format!("{BEFORE}\n\n<summary>\n{}\n</summary>", summary.trim()))]
}

/// Shortens a conversation to `bytes_max`, for the request of its summary: first cuts the middle
/// out of large tool results, oldest first, then out of other large texts, then leaves out the
/// oldest messages. Each tool call keeps its result.
pub(crate) fn fit(messages: &[Arc<Message>], bytes_max: usize) -> Vec<Arc<Message>> {
    let mut messages = messages.to_vec();
    let mut bytes: usize = messages.iter().map(|message| message_bytes(message)).sum();
    for shorten in [shorten_results, shorten_texts] {
        for message in &mut messages {
            if bytes <= bytes_max {
                return messages;
            }
            let Some(shorter) = shorten(message) else { continue };
            bytes = bytes - message_bytes(message) + message_bytes(&shorter);
            *message = Arc::new(shorter);
        }
    }
    // The rest starts with a message of the user, so that every tool result has its call.
    let mut start = 0;
    for (index, message) in messages.iter().enumerate() {
        if bytes <= bytes_max && matches!(**message, Message::User(_)) {
            break;
        }
        bytes -= message_bytes(message);
        start = index + 1;
    }
    messages.split_off(start.min(messages.len()))
}

fn shorten_results(message: &Message) -> Option<Message> {
    let Message::ToolResults(results) = message else { return None };
    let shorter = results.iter().map(|result| match result_bytes(result) > RESULT_BYTES {
        true => ToolResult { output: vec![Part::text(shortened(&plain_text(&result.output)))], ..result.clone() },
        false => result.clone(),
    });
    Some(Message::ToolResults(shorter.collect()))
}

fn shorten_texts(message: &Message) -> Option<Message> {
    match message {
        Message::User(parts) if message_bytes(message) > RESULT_BYTES => {
            Some(Message::User(vec![Part::text(shortened(&plain_text(parts)))]))
        }
        Message::Assistant(blocks) => {
            let shorter = blocks.iter().filter_map(|block| match block {
                Block::Thinking { .. } => None,
                Block::Text { text, .. } => Some(Block::Text { text: shortened(text), state: None }),
                Block::ToolCall { .. } => Some(block.clone()),
            });
            Some(shorter.collect()).filter(|blocks: &Vec<Block>| !blocks.is_empty()).map(Message::Assistant)
        }
        Message::User(_) | Message::ToolResults(_) => None,
    }
}

/// The start and the end of a text, [`RESULT_BYTES`] together.
fn shortened(text: &str) -> String {
    if text.len() <= RESULT_BYTES {
        return text.into();
    }
    let (head, tail) = (text.floor_char_boundary(RESULT_BYTES / 2), text.ceil_char_boundary(text.len() - RESULT_BYTES / 2));
    format!("{}{CUT}{}", &text[..head], &text[tail..])
}
