//! Conversations that a provider refuses as the log has them.

use harness::provider::{Exchange, Protocol, Provider};
use harness::wires::{WIRES, Wire};
use nuncio::content::{Part, ProviderState};
use nuncio::internal::model::{Block, Message, ToolResult};
use serde_json::{Value, json};

use super::{ask, image, open_as, request};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn user(text: &str) -> Message {
    Message::User(vec![Part::text(text)])
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into(), state: None }
}

fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolCall { id: id.into(), name: name.into(), input, input_text: None, state: None }
}

fn result(id: &str, output: Vec<Part>) -> ToolResult {
    ToolResult { id: id.into(), name: "read".into(), output, failed: false }
}

async fn sent(protocol: Protocol, provider_name: &str, model: &'static str, messages: Vec<Message>) -> Value {
    let wire = WIRES.iter().find(|wire| wire.protocol == protocol).expect("a wire");
    let provider = Provider::start(protocol, vec![Exchange::events(wire.plain)]).await;
    let model = open_as(provider_name, &Wire { model, ..*wire }, &provider.base_url);
    assert_eq!(ask(model.as_ref(), request(messages)).await.error, None);
    provider.finish_unchecked().await.remove(0).body
}

/// The conversation of a chat completion, as a line for each message.
fn lines(body: &Value) -> String {
    let line = |message: &Value| {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        let calls: String = calls
            .map(|call| format!(" call {} {}", call["id"].as_str().unwrap(), call["function"]["name"].as_str().unwrap()))
            .collect();
        let id = message["tool_call_id"].as_str().map(|id| format!(" {id}")).unwrap_or_default();
        let content = message["content"].as_str().map(|text| format!(" {text}")).unwrap_or_default();
        format!("{}{id}{content}{calls}\n", message["role"].as_str().unwrap())
    };
    body["messages"].as_array().unwrap().iter().skip(1).map(line).collect()
}

#[tokio::test]
async fn conversations_are_repaired() {
    let answer = |blocks: Vec<Block>| Message::Assistant(blocks);
    let results = |results: Vec<ToolResult>| Message::ToolResults(results);
    let read = |id: &str| call(id, "read", json!({}));
    let found = |id: &str| result(id, vec![Part::text("found")]);
    let cases: Vec<(&str, Vec<Message>, &str)> = vec![
        ("blank text", vec![user(" \n"), user("hi"), answer(vec![text("\t")]), user("go on")], "user hi\ngo on\n"),
        ("nothing but blank text", vec![user("")], "user Begin.\n"),
        ("an answer at the end", vec![user("hi"), answer(vec![text("ho")])], "user hi\nassistant ho\nuser Continue.\n"),
        ("an answer at the start", vec![answer(vec![text("ho")]), user("hi")], "user Begin.\nassistant ho\nuser hi\n"),
        (
            "a call without a result",
            vec![user("hi"), answer(vec![read("a"), read("b")]), results(vec![found("b")])],
            "user hi\nassistant call a read call b read\ntool a error: [the result is not known]\ntool b found\n",
        ),
        (
            "calls without results before a message",
            vec![user("hi"), answer(vec![read("a")]), user("go on")],
            "user hi\nassistant call a read\ntool a error: [the result is not known]\nuser go on\n",
        ),
        ("a result without a call", vec![user("hi"), results(vec![found("a")])], "user hi\n"),
        (
            "results in another order",
            vec![user("hi"), answer(vec![read("a"), read("b")]), results(vec![found("b"), found("a")])],
            "user hi\nassistant call a read call b read\ntool a found\ntool b found\n",
        ),
        (
            "two results of a call",
            vec![user("hi"), answer(vec![read("a")]), results(vec![found("a"), found("a")])],
            "user hi\nassistant call a read\ntool a found\n",
        ),
        (
            "an id that comes again",
            vec![
                user("hi"),
                answer(vec![read("a")]),
                results(vec![found("a")]),
                answer(vec![read("a")]),
                results(vec![found("a")]),
            ],
            "user hi\nassistant call a read\ntool a found\nassistant call a_2 read\ntool a_2 found\n",
        ),
        (
            "a result without output",
            vec![user("hi"), answer(vec![read("a")]), results(vec![result("a", vec![Part::text(" ")])])],
            "user hi\nassistant call a read\ntool a [no output]\n",
        ),
        (
            "a call without a name",
            vec![user("hi"), answer(vec![call("a", "", json!({}))]), results(vec![found("a")])],
            "user hi\nassistant call a unknown\ntool a found\n",
        ),
    ];
    for (name, messages, expected) in cases {
        let body = sent(Protocol::OpenaiChat, "test", "gpt-4.1", messages.clone()).await;
        assert_eq!(lines(&body), expected, "{name}");
        // The same conversation is the same request again.
        assert_eq!(body, sent(Protocol::OpenaiChat, "test", "gpt-4.1", messages).await);
    }
}

