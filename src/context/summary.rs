//! Compaction: the request for a summary of the conversation, and the messages after it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::notes::NoteTag;
use super::size::{block_bytes, message_bytes, result_bytes};
use crate::content::{Part, plain_text};
use crate::model::{Block, Message, ToolResult};

/// The prompt for the summary, which follows the conversation.
const PROMPT: &str = include_str!("summary_prompt.md");
/// Precedes the summary in later requests.
pub(super) const BEFORE: &str = "The conversation up to here is replaced by this summary of it. Changes to files remain. \
                      Outputs of earlier tool calls can be produced again.";
/// Follows a prompt whose work had begun before the compaction.
pub(super) const CONTINUE: &str = "Work on this request began before the summary above, which describes it. Continue it.";
/// Marks the place of a middle part that was cut out.
const CUT: &str = "\n[… cut …]\n";
/// Tool results that are larger than this are shortened first to make a conversation fit, then
/// tool calls and texts that are larger.
const SHORT_BYTES: usize = 2_000;
/// Values in the input of a shortened tool call that are larger than this are shortened, and, if
/// that is not enough, prompts.
pub(super) const VALUE_BYTES: usize = 500;

/// Returns the text that asks for a summary. `focus` is the emphasis that the user asked for.
pub(crate) fn prompt(focus: Option<&str>) -> String {
    let prompt = PROMPT.trim_end();
    match focus {
        Some(focus) => format!("{prompt}\n\nThe user asks for this emphasis: {focus}"),
        None => prompt.into(),
    }
}

/// Creates the parts of the message that replaces the summarized conversation.
pub(super) fn message(summary: &str, tag: &NoteTag) -> Vec<Part> {
    // The environment, which tells the key, may be among what the summary replaces.
    let before = tag.line().map_or_else(|| BEFORE.into(), |line| format!("{BEFORE} {line}"));
    vec![Part::text(format!("{}\n\n<summary>\n{}\n</summary>", tag.text(&before), summary.trim()))]
}

/// Shortens a conversation to `bytes_max`, for the request of its summary: cuts the middle out of
/// large tool results, oldest first, then of answers and the inputs of their calls, then of
/// prompts, and then leaves out the oldest messages. Each tool call keeps its result. Returns
/// `None` if no answer fits.
pub(crate) fn fit(messages: &[Arc<Message>], bytes_max: usize) -> Option<Vec<Arc<Message>>> {
    let mut fitting = messages.to_vec();
    let mut bytes: usize = total(&fitting);
    for shorten in [shorten_results, shorten_answer, |message: &_| shorten_prompt(message, SHORT_BYTES)] {
        for message in &mut fitting {
            if bytes <= bytes_max {
                return Some(fitting);
            }
            let Some(shorter) = shorten(message) else { continue };
            bytes = bytes - message_bytes(message) + message_bytes(&shorter);
            *message = Arc::new(shorter);
        }
    }
    let shorter = |message: &Arc<Message>| shorten_prompt(message, VALUE_BYTES).map_or_else(|| message.clone(), Arc::new);
    let short: Vec<Arc<Message>> = fitting.iter().map(shorter).collect();
    // The prompts of the running turn remain in the conversation, next to the summary.
    let answered = short.iter().rposition(|message| !is_prompt(message)).map_or(0, |index| index + 1);
    [&fitting[..], &short, &short[..answered]].into_iter().find_map(|messages| newest(messages, bytes_max))
}

/// Leaves out the oldest messages until the others have at most this size. Returns `None` if no
/// answer fits.
fn newest(messages: &[Arc<Message>], bytes_max: usize) -> Option<Vec<Arc<Message>>> {
    let mut messages = messages.to_vec();
    if total(&messages) > bytes_max {
        leave_out_turns(&mut messages, bytes_max);
        leave_out_answers(&mut messages, bytes_max);
        messages.iter().find(|message| !is_prompt(message))?;
    }
    (!messages.is_empty() && total(&messages) <= bytes_max).then_some(messages)
}

