//! A program that embeds nuncio, with a model provider and a hook of its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use nuncio::app::embed::EmbedOptions;
use nuncio::config::FailurePolicy;
use nuncio::content::{Part, StopReason, plain_text};
use nuncio::event::HookEvent;
use nuncio::hooks::{Hook, HookEffect, HookError, HookRequest};
use nuncio::model::{Chunk, ChunkStream, Message, Model, ModelError, ModelProvider, Request};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use crate::harness::{Home, bounded};

/// A provider whose models repeat the last message of the user.
struct Echo;

struct EchoModel(String);

impl ModelProvider for Echo {
    fn open(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(EchoModel(id.to_owned())))
    }
}

impl Model for EchoModel {
    fn id(&self) -> &str {
        &self.0
    }

    fn context_window(&self) -> u64 {
        100_000
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let last = request.messages.iter().rev().find_map(|message| match &**message {
            Message::User(parts) => Some(plain_text(parts)),
            Message::Assistant(_) | Message::ToolResults(_) => None,
        });
        let chunks = [Chunk::Text(format!("heard: {}", last.unwrap_or_default())), Chunk::Stop(StopReason::EndTurn)];
        stream::iter(chunks.map(Ok)).boxed()
    }
}

/// Changes the messages to the models of the provider.
struct Redact;

impl Hook for Redact {
    fn event(&self) -> HookEvent {
        HookEvent::PromptMessagesTransform
    }

    fn name(&self) -> &str {
        "redact"
    }

    fn matches(&self, subject: &str) -> bool {
        subject.starts_with("echo/")
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn on_failure(&self) -> FailurePolicy {
        FailurePolicy::Closed
    }

    fn run<'a>(&'a self, request: &'a HookRequest, _: &'a CancellationToken) -> BoxFuture<'a, Result<HookEffect, HookError>> {
        let redact = |part: &Part| match part {
            Part::Text { text } => Part::Text { text: text.replace("tops3cret", "REDACTED") },
            other => other.clone(),
        };
        let messages = request.messages.iter().flatten().map(|message| match &**message {
            Message::User(parts) => Message::User(parts.iter().map(redact).collect()),
            other => other.clone(),
        });
        let effect = HookEffect::Conversation(messages.collect());
        Box::pin(async { Ok(effect) })
    }
}

/// The client's end of the connection.
struct Client {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
    frames: Vec<Value>,
}

impl Client {
    async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.frames.len();
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n";
        self.output.write_all(line.as_bytes()).await.unwrap();
        loop {
            let mut line = String::new();
            bounded(method, self.input.read_line(&mut line)).await.unwrap();
            let frame: Value = serde_json::from_str(&line).unwrap();
            self.frames.push(frame.clone());
            if frame["id"] == id && frame.get("method").is_none() {
                return frame["result"].clone();
            }
        }
    }
}

#[tokio::test]
async fn embedder_adds_a_model_provider_and_a_hook() {
    let home = Home::new();
    home.config("model = \"echo/one\"\n");
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let variables = [("NUNCIO_HOME", home.data().to_str().unwrap()), ("HOME", home.data().to_str().unwrap())].into();
    let embedded = EmbedOptions {
        environment: variables,
        cwd: Some(home.work()),
        hooks: vec![Arc::new(Redact)],
        providers: vec![("echo".into(), Arc::new(Echo))],
        ..EmbedOptions::default()
    };
    let served = tokio::spawn(embedded.serve(input, output, CancellationToken::new()));
    let (input, output) = tokio::io::split(ours);
    let mut client = Client { input: BufReader::new(input), output, frames: Vec::new() };
    client.call("initialize", json!({"protocolVersion": 1})).await;
    let session = client.call("session/new", json!({"cwd": home.work(), "mcpServers": []})).await["sessionId"].clone();
    let prompt = json!([{"type": "text", "text": "the word is tops3cret"}]);
    let ended = client.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
    assert_eq!(ended["stopReason"], "end_turn", "{:#?}", client.frames);
    let updates = client.frames.iter().map(|frame| &frame["params"]["update"]);
    let said = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk").map(|update| &update["content"]["text"]);
    let said: String = said.map(|text| text.as_str().unwrap()).collect();
    assert!(said.starts_with("heard: ") && said.ends_with("the word is REDACTED"), "{said}");
    client.output.shutdown().await.unwrap();
    drop(client);
    bounded("the end", served).await.unwrap().unwrap();
}
