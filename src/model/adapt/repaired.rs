//! Parts of a conversation that a provider refused. Later requests have a text instead of them, or
//! leave them out. A part is known by a digest of its content, so that it is found again after a
//! restart, in a fork and after a compaction.

use std::collections::HashSet;
use std::sync::Arc;

use crate::content::{Part, plain_text};
use crate::model::fingerprint::fingerprint;
use crate::model::message::{Block, Message, Messages, ToolResult};

pub(in crate::model) fn part_digest(part: &Part) -> String {
    match part {
        Part::Text { text } | Part::Note { text } => fingerprint(&["text", text]),
        Part::Image { data, .. } | Part::Audio { data, .. } | Part::Document { data, .. } => fingerprint(&["media", data]),
        Part::Resource { uri, text, .. } => fingerprint(&["resource", uri, text]),
        Part::ResourceLink { uri, .. } => fingerprint(&["link", uri]),
    }
}

/// Returns the digest of a block. The digest of a call also stands for its result.
pub(in crate::model) fn block_digest(block: &Block) -> String {
    match block {
        Block::Text { text, .. } => fingerprint(&["text", text]),
        Block::Thinking { text, state } => {
            fingerprint(&["thinking", text, &state.as_ref().map(|state| state.value.to_string()).unwrap_or_default()])
        }
        Block::ToolCall { id, .. } => fingerprint(&["call", id.as_str()]),
    }
}

/// Returns the digest of the provider state of a call.
pub(in crate::model) fn state_digest(block: &Block) -> Option<String> {
    let Block::ToolCall { id, state: Some(state), .. } = block else { return None };
    Some(fingerprint(&["state", id.as_str(), &state.value.to_string()]))
}

/// Returns a conversation in which the refused parts are text, or are left out.
pub(super) fn apply(messages: Messages, refused: &HashSet<String>) -> Messages {
    if refused.is_empty() {
        return messages;
    }
    let mut out = Vec::new();
    for message in messages.iter() {
        match &**message {
            Message::User(parts) => out.push(Arc::new(Message::User(apply_to_parts(parts, refused)))),
            Message::Assistant(blocks) => {
                let blocks = blocks.iter().filter_map(|block| apply_to_block(block, refused)).collect();
                out.push(Arc::new(Message::Assistant(blocks)));
            }
            Message::ToolResults(results) => {
                let is_text = |result: &&ToolResult| refused.contains(&fingerprint(&["call", result.id.as_str()]));
                let (texts, results): (Vec<&ToolResult>, Vec<&ToolResult>) = results.iter().partition(is_text);
                let kept = |result: &ToolResult| ToolResult { output: apply_to_parts(&result.output, refused), ..result.clone() };
                if !results.is_empty() {
                    out.push(Arc::new(Message::ToolResults(results.into_iter().map(kept).collect())));
                }
                let text = |result: &&ToolResult| {
                    let word = if result.failed { "error" } else { "result" };
                    Part::text(format!("[{word} of {}]\n{}", result.name, plain_text(&apply_to_parts(&result.output, refused))))
                };
                if !texts.is_empty() {
                    out.push(Arc::new(Message::User(texts.iter().map(text).collect())));
                }
            }
        }
    }
    Arc::new(out)
}

fn apply_to_parts(parts: &[Part], refused: &HashSet<String>) -> Vec<Part> {
    let apply = |part: &Part| match part {
        part if !refused.contains(&part_digest(part)) => Some(part.clone()),
        Part::Text { .. } | Part::Note { .. } => None,
        Part::Image { mime_type, .. } => Some(Part::text(format!("[{mime_type} image, which the provider refused]"))),
        part => Some(Part::text(part.as_text())),
    };
    parts.iter().filter_map(apply).collect()
}

fn apply_to_block(block: &Block, refused: &HashSet<String>) -> Option<Block> {
    let is_refused = refused.contains(&block_digest(block));
    match block {
        Block::ToolCall { name, input, .. } if is_refused => {
            Some(Block::Text { text: format!("[called {name} with {input}]"), state: None })
        }
        Block::Text { .. } | Block::Thinking { .. } if is_refused => None,
        Block::ToolCall { id, name, input, input_text, .. }
            if state_digest(block).is_some_and(|digest| refused.contains(&digest)) =>
        {
            let (id, name) = (id.clone(), name.clone());
            Some(Block::ToolCall { id, name, input: input.clone(), input_text: input_text.clone(), state: None })
        }
        block => Some(block.clone()),
    }
}
