//! The embedding program as a whole: its environment, its process, ACP and HTTP.

use futures_util::{StreamExt, stream};
use nuncio::content::{Part, StopReason};
use nuncio::{Agent, Chunk, ChunkStream, Kind, Message, Mode, Model, ModelRequest};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use super::{builder, events, outputs};
use harness::steps::bash;
use harness::{Bridge, Home, UNCONFINED, bounded};

/// A model that repeats the last message of the user.
struct Echo;

impl Model for Echo {
    fn id(&self) -> &str {
        "echo/one"
    }

    fn context_window(&self) -> u64 {
        100_000
    }

    fn stream(&self, request: ModelRequest) -> ChunkStream {
        let last = request.messages.iter().rev().find_map(|message| match &**message {
            Message::User(parts) => Some(parts.iter().map(Part::as_text).collect::<String>()),
            _ => None,
        });
        let chunks = [Chunk::Text(format!("heard: {}", last.unwrap_or_default())), Chunk::Stop(StopReason::EndTurn)];
        stream::iter(chunks.map(Ok)).boxed()
    }
}

/// Two agents in one process: the commands of each one have only its variables, without its keys.
#[tokio::test]
async fn agents_do_not_see_the_environment_of_each_other() {
    let home = Home::new();
    let settings = "[providers.own]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9\"\napi_key_env = \"OWN_KEY\"\n";
    let settings = format!("{UNCONFINED}{settings}");
    let agent = |name: &'static str| {
        let variables =
            [("OWN_KEY", format!("key-{name}")), ("NAME", name.to_owned()), ("TMPDIR", home.data().display().to_string())];
        builder(&home, json!([bash("env"), {"text": "done"}]))
            .settings(&settings)
            .environment(variables.map(|(variable, value)| (variable.to_owned(), value)))
            .mode(Mode::Auto)
            .build()
    };
    let (one, two) = (agent("one").await.unwrap(), agent("two").await.unwrap());
    for (agent, own, other) in [(&one, "one", "two"), (&two, "two", "one")] {
        let mut turn = agent.session().await.unwrap().prompt("go").await.unwrap();
        let output = outputs(&events(&mut turn).await.unwrap()).concat();
        assert!(output.contains(&format!("NAME={own}\n")), "{output}");
        for absent in [other, "key-", "CARGO_"] {
            assert!(!output.contains(absent), "{absent}: {output}");
        }
    }
    one.close().await.unwrap();
    two.close().await.unwrap();
}

#[tokio::test]
async fn library_changes_nothing_in_the_process() {
    let limit = || rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let state = || (limit().current, std::env::vars_os().collect::<Vec<_>>(), std::env::current_dir().unwrap());
    let before = state();
    let home = Home::new();
    let agent = builder(&home, json!([])).model_with(Echo).build().await.unwrap();
    let answer = agent.session().await.unwrap().prompt("hello").await.unwrap().finish().await.unwrap();
    assert!(answer.starts_with("heard: ") && answer.ends_with("hello"), "{answer}");
    agent.close().await.unwrap();
    assert!(before == state());
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}

/// The helper must be one: a program that does something else is recognized.
#[tokio::test]
async fn program_that_is_no_helper_is_refused() {
    let home = Home::new();
    for program in ["/bin/cat", "/bin/true", "/does/not/exist"] {
        let refused = Agent::builder(home.work()).helper(program).build().await.err().unwrap();
        assert_eq!(refused.kind, Kind::Unsupported, "{program}");
        assert!(refused.hint.unwrap().contains("nuncio::init()"));
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
async fn agent_serves_acp_to_a_client_in_the_program() {
    let home = Home::new();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let agent = builder(&home, json!([])).model_with(Echo).build().await.unwrap();
    let served = tokio::spawn(agent.serve_acp(input, output, CancellationToken::new()));
    let (input, output) = tokio::io::split(ours);
    let mut client = Client { input: BufReader::new(input), output, frames: Vec::new() };
    client.call("initialize", json!({"protocolVersion": 1})).await;
    let session = client.call("session/new", json!({"cwd": home.work(), "mcpServers": []})).await["sessionId"].clone();
    let prompt = json!([{"type": "text", "text": "hello"}]);
    let ended = client.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
    assert_eq!(ended["stopReason"], "end_turn", "{:#?}", client.frames);
    client.output.shutdown().await.unwrap();
    drop(client);
    bounded("the end", served).await.unwrap().unwrap();
}

#[tokio::test]
async fn agent_serves_http_in_the_program() {
    let home = Home::new();
    let agent = builder(&home, json!([])).model_with(Echo).build().await.unwrap();
    let session = agent.session().await.unwrap();
    let server = agent.listen("127.0.0.1:0").await.unwrap();
    let address = server.url().strip_prefix("http://").unwrap().parse().unwrap();
    let bridge = Bridge { address, token: server.token().into() };
    let path = format!("/v1/sessions/{}", session.id());
    bridge.with_token("wrong").get(&path).expect(401).await;
    assert_eq!(bridge.get(&path).expect(200).await["sessionId"], session.id().as_str());
    assert_eq!(agent.listen("0.0.0.0:0").await.err().unwrap().kind, Kind::InvalidParams);
    bounded("the end", server.stop()).await;
}
