//! Models: requests through the public interface, answered by a scripted provider.

mod adapted_conversations;
mod adapted_tools;
mod catalog;
mod errors;
mod failures;
mod faults;
mod images;
mod json_lines;
mod kept_messages;
mod local;
mod long_calls;
mod protocol_deviations;
mod quirks;
mod refusals;
mod scripted;
mod sigv4;
mod sse;
mod streams;

use std::sync::Arc;

use futures_util::StreamExt;
use harness::wires::{WIRES, Wire};
use nuncio::content::{Part, ProviderState};
use nuncio::internal::model::endpoint::{ApiKey, Credentials, Endpoint};
use nuncio::internal::model::local::LocalServers;
use nuncio::internal::model::{Block, Chunk, Message, Model, ModelError, Request, Thinking, ToolResult, ToolSpec};
use nuncio::internal::web::HttpClients;
use serde_json::Value;

use harness::provider::{Exchange, KEY, Protocol, Provider, ReceivedRequest};

pub fn request(messages: Vec<Message>) -> Request {
    Request {
        system: "Be brief.".into(),
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        tools: Arc::new([ToolSpec {
            name: "read".to_owned(),
            description: "Reads a file.".to_owned(),
            input_schema: serde_json::json!({ "type": "object" }),
        }]),
        thinking: Thinking::Low,
        json_answer: false,
        cache_key: "sess_1".to_owned(),
        refused: Arc::default(),
    }
}

fn image(data: &str) -> Part {
    Part::Image { mime_type: "image/png".to_owned(), data: data.to_owned() }
}

pub fn hi() -> Vec<Message> {
    vec![Message::User(vec![
        Part::text("hi"),
        image("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
    ])]
}

fn open(wire: &Wire, base_url: &str) -> Arc<dyn Model> {
    open_as("test", wire, base_url)
}

/// Opens a model of the provider with this name.
fn open_as(provider: &str, wire: &Wire, base_url: &str) -> Arc<dyn Model> {
    nuncio::internal::model::open(
        endpoint(provider, wire, base_url),
        &HttpClients::default(),
        &LocalServers::default(),
        Default::default(),
    )
}

fn endpoint(provider: &str, wire: &Wire, base_url: &str) -> Endpoint {
    Endpoint {
        credentials: Credentials::Key(ApiKey::new(KEY, "TEST_KEY")),
        context_window: 1000,
        ..Endpoint::new(format!("{provider}/{}", wire.model), configured(wire.protocol), base_url)
    }
}

/// The protocol as the library names it.
pub fn configured(protocol: Protocol) -> nuncio::internal::config::Protocol {
    serde_json::from_value(protocol.as_str().into()).expect("a protocol")
}

pub struct Answer {
    pub chunks: Vec<Chunk>,
    pub error: Option<ModelError>,
}

pub async fn ask(model: &dyn Model, request: Request) -> Answer {
    let (mut chunks, mut error) = (Vec::new(), None);
    let mut stream = model.stream(request);
    while let Some(item) = stream.next().await {
        assert!(error.is_none(), "an error ends the stream");
        match item {
            Ok(chunk) => chunks.push(chunk),
            Err(failed) => error = Some(failed),
        }
    }
    Answer { chunks, error }
}

/// Sends one request to a provider with these exchanges. Returns the answer and the requests that
/// the provider received.
async fn exchange(wire: &Wire, exchanges: Vec<Exchange>) -> (Answer, Vec<ReceivedRequest>) {
    let provider = Provider::start(wire.protocol, exchanges).await;
    let model = open(wire, &provider.base_url);
    let answer = ask(model.as_ref(), request(hi())).await;
    (answer, provider.finish().await)
}

/// Chunks as text, one line each; ends of blocks only if they have a state.
pub fn shown(chunks: &[Chunk]) -> String {
    let carried = |state: &Option<ProviderState>| state.as_ref().map_or(String::new(), |state| format!(" {}", state.value));
    let lines = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Text(text) => Some(format!("text {text}")),
        Chunk::Thinking(text) => Some(format!("thinking {text}")),
        Chunk::BlockEnd { state: None, .. } | Chunk::UsageSoFar(_) | Chunk::CallInput { .. } => None,
        Chunk::BlockEnd { thinking, state } => {
            Some(format!("end {}{}", if *thinking { "thinking" } else { "text" }, carried(state)))
        }
        Chunk::ToolCall { id, name, input, state } => Some(format!("call {id} {name} {input}{}", carried(state))),
        Chunk::Usage(usage) => {
            let counts = [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens];
            Some(format!("usage {} {} {} {}", counts[0], counts[1], counts[2], counts[3]))
        }
        Chunk::Truncated { bound } => Some(format!("truncated at {bound}")),
        Chunk::Notice { title, .. } => Some(format!("notice {title}")),
        Chunk::Retry { attempt, reason, .. } => Some(format!("retry {attempt}: {reason}")),
        Chunk::Stop(reason) => Some(format!("stop {reason:?}")),
        unknown => panic!("{unknown:?}"),
    });
    lines.map(|line| line + "\n").collect()
}

