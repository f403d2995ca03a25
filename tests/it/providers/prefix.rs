//! A request starts with the bytes of the previous request, so that providers find it in their
//! cache.

use harness::provider::Protocol;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use harness::provider::session::{connect, conversation, home};
use harness::provider::{Exchange, ReceivedRequest};
use harness::wires::WIRES;

/// The conversation of a request body, each item as it was sent, without marks of the cache.
fn items(received: &ReceivedRequest) -> Vec<String> {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow, alias = "input", alias = "contents")]
        messages: Vec<&'a RawValue>,
    }
    let body: Body<'_> = serde_json::from_str(&received.text).expect("a body");
    body.messages.iter().map(|item| item.get().replace(r#","cache_control":{"type":"ephemeral"}"#, "")).collect()
}

/// The body without its conversation.
fn rest(received: &ReceivedRequest) -> Value {
    let mut body = received.body.clone();
    ["messages", "input", "contents"].iter().for_each(|name| drop(body.as_object_mut().and_then(|body| body.remove(*name))));
    body
}

#[tokio::test]
async fn requests_start_with_previous_request() {
    for wire in WIRES {
        // The model writes its arguments with white space of its own.
        let spaced = |event: &&str| {
            event
                .replace(r#"{\"file_path\":"#, r#"{  \"file_path\" :  "#)
                .replace(r#"{"file_path":"a"}"#, r#"{  "file_path" :  "a" }"#)
        };
        let rich: Vec<String> = wire.rich.iter().map(spaced).collect();
        let rich: Vec<&str> = rich.iter().map(String::as_str).collect();
        let plain = || Exchange::events(wire.plain);
        let answers = vec![Exchange::events(&rich), plain(), plain(), plain(), plain()];
        let (home, provider, name) = home(wire, answers).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "read a and b").await;
        agent.call("session/set_mode", json!({ "sessionId": session, "modeId": "plan" })).await;
        agent.turn(&session, "make a plan").await;
        agent.finish().await;
        let mut agent = connect(&home).await;
        agent.turn(&session, "improve the plan").await;
        agent.call("session/set_mode", json!({ "sessionId": session, "modeId": "ask" })).await;
        agent.turn(&session, "do it").await;
        agent.finish().await;

        let received = provider.finish().await;
        for pair in received.windows(2) {
            let (before, after) = (items(&pair[0]), items(&pair[1]));
            assert_eq!(after[..before.len()], before, "{name}");
            assert_eq!(rest(&pair[0]), rest(&pair[1]), "{name}");
        }
        let sent = received[1].text.replace('\\', "");
        assert!(sent.contains("{  \"file_path\" :  \"a\""), "{name}: {sent}");
        let notes = |at: usize, note: &str| json!(conversation(&received[at])).to_string().matches(note).count();
        assert_eq!([0, 1, 2, 3, 4].map(|at| notes(at, ">mode: plan.")), [0, 0, 1, 1, 1], "{name}");
        assert_eq!([0, 1, 2, 3, 4].map(|at| notes(at, "no longer plan")), [0, 0, 0, 0, 1], "{name}");
    }
}

/// The paths of the marks of the cache in a body.
fn marks(value: &Value, path: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.contains_key("cache_control").then(|| path.clone()));
            fields.iter().for_each(|(name, value)| marks(value, format!("{path}/{name}"), found));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(at, value)| marks(value, format!("{path}/{at}"), found));
        }
        _ => {}
    }
}

#[tokio::test]
async fn anthropic_cache_marks_include_end_of_previous_request() {
    let wire = &WIRES[0];
    let (home, provider, _) = home(wire, vec![Exchange::events(wire.rich), Exchange::events(wire.plain)]).await;
    let config = home.config_text();
    home.config(&format!("{config}cache_ttl = \"1h\"\n"));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "read a and b").await;
    agent.finish().await;
    let received = provider.finish().await;
    let last_tool = received[0].body["tools"].as_array().map_or(0, Vec::len) - 1;
    let conversation = |paths: &[&str]| {
        let paths = paths.iter().map(|path| format!("/messages/{path}"));
        ["/system/0".to_owned(), format!("/tools/{last_tool}")].into_iter().chain(paths).collect::<Vec<_>>()
    };
    for (received, expected) in
        [(&received[0], conversation(&["0/content/2"])), (&received[1], conversation(&["0/content/2", "2/content/1"]))]
    {
        let mut found = Vec::new();
        marks(&received.body, String::new(), &mut found);
        found.sort_by_key(|path| (path.starts_with("/messages"), path.clone()));
        assert_eq!(found, expected);
        assert_eq!(received.body["system"][0]["cache_control"], json!({ "type": "ephemeral", "ttl": "1h" }));
    }
}