fn total(messages: &[Arc<Message>]) -> usize {
    messages.iter().map(|message| message_bytes(message)).sum()
}

fn is_prompt(message: &Message) -> bool {
    matches!(message, Message::User(_))
}

/// Leaves out the oldest turns until the prompts of the others fit next to their answers, or next
/// to as many answers as half of the size holds.
fn leave_out_turns(messages: &mut Vec<Arc<Message>>, bytes_max: usize) {
    let mut prompts: usize = messages.iter().filter(|message| is_prompt(message)).map(|message| message_bytes(message)).sum();
    let mut answers = total(messages) - prompts;
    let mut start = 0;
    for (index, message) in messages.iter().enumerate() {
        if !is_prompt(message) {
            answers -= message_bytes(message);
        } else if prompts + answers.min(bytes_max / 2) <= bytes_max {
            break;
        } else {
            prompts -= message_bytes(message);
        }
        start = index + 1;
    }
    messages.drain(..start);
}

/// Leaves out the oldest answers, with the results of their calls, until the messages have at most
/// this size.
fn leave_out_answers(messages: &mut Vec<Arc<Message>>, bytes_max: usize) {
    let (mut bytes, mut left_out) = (total(messages), false);
    messages.retain(|message| {
        match **message {
            Message::User(_) => return true,
            Message::Assistant(_) => left_out = bytes > bytes_max,
            Message::ToolResults(_) => {}
        }
        if left_out {
            bytes -= message_bytes(message);
        }
        !left_out
    });
}

fn shorten_results(message: &Message) -> Option<Message> {
    let Message::ToolResults(results) = message else { return None };
    let shorter = results.iter().map(|result| match result_bytes(result) > SHORT_BYTES {
        true => {
            let output = vec![Part::text(shorten(&plain_text(&result.output), SHORT_BYTES))];
            ToolResult { output, ..result.clone() }
        }
        false => result.clone(),
    });
    Some(Message::ToolResults(shorter.collect()))
}

fn shorten_answer(message: &Message) -> Option<Message> {
    let Message::Assistant(blocks) = message else { return None };
    let shorter = blocks.iter().filter_map(|block| match block {
        Block::Thinking { .. } => None,
        Block::Text { text, .. } => Some(Block::Text { text: shorten(text, SHORT_BYTES), state: None }),
        Block::ToolCall { id, name, input, .. } if block_bytes(block) > SHORT_BYTES => {
            let (id, name, input) = (id.clone(), name.clone(), shorten_input(input));
            Some(Block::ToolCall { id, name, input, input_text: None, state: None })
        }
        Block::ToolCall { .. } => Some(block.clone()),
    });
    Some(shorter.collect()).filter(|blocks: &Vec<Block>| !blocks.is_empty()).map(Message::Assistant)
}

fn shorten_prompt(message: &Message, bytes: usize) -> Option<Message> {
    let Message::User(parts) = message else { return None };
    (message_bytes(message) > bytes).then(|| Message::User(vec![Part::text(shorten(&plain_text(parts), bytes))]))
}

/// Shortens the values in the input of a tool call. The result is always an object.
pub(super) fn shorten_input(input: &Value) -> Value {
    let Value::Object(values) = input else { return json!({ "input": shorten(&input.to_string(), VALUE_BYTES) }) };
    let short = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), String::from);
        if text.len() > VALUE_BYTES { Value::String(shorten(&text, VALUE_BYTES)) } else { value.clone() }
    };
    Value::Object(values.iter().map(|(name, value)| (name.clone(), short(value))).collect::<Map<_, _>>())
}

/// Shortens a text that is longer than `bytes` to its start and its end, together about `bytes`,
/// with a mark between them.
pub(super) fn shorten(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.into();
    }
    let (head, tail) = (text.floor_char_boundary(bytes / 2), text.ceil_char_boundary(text.len() - bytes / 2));
    format!("{}{CUT}{}", &text[..head], &text[tail..])
}
