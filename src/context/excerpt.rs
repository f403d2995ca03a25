//! The replacement for a summary if the model writes none: an excerpt of the conversation.

use std::sync::Arc;

use super::summary::{BEFORE, VALUE_BYTES, shorten, shorten_input};
use crate::content::{PlanEntry, PlanStatus, plain_text};
use crate::model::{Block, Message};

/// The start of the excerpt.
const NOTE: &str = "[The model wrote no summary. This excerpt has the plan, the user's earlier messages, and the newest \
                    messages; long parts are cut. Read files again before you rely on them.]";

/// Returns an excerpt of at most `bytes_max` bytes: the plan, the user's messages, and as many of
/// the newest messages as fit.
pub(crate) fn excerpt(messages: &[Arc<Message>], plan: &[PlanEntry], bytes_max: usize) -> String {
    let mut text = NOTE.to_owned();
    if !plan.is_empty() {
        text.push_str("\n\nPlan:\n");
        text.extend(plan.iter().map(|entry| format!("- [{}] {}\n", mark(entry.status), entry.content)));
    }
    if let Some(earlier) = messages.iter().find_map(|message| earlier_summary(message)) {
        text.push_str(&format!("\n\nEarlier summary:\n{}\n", shorten(&earlier, bytes_max / 4)));
    }
    // The plan and the user's messages receive at most half of the room.
    let of_user: Vec<String> = messages.iter().filter_map(|message| prompt(message)).collect();
    let kept = newest(&of_user, (bytes_max / 2).saturating_sub(text.len()));
    if !kept.is_empty() {
        text.push_str("\nMessages of the user:\n");
        text.extend(kept.iter().map(|line| format!("- {line}\n")));
    }
    let work: Vec<String> = messages.iter().filter_map(|message| describe(message)).collect();
    let kept = newest(&work, bytes_max.saturating_sub(text.len() + 20));
    if !kept.is_empty() {
        text.push_str("\nNewest messages:\n");
        text.extend(kept.iter().map(|part| format!("{part}\n")));
    }
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

fn mark(status: PlanStatus) -> &'static str {
    match status {
        PlanStatus::Pending => "pending",
        PlanStatus::InProgress => "in progress",
        PlanStatus::Completed => "completed",
    }
}

/// Returns the last texts that fit, in order.
fn newest(texts: &[String], bytes_max: usize) -> &[String] {
    let mut bytes = 0;
    let fits = |text: &&String| {
        bytes += text.len() + 3;
        bytes <= bytes_max
    };
    let count = texts.iter().rev().take_while(fits).count();
    &texts[texts.len() - count..]
}

/// Returns the summary that an earlier compaction left in the conversation.
fn earlier_summary(message: &Message) -> Option<String> {
    let Message::User(parts) = message else { return None };
    let text = plain_text(parts);
    let (_, summary) = text.strip_prefix(BEFORE)?.split_once("<summary>")?;
    Some(summary.split("</summary>").next().unwrap_or_default().trim().to_owned())
}

/// Returns the text of a message of the user.
fn prompt(message: &Message) -> Option<String> {
    let Message::User(parts) = message else { return None };
    if earlier_summary(message).is_some() {
        return None;
    }
    Some(shorten(plain_text(parts).trim(), VALUE_BYTES)).filter(|text| !text.is_empty())
}

/// Describes an answer or the results of its calls.
fn describe(message: &Message) -> Option<String> {
    let lines: Vec<String> = match message {
        Message::User(_) => return None,
        Message::Assistant(blocks) => blocks.iter().filter_map(block).collect(),
        Message::ToolResults(results) => {
            let text = |output: &_| shorten(plain_text(output).trim(), VALUE_BYTES);
            results.iter().map(|result| format!("Result: {}", text(&result.output))).collect()
        }
    };
    Some(lines.join("\n")).filter(|text| !text.is_empty())
}

fn block(block: &Block) -> Option<String> {
    match block {
        Block::Thinking { .. } => None,
        Block::Text { text, .. } => Some(format!("Assistant: {}", shorten(text.trim(), VALUE_BYTES))),
        Block::ToolCall { name, input, .. } => Some(format!("Call of {name}: {}", shorten_input(input))),
    }
}
