//! Rule 13: each call has one result, directly after the call.

use crate::provider::Protocol;
use crate::rules::Platform;
use crate::rules::refusal::Refusals;
use crate::rules::view::{Block, Content, Role, Turn, View};

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    match view.protocol {
        Protocol::OpenaiResponses => responses(view, refused),
        Protocol::Gemini => gemini(view, refused),
        _ => neighbours(view, refused),
    }
}

/// Turns that the provider reads as one.
struct Run<'a> {
    role: Role,
    place: &'a str,
    blocks: Vec<&'a Block<'a>>,
}

fn runs<'a>(view: &'a View<'a>, merges: impl Fn(Role) -> bool) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for Turn { role, place, blocks, .. } in view.turns.iter().filter(|turn| turn.place != "system") {
        match runs.last_mut().filter(|last| last.role == *role && merges(*role)) {
            Some(last) => last.blocks.extend(blocks),
            None => runs.push(Run { role: *role, place, blocks: blocks.iter().collect() }),
        }
    }
    runs
}

fn id<'a>(block: &Block<'a>) -> Option<&'a str> {
    match &block.content {
        Content::Call { id, .. } | Content::Result { id, .. } => *id,
        _ => None,
    }
}

/// The results of a turn are in the next turn.
fn neighbours(view: &View<'_>, refused: &mut Refusals) {
    // Anthropic merges neighbours of the same role; each result of Chat Completions is a message.
    let runs = runs(view, |role| role == Role::Tool || view.protocol == Protocol::Anthropic);
    let mut calls: Vec<&str> = Vec::new();
    let mut caller = "";
    for run in &runs {
        let results: Vec<&Block<'_>> = run.blocks.iter().copied().filter(|block| block.is_result()).collect();
        // Anthropic reads results only at the start of a turn.
        let leading = run.blocks.iter().take_while(|block| block.is_result()).count();
        let near = if view.protocol == Protocol::Anthropic { &results[..leading.min(results.len())] } else { &results[..] };
        let missing: Vec<&str> = calls.iter().copied().filter(|call| !near.iter().any(|block| id(block) == Some(call))).collect();
        if !missing.is_empty() {
            refused.add(13, caller, missing_words(view, caller, run.place, &missing.join(", ")));
        }
        let mut answered: Vec<&str> = Vec::new();
        for block in results {
            let result = id(block).unwrap_or_default();
            if answered.contains(&result) || !calls.contains(&result) {
                refused.add(13, &*block.place, extra_words(view, block, run.place, result, answered.contains(&result)));
            }
            answered.push(result);
        }
        caller = run.place;
        calls = run.blocks.iter().filter(|block| block.is_call()).map(|block| id(block).unwrap_or_default()).collect();
    }
    if !calls.is_empty() {
        refused.add(13, caller, missing_words(view, caller, caller, &calls.join(", ")));
    }
}

fn missing_words(view: &View<'_>, caller: &str, next: &str, ids: &str) -> String {
    match (view.protocol, view.platform) {
        (Protocol::Anthropic, _) => format!(
            "{caller}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` block \
             must have a corresponding `tool_result` block in the next message."
        ),
        (Protocol::Bedrock, _) => format!("Expected toolResult blocks at {next}.content for the following Ids: {ids}"),
        (_, Platform::Minimax) => "invalid params, tool call and result not match (2013)".to_owned(),
        (_, Platform::Mistral) => "Not the same number of function calls and responses".to_owned(),
        _ => format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The \
             following tool_call_ids did not have response messages: {ids}"
        ),
    }
}

fn extra_words(view: &View<'_>, block: &Block<'_>, turn: &str, id: &str, again: bool) -> String {
    let place = &block.place;
    match (view.protocol, view.platform) {
        (Protocol::Anthropic, _) if again => {
            format!("{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}")
        }
        (Protocol::Anthropic, _) => format!(
            "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a \
             corresponding `tool_use` block in the previous message."
        ),
        (Protocol::Bedrock, _) => {
            format!("The number of toolResult blocks at {turn}.content exceeds the number of toolUse blocks of previous turn.")
        }
        (_, Platform::Minimax) => format!("invalid params, tool result's tool id({id}) not found (2013)"),
        (_, Platform::Mistral) => "Unexpected tool call id in tool results".to_owned(),
        _ => {
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.".to_owned()
        }
    }
}

/// Results of Responses may follow anywhere after their call.
fn responses(view: &View<'_>, refused: &mut Refusals) {
    let blocks: Vec<&Block<'_>> = view.blocks().collect();
    for (index, block) in blocks.iter().enumerate() {
        let call = id(block).unwrap_or_default();
        let same = |other: &&&Block<'_>| id(other) == Some(call);
        if block.is_call() && !blocks[index..].iter().filter(|other| other.is_result()).any(|other| same(&other)) {
            refused.add(13, "input", format!("No tool output found for function call {call}."));
        }
        if block.is_result() {
            let calls = blocks[..index].iter().filter(|other| other.is_call()).filter(same).count();
            let results = blocks[..index].iter().filter(|other| other.is_result()).filter(same).count();
            if results >= calls {
                refused.add(13, "input", format!("No tool call found for function call output with call_id {call}."));
            }
        }
    }
}

/// A function's name and the id of its call, if it has one.
type NamedCall = (String, Option<String>);

fn fits(result: &NamedCall, call: &NamedCall) -> bool {
    result.0 == call.0 && (result.1 == call.1 || result.1.is_none() || call.1.is_none())
}

/// Calls and results of Gemini belong together by order and name, and by ids if they have any.
fn gemini(view: &View<'_>, refused: &mut Refusals) {
    let runs = runs(view, |_| true);
    let named = |run: &Run<'_>, calls: bool| -> Vec<NamedCall> {
        let key = |block: &&Block<'_>| match &block.content {
            Content::Call { name, id, .. } if calls => Some(((*name).to_owned(), id.map(str::to_owned))),
            Content::Result { name, id, .. } if !calls => Some((name.unwrap_or_default().to_owned(), id.map(str::to_owned))),
            _ => None,
        };
        run.blocks.iter().filter_map(key).collect()
    };
    let mut expected: Vec<NamedCall> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let results = named(run, false);
        if results.len() != expected.len() || results.iter().zip(&expected).any(|(result, call)| !fits(result, call)) {
            let words = "Please ensure that the number of function response parts is equal to the number of function call parts \
                         of the function call turn.";
            refused.add(13, run.place, words);
        }
        expected = named(run, true);
        if !expected.is_empty() && index == 0 {
            let words =
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
            refused.add(13, run.place, words);
        }
    }
    if !expected.is_empty() {
        let words = "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
        refused.add(13, "contents", words);
    }
}
