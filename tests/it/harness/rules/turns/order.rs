//! Rules 19 and 20: user text next to results, the order of turns, and the last turn.

use crate::provider::Protocol;
use crate::rules::refusal::Refusals;
use crate::rules::view::{Content, Role, Turn, View};
use crate::rules::{Platform, model};

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    let turns: Vec<&Turn<'_>> =
        view.turns.iter().filter(|turn| turn.place != "system" && turn.place != "system_instruction").collect();
    match view.protocol {
        Protocol::Anthropic => anthropic(view, &turns, refused),
        Protocol::Bedrock => bedrock(view, &turns, refused),
        Protocol::Gemini => gemini(view, &turns, refused),
        Protocol::OpenaiChat => chat(view, &turns, refused),
        Protocol::OpenaiResponses if turns.is_empty() => {
            refused.add(20, "input", "Invalid 'input': empty array. Expected an array with minimum length 1.");
        }
        Protocol::OpenaiResponses | Protocol::Ollama => {}
    }
}

fn anthropic(view: &View<'_>, turns: &[&Turn<'_>], refused: &mut Refusals) {
    let refuses_prefill = model::claude_from(view.model, (4, 6)) && !view.is_model(&["haiku-4"]);
    if let Some(last) = turns.last().filter(|last| last.role == Role::Assistant && refuses_prefill) {
        let words = "This model does not support assistant message prefill. The conversation must end with a user message.";
        refused.add(20, &*last.place, words);
    }
}

fn bedrock(view: &View<'_>, turns: &[&Turn<'_>], refused: &mut Refusals) {
    if view.is_model(&["llama", "writer"]) || model::is_mistral(view.model) {
        for turn in turns.iter().filter(|turn| turn.blocks.iter().any(|block| block.is_result())) {
            let is_conversation = |content: &Content<'_>| !matches!(content, Content::Result { .. } | Content::Other);
            if turn.blocks.iter().any(|block| is_conversation(&block.content)) {
                let words = "Conversation blocks and tool result blocks cannot be provided in the same turn.";
                refused.add(19, &*turn.place, words);
            }
        }
    }
    if view.is_model(&["claude", "qwen"]) {
        return;
    }
    if let Some(first) = turns.first().filter(|first| first.role != Role::User) {
        refused.add(
            20,
            &*first.place,
            "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
        );
    }
    for pair in turns.windows(2).filter(|pair| pair[0].role == pair[1].role) {
        let words = "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between \
                     user and assistant roles and try again.";
        refused.add(20, &*pair[1].place, words);
    }
}

fn gemini(view: &View<'_>, turns: &[&Turn<'_>], refused: &mut Refusals) {
    for turn in turns.iter().filter(|_| view.platform == Platform::Vertex) {
        let has_results = turn.blocks.iter().any(|block| block.is_result());
        let text = turn.blocks.iter().find(|block| matches!(block.content, Content::Text(_)));
        if let Some(text) = text.filter(|_| has_results) {
            let words = "Please ensure that function response turn has only function response parts.";
            refused.add(19, &*text.place, words);
        }
    }
    if let Some(first) = turns.first().filter(|first| first.role != Role::User) {
        refused.add(20, &*first.place, "Please ensure that the conversation starts with a user turn.");
    }
    if let Some(last) = turns.last().filter(|last| last.role != Role::User) {
        refused.add(20, &*last.place, "Requests ending with a model turn are not supported.");
    }
}

fn chat(view: &View<'_>, turns: &[&Turn<'_>], refused: &mut Refusals) {
    let is_mistral = view.platform == Platform::Mistral || model::is_mistral(view.model);
    if !is_mistral {
        return;
    }
    for pair in turns.windows(2).filter(|pair| pair[0].role == Role::Tool && pair[1].role == Role::User) {
        refused.add_code(19, "3230", &*pair[1].place, "Unexpected role 'user' after role 'tool'");
    }
    if let Some(last) = turns.last().filter(|last| !matches!(last.role, Role::User | Role::Tool)) {
        let words = "Expected last role User or Tool (or Assistant with prefix True) for serving";
        refused.add_code(20, "3230", &*last.place, words);
    }
}