/// Combines chunks into blocks, by the contract of [`Chunk`].
fn blocks(chunks: &[Chunk]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for chunk in chunks {
        match (chunk.clone(), blocks.last_mut().filter(|_| open)) {
            (Chunk::Text(piece), Some(Block::Text { text, .. })) => text.push_str(&piece),
            (Chunk::Thinking(piece), Some(Block::Thinking { text, .. })) => text.push_str(&piece),
            (Chunk::Text(text), _) => blocks.push(Block::Text { text, state: None }),
            (Chunk::Thinking(text), _) => blocks.push(Block::Thinking { text, state: None }),
            (Chunk::BlockEnd { thinking: true, state: end }, Some(Block::Thinking { state, .. })) => *state = end,
            (Chunk::BlockEnd { thinking: false, state: end }, Some(Block::Text { state, .. })) => *state = end,
            (Chunk::BlockEnd { thinking: true, state }, _) => blocks.push(Block::Thinking { text: String::new(), state }),
            (Chunk::BlockEnd { thinking: false, state }, _) => blocks.push(Block::Text { text: String::new(), state }),
            (Chunk::ToolCall { id, name, input, state }, _) => {
                let input = serde_json::from_str(&input).expect("an object");
                blocks.push(Block::ToolCall { id: id.into(), name, input, input_text: None, state });
            }
            (Chunk::Usage(_) | Chunk::UsageSoFar(_) | Chunk::Truncated { .. } | Chunk::Retry { .. }, _) => {}
            (Chunk::CallInput { .. } | Chunk::Notice { .. } | Chunk::Stop(_), _) => {}
            (unknown, _) => panic!("{unknown:?}"),
        }
        open = matches!(chunk, Chunk::Text(_) | Chunk::Thinking(_));
    }
    blocks
}

const HELLO: &str = "text Hel\ntext lo\n";

/// The chunks of a complete plain answer. Gemini does not report cache writes, Ollama no use of its
/// cache.
fn hello(wire: &Wire) -> String {
    let (read, written) = match wire.protocol {
        Protocol::Gemini => (4, 0),
        Protocol::Ollama | Protocol::Bedrock => (0, 0),
        Protocol::Anthropic | Protocol::OpenaiChat | Protocol::OpenaiResponses => (4, 1),
    };
    format!("{HELLO}usage 10 2 {read} {written}\nstop EndTurn\n")
}

#[tokio::test]
async fn plain_answer_has_text_and_usage() {
    for wire in WIRES {
        let (answer, received) = exchange(wire, vec![Exchange::events(wire.plain)]).await;
        assert_eq!(answer.error, None);
        assert_eq!(shown(&answer.chunks), hello(wire), "{}", wire.model);
        assert_eq!(received[0].path, wire.path);
    }
}

#[tokio::test]
async fn thinking_and_parallel_calls_are_sent_back() {
    for wire in WIRES {
        let exchanges = vec![Exchange::events(wire.rich), Exchange::events(wire.plain)];
        let provider = Provider::start(wire.protocol, exchanges).await;
        let model = open(wire, &provider.base_url);
        let answer = ask(model.as_ref(), request(hi())).await;
        assert_eq!(answer.error, None);
        assert_eq!(format!("\n{}", shown(&answer.chunks)), wire.rich_chunks);

        let blocks = blocks(&answer.chunks);
        let results = blocks.iter().filter_map(|block| match block {
            Block::ToolCall { id, name, .. } => Some((id.clone(), name.clone())),
            _ => None,
        });
        let outputs = [
            (
                vec![
                    Part::text("pixels"),
                    image("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="),
                ],
                false,
            ),
            (vec![Part::text("no such file")], true),
        ];
        let results = results.zip(outputs).map(|((id, name), (output, failed))| ToolResult { id, name, output, failed });
        let mut messages = hi();
        messages.push(Message::Assistant(blocks.clone()));
        messages.push(Message::ToolResults(results.collect()));
        messages.push(Message::User(vec![Part::text("go on")]));
        assert_eq!(ask(model.as_ref(), request(messages)).await.error, None);

        let received = provider.finish().await;
        let mut expected: Value = serde_json::from_str(wire.follow_up).expect("JSON");
        if wire.model.starts_with("claude") {
            // An id with characters that the protocol does not allow is replaced; the call and its
            // result have the same new id.
            let id = &received[1].body["messages"][1]["content"][4]["id"];
            assert!(id.as_str().is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric())), "{id}");
            expected = serde_json::from_str(&wire.follow_up.replace("\"ID2\"", &id.to_string())).expect("JSON");
        }
        let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("JSON");
        assert_eq!(sorted(&received[1].body), sorted(&expected), "{}", pretty(&received[1].body));
        let connections = [received[0].connection, received[1].connection];
        assert!(connections[1] <= connections[0], "a connection is used again: {connections:?}");
    }
}

/// Sorts the keys of objects, so that comparisons ignore their order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(values) => values.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