#[tokio::test]
async fn ids_of_kimi_are_sent_back_as_they_are() {
    let messages = |id: &str| {
        vec![
            user("hi"),
            Message::Assistant(vec![call(id, "read", json!({}))]),
            Message::ToolResults(vec![result(id, vec![Part::text("a")])]),
        ]
    };
    for (model, id, is_kept) in [
        ("kimi-k3", "functions.read:0", true),
        ("moonshotai/Kimi-K2", "functions.read:12", true),
        ("kimi-k3", "call_1", true),
        ("kimi-k3", "a b", false),
        ("gpt-4.1", "functions.read:0", false),
    ] {
        let body = sent(Protocol::OpenaiChat, "test", model, messages(id)).await;
        assert_eq!(lines(&body).contains(&format!("call {id} read")), is_kept, "{model} {id}: {body}");
    }
}

#[tokio::test]
async fn user_messages_after_results_are_separated_where_templates_require_it() {
    let messages = vec![
        user("hi"),
        Message::Assistant(vec![call("abcdefgh1", "read", json!({}))]),
        Message::ToolResults(vec![result("abcdefgh1", vec![Part::text("found")])]),
        user("go on"),
    ];
    for (protocol, provider, model, is_separated) in [
        (Protocol::OpenaiChat, "mistral", "mistral-large", true),
        (Protocol::OpenaiChat, "vllm", "Devstral-2", true),
        (Protocol::OpenaiChat, "openai", "gpt-4.1", false),
        (Protocol::Ollama, "ollama", "ministral:8b", true),
        (Protocol::Gemini, "gemini", "gemini-3.8-flash", false),
    ] {
        let body = sent(protocol, provider, model, messages.clone()).await;
        assert_eq!(body.to_string().contains("\"OK.\""), is_separated, "{model}: {body}");
        // The images of a result are in a message of the user.
        let mut with_image = messages[..3].to_vec();
        with_image[2] = Message::ToolResults(vec![result("abcdefgh1", vec![Part::text("found"), image(PNG)])]);
        let body = sent(protocol, provider, model, with_image).await;
        assert_eq!(body.to_string().contains("\"OK.\""), is_separated, "{model}: {body}");
        assert!(body.to_string().contains(PNG), "{model}: {body}");
    }
}

