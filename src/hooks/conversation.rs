//! Checks the messages that a hook wants to send.

use crate::model::{Block, Message};

/// Returns an error if a provider would reject the messages: they start with a message of the user,
/// each tool call has its result in the next message, and no message is empty.
pub(crate) fn well_formed(messages: &[Message]) -> Result<(), String> {
    let mut calls: Vec<&str> = Vec::new();
    if !matches!(messages.first(), Some(Message::User(_))) {
        return Err("the first message is not of the role user".into());
    }
    for (index, message) in messages.iter().enumerate() {
        let expected = std::mem::take(&mut calls);
        let (empty, results): (bool, Vec<&str>) = match message {
            Message::User(parts) => (parts.is_empty(), Vec::new()),
            Message::Assistant(blocks) => {
                calls.extend(blocks.iter().filter_map(|block| match block {
                    Block::ToolCall { id, .. } => Some(id.as_str()),
                    Block::Text { .. } | Block::Thinking { .. } => None,
                }));
                (blocks.is_empty(), Vec::new())
            }
            Message::ToolResults(results) => (results.is_empty(), results.iter().map(|result| result.id.as_str()).collect()),
        };
        if empty {
            return Err(format!("message {index} is empty"));
        }
        if results.len() != expected.len() || expected.iter().any(|id| !results.contains(id)) {
            return Err(format!("message {index} does not have the results of the tool calls before it"));
        }
    }
    if calls.is_empty() { Ok(()) } else { Err("the last tool calls have no results".into()) }
}
