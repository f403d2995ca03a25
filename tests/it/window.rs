//! The context window: pruning, compaction and the report of its tokens.

mod compact;
mod long_session;
mod overflow;
mod prefix;
mod report;

use harness::provider::Protocol;
use serde_json::{Value, json};

use harness::provider::{Exchange, KEY, Provider, ReceivedRequest};
use harness::{Agent, Home};

/// Bytes per token of the test model.
const BYTES_PER_TOKEN: usize = 4;
/// Part of each request for a summary.
const SUMMARY_REQUEST: &str = "Write a summary of this conversation";

/// A home whose model is a test model with this context window, and further settings.
pub async fn home(window: usize, settings: &str) -> (Home, Provider) {
    let provider = Provider::start(Protocol::OpenaiChat, Vec::new()).await;
    let home = Home::new();
    home.config(&format!(
        "model = \"test/model\"\n[providers.test]\nprotocol = \"openai-chat\"\nbase_url = \"{}\"\n\
         api_key_command = [\"echo\", \"{KEY}\"]\ncontext_window = {window}\n{settings}",
        provider.base_url
    ));
    (home, provider)
}

async fn connect(home: &Home) -> Agent {
    let mut agent = home.start(&[]).await;
    let capabilities = json!({ "session": { "notices": {} } });
    agent.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities })).await;
    agent
}

/// The tokens of a request.
fn tokens(received: &ReceivedRequest) -> usize {
    received.text.len() / BYTES_PER_TOKEN
}

/// An answer with text.
pub fn says(received: &ReceivedRequest, text: &str) -> Exchange {
    answer(received, json!({ "content": text }), "stop")
}

/// An answer that calls a tool.
pub fn calls(received: &ReceivedRequest, id: &str, name: &str, input: Value) -> Exchange {
    let function = json!({ "name": name, "arguments": input.to_string() });
    answer(received, json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] }), "tool_calls")
}

fn answer(received: &ReceivedRequest, delta: Value, reason: &str) -> Exchange {
    let usage = json!({ "prompt_tokens": tokens(received), "completion_tokens": delta.to_string().len() / BYTES_PER_TOKEN });
    let chunk = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] }).to_string();
    let end = json!({ "choices": [], "usage": usage }).to_string();
    Exchange::events(&[&chunk, &end, "[DONE]"])
}

/// The rejection of a request that exceeds the context window.
fn rejection(tokens: usize, window: usize) -> Exchange {
    let message =
        format!("This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens.");
    let error = json!({ "message": message, "type": "invalid_request_error", "code": "context_length_exceeded" });
    Exchange::error(400, &json!({ "error": error }).to_string())
}

fn messages(received: &ReceivedRequest) -> &[Value] {
    received.body["messages"].as_array().expect("messages")
}

/// Returns whether the request asks for a summary.
fn asks_for_summary(received: &ReceivedRequest) -> bool {
    last_text(received).contains(SUMMARY_REQUEST)
}

/// The text of the last message.
fn last_text(received: &ReceivedRequest) -> String {
    messages(received).last().map(|message| message["content"].to_string()).unwrap_or_default()
}

/// Checks that each tool call of the request is followed by its result, and each result follows its
/// call.
fn paired(received: &ReceivedRequest) -> bool {
    let mut open: Vec<String> = Vec::new();
    for message in messages(received) {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if open.is_empty() || open.remove(0) != id {
                return false;
            }
            continue;
        }
        if !open.is_empty() {
            return false;
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open = calls.map(|call| call["id"].as_str().unwrap_or_default().to_owned()).collect();
    }
    open.is_empty()
}

/// The bodies of the events of these types in the session's log.
async fn events(home: &Home, session: &str, types: &[&str]) -> Vec<Value> {
    let log = home.log(session).await.into_iter().map(|event| event["body"].clone());
    log.filter(|body| types.contains(&body["type"].as_str().unwrap_or_default())).collect()
}
