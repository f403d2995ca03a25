//! Conversations for chat templates that accept one tool call per message (Llama 3).

use std::sync::Arc;

use super::message::{Block, Message, Messages};

/// Part of the error of such a template.
pub(crate) const REFUSAL: &str = "only supports single tool-calls";

/// Splits each answer with several calls into messages with one call each, followed by its result.
pub(crate) fn split(messages: &[Arc<Message>]) -> Messages {
    let mut split = Vec::new();
    let mut messages = messages.iter().peekable();
    while let Some(message) = messages.next() {
        let (Message::Assistant(blocks), Some(Message::ToolResults(results))) = (&**message, messages.peek().map(|next| &***next))
        else {
            split.push(message.clone());
            continue;
        };
        if results.len() < 2 {
            split.push(message.clone());
            continue;
        }
        let mut results = results.iter();
        for part in blocks.split_inclusive(|block| matches!(block, Block::ToolCall { .. })) {
            let call = matches!(part.last(), Some(Block::ToolCall { .. }));
            split.push(Arc::new(Message::Assistant(part.to_vec())));
            if let Some(result) = results.next().filter(|_| call) {
                split.push(Arc::new(Message::ToolResults(vec![result.clone()])));
            }
        }
        messages.next();
    }
    Arc::new(split)
}