#[tokio::test]
async fn models_of_mistral_receive_short_ids_from_every_provider() {
    for wire in WIRES.iter().filter(|wire| wire.protocol != Protocol::Gemini) {
        let (home, provider, name) = home(wire, vec![Exchange::events(wire.rich), Exchange::events(wire.plain)]).await;
        home.config(&home.config_text().replace(&format!("test/{name}"), "test/mistralai/Devstral-Small"));
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "read a and b").await;
        agent.finish().await;
        let received = provider.finish().await;
        let mut ids = Vec::new();
        fn collect(value: &Value, ids: &mut Vec<String>) {
            match value {
                Value::Object(fields) => fields.iter().for_each(|(name, value)| match (name.as_str(), value) {
                    ("tool_use_id" | "tool_call_id" | "call_id", Value::String(id)) => ids.push(id.clone()),
                    _ => collect(value, ids),
                }),
                Value::Array(values) => values.iter().for_each(|value| collect(value, ids)),
                _ => {}
            }
        }
        collect(&received[1].body, &mut ids);
        assert!(ids.len() >= 2, "{name}: {ids:?}");
        assert!(ids.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())), "{name}: {ids:?}");
    }
}

/// The roles of a chat conversation, with the number of calls.
fn roles(received: &ReceivedRequest) -> Vec<String> {
    let role = |turn: &Value| {
        let calls = turn["tool_calls"].as_array().map_or(String::new(), |calls| format!(" {}", calls.len()));
        format!("{}{calls}", turn["role"].as_str().unwrap_or_default())
    };
    conversation(received).iter().map(role).collect()
}

#[tokio::test]
async fn template_with_single_calls_gets_one_call_per_message() {
    let wire = WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiChat).expect("there");
    let refusal = r#"{"error":{"code":400,"message":"Jinja Exception: This model only supports single tool-calls at once!","type":"invalid_request_error"}}"#;
    let plain = || Exchange::events(wire.plain);
    let answers = vec![Exchange::events(wire.rich), Exchange::error(400, refusal), plain(), plain()];
    let (home, provider, _) = home(wire, answers).await;
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    assert_eq!(agent.turn(&session, "read a and b").await.0, "end_turn");
    agent.turn(&session, "go on").await;
    agent.finish().await;
    let received = provider.finish().await;
    assert_eq!(roles(&received[1])[1..], ["user", "assistant 2", "tool", "tool"]);
    assert_eq!(roles(&received[2])[1..], ["user", "assistant 1", "tool", "assistant 1", "tool"]);
    assert_eq!(roles(&received[3])[1..], ["user", "assistant 1", "tool", "assistant 1", "tool", "assistant", "user"]);
}

#[tokio::test]
async fn setting_forbids_parallel_calls() {
    for wire in WIRES {
        let (home, provider, name) = home(wire, vec![Exchange::events(wire.rich), Exchange::events(wire.plain)]).await;
        home.config(&format!("{}parallel_tool_calls = false\n", home.config_text()));
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "read a and b").await;
        agent.finish().await;
        let received = provider.finish().await;
        let (parameter, expected) = match wire.protocol {
            Protocol::Anthropic => ("/tool_choice/disable_parallel_tool_use", json!(true)),
            Protocol::OpenaiChat | Protocol::OpenaiResponses => ("/parallel_tool_calls", json!(false)),
            Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock => ("/parallel_tool_calls", Value::Null),
        };
        assert_eq!(received[0].body.pointer(parameter).unwrap_or(&Value::Null), &expected, "{name}");
        let text = json!(conversation(&received[1])).to_string();
        let places: Vec<usize> = ["\\\"a\\\"", "stands in a", "\\\"b\\\"", "stands in b"]
            .iter()
            .map(|word| text.find(word).or_else(|| text.find(&word.replace('\\', ""))).expect(word))
            .collect();
        assert!(places.is_sorted(), "{name}: {text}");
    }
}
