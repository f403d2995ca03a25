//! The conversation in the request bodies of all protocols.

use std::sync::Arc;

use harness::provider::Protocol;
use nuncio::internal::model::endpoint::{ApiKey, Credentials, Endpoint};
use nuncio::internal::model::local::LocalServers;
use nuncio::internal::model::{Messages, Request, Thinking, ToolSpec, open};
use nuncio::internal::web::HttpClients;
use serde_json::{Value, json};

use super::generator::events;
use super::{PROTOCOLS, checked};
use crate::models::{ask, configured};
use harness::provider::{Exchange, KEY, Provider};

/// The number of sessions of each pair of protocols: the one that answered, and the one that gets
/// the next request.
const SESSIONS: u64 = 2;

fn request(messages: Messages) -> Request {
    let tool = ToolSpec { name: "read".into(), description: "Reads.".into(), input_schema: json!({"type": "object"}) };
    Request {
        system: "Be brief.".into(),
        messages,
        tools: Arc::new([tool]),
        thinking: Thinking::Low,
        json_answer: false,
        cache_key: "sess_1".into(),
        refused: Arc::default(),
    }
}

/// A message or an item of a request: its author, the ids of its calls and of its results, and
/// whether it is empty.
#[derive(Debug, PartialEq)]
struct Entry {
    assistant: bool,
    calls: Vec<String>,
    results: Vec<String>,
    empty: bool,
    ends_with_thinking: bool,
}

/// The values of `names` in the objects of an array.
fn ids(parts: &Value, names: &[&str]) -> Vec<String> {
    let id = |part: &Value| names.iter().find_map(|name| part.pointer(name)).and_then(Value::as_str).map(str::to_owned);
    parts.as_array().into_iter().flatten().filter_map(id).collect()
}

fn is_empty_text(part: &Value) -> bool {
    part["text"] == "" && part.get("thoughtSignature").is_none()
}

/// The messages of a request with messages that have parts, or with one item for each call.
fn entries(body: &Value) -> Vec<Entry> {
    let list = ["messages", "contents", "input"].iter().find_map(|name| body[*name].as_array()).expect("a conversation");
    let mut entries: Vec<Entry> = Vec::new();
    for item in list.iter().filter(|item| item["role"] != "system" && item["role"] != "developer") {
        let parts = if item["parts"].is_array() { &item["parts"] } else { &item["content"] };
        let mut calls = ids(parts, &["/toolUse/toolUseId", "/functionCall/args/id"]);
        let mut results = ids(parts, &["/tool_use_id", "/toolResult/toolUseId", "/functionResponse/id"]);
        let uses = parts.as_array().into_iter().flatten().filter(|part| part["type"] == "tool_use");
        calls.extend(uses.map(|part| part["id"].as_str().unwrap().to_owned()));
        calls.extend(ids(&item["tool_calls"], &["/id", "/function/arguments/id"]));
        results.extend(item["tool_call_id"].as_str().map(str::to_owned));
        match item["type"].as_str() {
            Some("function_call") => calls.push(item["call_id"].as_str().unwrap().into()),
            Some("function_call_output") => results.push(item["call_id"].as_str().unwrap().into()),
            _ => {}
        }
        let empty = match parts {
            Value::Array(parts) => parts.is_empty() || parts.iter().any(is_empty_text),
            Value::String(text) => text.is_empty() && calls.is_empty() && item["role"] != "tool",
            _ => item["type"].is_null() && calls.is_empty(),
        };
        let last = parts.as_array().and_then(|parts| parts.last());
        let thinks = |part: &Value| part["type"] == "thinking" || part.get("reasoningContent").is_some() || part["thought"] == true;
        entries.push(Entry {
            assistant: item["role"] == "assistant"
                || item["role"] == "model"
                || matches!(item["type"].as_str(), Some("function_call" | "reasoning")),
            calls,
            results,
            empty,
            ends_with_thinking: last.is_some_and(thinks),
        });
    }
    entries
}

/// Joins entries of the same author in a row.
fn joined(entries: Vec<Entry>) -> Vec<Entry> {
    let mut joined: Vec<Entry> = Vec::new();
    for entry in entries {
        match joined.last_mut() {
            Some(last) if last.assistant == entry.assistant => {
                last.calls.extend(entry.calls);
                last.results.extend(entry.results);
            }
            _ => joined.push(entry),
        }
    }
    joined
}

fn assert_body(protocol: Protocol, body: &Value) {
    let entries = entries(body);
    let fail = |what: &str| panic!("{protocol:?}: {what}: {body:#}");
    if entries.iter().any(|entry| entry.empty) {
        fail("an empty message");
    }
    if entries.iter().any(|entry| entry.assistant && entry.ends_with_thinking) {
        fail("an answer that ends with thinking");
    }
    let items = protocol == Protocol::OpenaiResponses;
    if !items && entries.windows(2).any(|pair| pair[0].assistant && pair[1].assistant) {
        fail("two answers in a row");
    }
    let alternates = matches!(protocol, Protocol::Bedrock | Protocol::Gemini);
    if alternates && entries.windows(2).any(|pair| pair[0].assistant == pair[1].assistant) {
        fail("the authors do not alternate");
    }
    let joined = joined(entries);
    if joined.first().is_none_or(|first| first.assistant) || joined.last().is_none_or(|last| last.assistant) {
        fail("it does not start and end with the user");
    }
    for pair in joined.windows(2).filter(|pair| pair[0].assistant) {
        let named = protocol != Protocol::Ollama && protocol != Protocol::Gemini;
        if named && pair[0].calls != pair[1].results {
            fail("calls and results differ");
        }
    }
}

async fn assert_bodies(to: Protocol) {
    let provider = Provider::start(to, Vec::new()).await;
    provider.otherwise(Exchange::error(401, "{}"));
    let model = if matches!(to, Protocol::Anthropic | Protocol::Bedrock) { "claude-sonnet-5" } else { "m" };
    let endpoint = Endpoint {
        credentials: Credentials::Key(ApiKey::new(KEY, "TEST_KEY")),
        context_window: 100_000,
        ..Endpoint::new(format!("test/{model}"), configured(to), &provider.base_url)
    };
    let model = open(endpoint, &HttpClients::default(), &LocalServers::default(), Default::default());
    let mut sent = 0;
    for (number, from) in PROTOCOLS.into_iter().enumerate() {
        for seed in 0..SESSIONS {
            for messages in checked(&events(1000 + number as u64 * SESSIONS + seed, from), from) {
                ask(&*model, request(messages)).await;
                sent += 1;
            }
        }
    }
    let received = provider.finish().await;
    assert_eq!(received.len(), sent, "{to:?}");
    assert!(sent > 50, "{sent} requests");
    for received in &received {
        assert_body(to, &received.body);
    }
}

#[tokio::test]
async fn anthropic_requests_are_well_formed() {
    assert_bodies(Protocol::Anthropic).await;
}

#[tokio::test]
async fn openai_chat_requests_are_well_formed() {
    assert_bodies(Protocol::OpenaiChat).await;
}

#[tokio::test]
async fn openai_responses_requests_are_well_formed() {
    assert_bodies(Protocol::OpenaiResponses).await;
}

#[tokio::test]
async fn gemini_requests_are_well_formed() {
    assert_bodies(Protocol::Gemini).await;
}

#[tokio::test]
async fn ollama_requests_are_well_formed() {
    assert_bodies(Protocol::Ollama).await;
}

#[tokio::test]
async fn bedrock_requests_are_well_formed() {
    assert_bodies(Protocol::Bedrock).await;
}