#[tokio::test]
async fn images_that_a_provider_refuses_are_text() {
    // 20,000 pixels wide.
    const WIDE: &str = "iVBORw0KGgoAAAANSUhEUgAATiAAAAABCAYAAAA=";
    const HEIC: &str = "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljAAAAAAAA";
    let named = |mime_type: &str, data: &str| Part::Image { mime_type: mime_type.into(), data: data.into() };
    for (name, part, protocol, expected) in [
        ("a wrong type", named("image/jpeg", PNG), Protocol::Anthropic, "image/png"),
        ("a type that does not exist", named("image/jpg", PNG), Protocol::Gemini, "image/png"),
        ("no type", named("", PNG), Protocol::OpenaiChat, "image/png"),
        ("damaged data", image("%%%"), Protocol::Anthropic, "cannot be shown"),
        ("a PNG that ends in its header", image("iVBORw0KGgoAAAANSUhEUg=="), Protocol::Anthropic, "damaged"),
        ("a GIF that ends in its header", named("image/gif", "R0lGODlh"), Protocol::OpenaiChat, "damaged"),
        ("a WebP that ends in its header", named("image/webp", "UklGRiQAAABXRUJQVlA4"), Protocol::Gemini, "damaged"),
        ("text as data", image("aGVsbG8gd29ybGQsIGhlbGxvIHdvcmxk"), Protocol::OpenaiResponses, "cannot be shown"),
        ("empty data", image(""), Protocol::OpenaiChat, "cannot be shown"),
        ("letters beyond base64", image(&format!("{PNG}ä")), Protocol::Anthropic, "cannot be shown"),
        ("too many pixels", image(WIDE), Protocol::Anthropic, "too many pixels"),
        ("too many bytes", image(&format!("{}{}", &PNG[..PNG.len() - 4], "A".repeat(11 << 20))), Protocol::Anthropic, "too large"),
        ("a type of Gemini only", named("image/heic", HEIC), Protocol::Gemini, "image/heic"),
        ("a type of no other", named("image/heic", HEIC), Protocol::OpenaiChat, "does not accept this type"),
    ] {
        let body = sent(protocol, "test", "model", vec![Message::User(vec![Part::text("look"), part])]).await;
        assert!(body.to_string().contains(expected), "{name}: {:.500}", body.to_string());
    }
    for (provider, protocol) in [("deepseek", Protocol::OpenaiChat)] {
        let body = sent(protocol, provider, "deepseek-v4-pro", vec![Message::User(vec![image(PNG)])]).await;
        assert!(body["messages"][1]["content"].as_str().is_some_and(|text| text.contains("does not read images")), "{body}");
    }
}

#[tokio::test]
async fn half_characters_in_arguments_are_replaced() {
    for half in ["\\ud83d", "\\udc00", "x\\ud83d\\u0041", "\\udc00\\ud83d"] {
        for wire in WIRES {
            let raw = format!("{{\"a\":\"{half}\"}}");
            let input = json!({ "a": "\u{fffd}" });
            let call = Block::ToolCall { id: "abcdefgh1".into(), name: "read".into(), input, input_text: Some(raw), state: None };
            let results = Message::ToolResults(vec![result("abcdefgh1", vec![Part::text("a")])]);
            let body = sent(wire.protocol, "test", wire.model, vec![user("hi"), Message::Assistant(vec![call]), results]).await;
            assert!(!body.to_string().contains("\\ud83d") && body.to_string().contains('\u{fffd}'), "{body}");
        }
    }
}

#[tokio::test]
async fn thinking_of_another_model_is_not_sent_back() {
    for wire in WIRES.iter().filter(|wire| wire.protocol != Protocol::Ollama) {
        let provider = Provider::start(wire.protocol, vec![Exchange::events(wire.rich), Exchange::events(wire.plain)]).await;
        let model = open_as("test", wire, &provider.base_url);
        let answer = ask(model.as_ref(), request(vec![user("hi")])).await;
        let blocks = super::blocks(&answer.chunks);
        let states = blocks.iter().filter_map(|block| match block {
            Block::Thinking { state, .. } | Block::Text { state, .. } | Block::ToolCall { state, .. } => state.as_ref(),
            _ => None,
        });
        let states: Vec<ProviderState> = states.cloned().collect();
        let id = format!("test/{}", wire.model);
        assert!(!states.is_empty() && states.iter().all(|state| state.model.as_deref() == Some(&id)), "{states:?}");
        let calls: Vec<ToolResult> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolCall { id, .. } => Some(result(id.as_str(), vec![Part::text("a")])),
                _ => None,
            })
            .collect();
        let messages = vec![user("hi"), Message::Assistant(blocks), Message::ToolResults(calls)];
        assert_eq!(ask(model.as_ref(), request(messages.clone())).await.error, None);
        let own = provider.finish_unchecked().await.remove(1).body.to_string();
        let other = sent(wire.protocol, "elsewhere", wire.model, messages).await.to_string();
        for state in &states {
            let secret = ["signature", "redacted", "thoughtSignature", "encrypted_content"]
                .iter()
                .find_map(|name| state.value[*name].as_str());
            let Some(secret) = secret else { continue };
            assert!(own.contains(secret) && !other.contains(secret), "{secret}: {other}");
        }
    }
}
