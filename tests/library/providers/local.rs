//! Local servers: without settings they are used only after identification, with a notice. Their
//! properties of a model are used in any case.

use harness::provider::Protocol;
use nuncio::internal::model::catalog;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use harness::provider::session::{LOCAL, connect};
use harness::provider::{Exchange, KEY, Provider, ReceivedRequest};
use harness::wires::{WIRES, Wire};
use harness::{CommandResult, Home, notices};

/// A server in tests/library/cases/local_servers.jsonl.
#[derive(Deserialize)]
struct Server {
    name: String,
    provider: String,
    model: String,
    window: u64,
    /// The reported window for the OpenAI API, if it differs. 0: not reported.
    openai_window: Option<u64>,
    tools: bool,
    pages: Map<String, Value>,
}

fn servers() -> Vec<Server> {
    let lines = include_str!("../cases/local_servers.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn chat() -> &'static Wire {
    &WIRES[1]
}

fn ollama() -> &'static Wire {
    WIRES.iter().find(|wire| wire.protocol == Protocol::Ollama).unwrap()
}

/// A home where the local servers have these addresses.
fn home_with<'a>(address: impl Fn(&str) -> &'a str) -> Home {
    let home = Home::new();
    let provider = |name| format!("[providers.{name}]\nbase_url = \"{}/v1\"\napi_key_env = \"LOCAL_KEY\"\n", address(name));
    home.config(&LOCAL.map(provider).concat());
    home.env("LOCAL_KEY", KEY);
    home
}

impl Server {
    fn wire(&self) -> &'static Wire {
        if self.provider == "ollama" { ollama() } else { chat() }
    }

    async fn start(&self, answers: Vec<Exchange>) -> Provider {
        self.start_with(self.wire(), answers).await
    }

    async fn start_with(&self, wire: &Wire, answers: Vec<Exchange>) -> Provider {
        let server = Provider::start(wire.protocol, answers).await;
        self.pages.iter().for_each(|(path, page)| server.page(path, 200, &page.to_string()));
        server
    }

    /// A home where this server has the default address of its provider, and no other server runs.
    fn home(&self, server: &Provider) -> Home {
        home_with(|name| if name == self.provider { &server.base_url } else { "http://127.0.0.1:1" })
    }

    fn id(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

fn hello(wire: &Wire) -> Exchange {
    Exchange::events(wire.plain)
}

fn tools(received: &ReceivedRequest) -> usize {
    received.body["tools"].as_array().map_or(0, Vec::len)
}

/// The context windows in the `usage.updated` events of a session.
async fn windows(home: &Home, session: &str) -> Vec<u64> {
    let log = home.log(session).await;
    let usage = log.iter().filter(|event| event["body"]["type"] == "usage.updated");
    usage.map(|event| event["body"]["contextWindow"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn local_server_is_used_with_its_properties() {
    for case in servers() {
        let name = &case.name;
        let server = case.start(vec![hello(case.wire()); 3]).await;
        let home = case.home(&server);
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        // Lists of models are requested in the background.
        assert!(server.asked().iter().all(|asked| asked == "GET /v1/models"), "{name}: {:?}", server.asked());
        let mut expected = vec![format!("Using {}", case.id())];
        expected.extend((!case.tools).then(|| format!("{} cannot call tools", case.id())));
        assert_eq!(notices(&agent.turn(&session, "hi").await.1), expected, "{name}");
        assert_eq!(notices(&agent.turn(&session, "again").await.1), [""; 0], "{name}");
        agent.finish().await;
        assert_eq!(windows(&home, &session).await, [case.window; 2], "{name}");

        let doctor = home.run(&["doctor"], "").await;
        let line = doctor.stdout.lines().find(|line| line.contains(" model ")).unwrap_or_else(|| panic!("{name}: {doctor:?}"));
        let without = if case.tools { "" } else { "; its chat template has no tools" };
        let details =
            format!("({}; {} tokens{without}): answers", format_args!("a local server at {}/v1", server.base_url), case.window);
        assert!(line.starts_with("ok ") && line.ends_with(&format!("{} {details}", case.id())), "{name}: {line}");
        assert!(server.asked().iter().all(|asked| asked.starts_with("GET ") || asked == "POST /api/show"), "{name}");
        for received in &server.finish().await[..2] {
            assert_eq!(tools(received) > 0, case.tools, "{name}");
            if case.provider == "ollama" {
                assert_eq!(
                    (received.path.as_str(), &received.body["options"]["num_ctx"]),
                    ("/api/chat", &json!(case.window)),
                    "{name}"
                );
            }
        }
    }
}

#[tokio::test]
async fn properties_of_configured_server_are_used() {
    for case in servers() {
        let name = &case.name;
        let id = format!("mine/{}", case.model);
        for (setting, window) in [("", case.openai_window.unwrap_or(case.window)), ("context_window = 1234\n", 1234)] {
            let server = case.start_with(chat(), vec![hello(chat())]).await;
            let home = Home::new();
            let base_url = &server.base_url;
            home.config(&format!("[providers.mine]\nbase_url = \"{base_url}/v1\"\napi_key_env = \"LOCAL_KEY\"\n{setting}"));
            home.env("LOCAL_KEY", KEY);
            let ran = home.run(&["run", "--json", "--model", &id, "hi"], "").await;
            let windows: Vec<Value> =
                ran.lines().iter().map(|event| event["body"]["contextWindow"].clone()).filter(|w| !w.is_null()).collect();
            let window = if window > 0 { window } else { catalog::properties(&id).limits.context_window.unwrap_or(128_000) };
            assert_eq!(windows, [window], "{name}: {ran:?}");
            assert_eq!(tools(&server.finish().await[0]) > 0, case.tools, "{name}");
        }
    }
}

/// The server loads the model at the first turn, and restarts with another window after the second.
#[tokio::test]
async fn properties_are_asked_again_after_a_failure() {
    let case = &servers()[0];
    let loading = r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#;
    let server = case.start(vec![hello(chat()), Exchange::error(503, loading), hello(chat())]).await;
    server.page("/v1/models", 503, loading);
    let home = case.home(&server);
    home.config(&format!("model = \"{}\"\n{}", case.id(), home.config_text()));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "hi").await;
    server.page("/v1/models", 200, &case.pages["/v1/models"].to_string());
    agent.turn(&session, "again").await;
    agent.finish().await;
    assert_eq!(windows(&home, &session).await, [32_768, case.window]);
    server.finish().await;
}

/// The server stops after the first turn, and starts with another window during the second.
#[tokio::test]
async fn properties_are_asked_again_after_a_restart() {
    let case = &servers()[0];
    let server = case.start(vec![hello(chat())]).await;
    let home = case.home(&server);
    let address = server.base_url.trim_start_matches("http://").to_owned();
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "hi").await;
    server.finish().await;
    let id = agent.prompt(&session, "again").await;
    agent.until_update("notice").await;
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let server = Provider::serve(listener, chat().protocol, vec![hello(chat())]);
    server.page("/v1/models", 200, &case.pages["/v1/models"].to_string());
    server.page("/props", 200, r#"{"default_generation_settings":{"n_ctx":5120}}"#);
    agent.answer(&id).await.unwrap();
    agent.finish().await;
    assert_eq!(windows(&home, &session).await, [case.window, 5120]);
    server.finish().await;
}

/// The body of the request of `run` with a model on Ollama, which can think.
async fn ollama_body(model: &str, settings: &str, flags: &[&str]) -> Value {
    let wire = if settings.contains("openai-chat") { chat() } else { ollama() };
    let server = Provider::start(wire.protocol, vec![hello(wire)]).await;
    let show = json!({"capabilities": ["completion", "tools", "thinking"], "model_info": {"x.context_length": 65_536}});
    server.page("/api/show", 200, &show.to_string());
    let home = Home::new();
    home.env("OLLAMA_HOST", &server.base_url);
    home.env("OLLAMA_API_KEY", KEY);
    home.config(settings);
    let ran = home.run(&[&["run", "--model", &format!("ollama/{model}"), "hi"], flags].concat(), "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hello\n"), "{ran:?}");
    server.finish().await.remove(0).body
}

#[tokio::test]
async fn parameters_of_ollama_depend_on_settings_and_model() {
    let level = |level| ["--thinking", level];
    for (model, settings, thinking, think) in [
        ("qwen3", "", "off", json!(false)),
        ("qwen3", "", "low", json!(true)),
        ("qwen3", "", "high", json!(true)),
        ("gpt-oss:20b", "", "off", json!("low")),
        ("gpt-oss:20b", "", "medium", json!("medium")),
        ("gpt-oss:20b", "", "max", json!("high")),
        ("qwen3", "[models.\"ollama/qwen3\".thinking]\nhigh = \"max\"\n", "high", json!("max")),
    ] {
        let body = ollama_body(model, settings, &level(thinking)).await;
        assert_eq!((&body["think"], &body["options"]["num_ctx"]), (&think, &json!(32768)), "{model} {thinking}");
    }
    let settings = "[providers.ollama]\ncontext_window = 12345\nmax_output_tokens = 99\n";
    assert_eq!(ollama_body("qwen3", settings, &[]).await["options"], json!({"num_ctx": 12345, "num_predict": 99}));
    let settings = "[models.\"ollama/*\"]\ncontext_window = 70000\nmax_output_tokens = 99\nbody = { options = { temperature = 0.5 }, keep_alive = \"1h\" }\n";
    let body = ollama_body("qwen3", settings, &[]).await;
    assert_eq!(
        (&body["options"], &body["keep_alive"]),
        (&json!({"num_ctx": 70000, "num_predict": 99, "temperature": 0.5}), &json!("1h"))
    );
    let body = ollama_body("qwen3", "[providers.ollama]\nprotocol = \"openai-chat\"\n", &level("low")).await;
    assert_eq!((body["reasoning_effort"].is_string(), &body["options"]), (true, &Value::Null));
}

#[tokio::test]
async fn setting_precedes_reported_tools() {
    let case = servers().into_iter().find(|case| !case.tools).unwrap();
    for (abilities, expected) in [("[\"tools\"]", true), ("[]", false)] {
        let server = case.start(vec![hello(case.wire())]).await;
        let home = case.home(&server);
        home.config(&format!("{}[models.\"*\"]\nabilities = {abilities}\n", home.config_text()));
        let ran = home.run(&["run", "hi"], "").await;
        assert_eq!(ran.stderr.contains("cannot call tools"), !expected, "{ran:?}");
        let mut agent = home.start(&[]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let session = agent.new_session(&home).await;
        let report = agent.call("_nuncio/session/context", json!({ "sessionId": session })).await;
        assert_eq!(report["sources"]["tools"].as_u64().unwrap() > 0, expected, "{report}");
        agent.finish().await;
        assert_eq!(tools(&server.finish().await[0]) > 0, expected, "{abilities}");
    }
}

#[tokio::test]
async fn missing_key_of_local_server_is_named() {
    let case = &servers()[0];
    let refused = r#"{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}"#;
    for (model, hint) in [("llamacpp/x", "set LLAMA_API_KEY"), ("mine/x", "set api_key_env")] {
        let server = case.start(vec![]).await;
        server.page("/v1/chat/completions", 401, refused);
        let home = Home::new();
        let base_url = format!("{}/v1", server.base_url);
        for command in [&["run", "hi"][..], &["doctor"]] {
            let ran = home.run(&[command, &["--model", model, "--base-url", &base_url]].concat(), "").await;
            assert!(ran.code != 0 && (ran.stderr + &ran.stdout).contains(hint), "{command:?}");
        }
    }
}

#[tokio::test]
async fn local_server_is_reported_by_run() {
    let case = &servers()[0];
    let server = case.start(vec![hello(chat())]).await;
    let ran = case.home(&server).run(&["run", "hi"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hello\n"), "{ran:?}");
    assert!(ran.stderr.contains(&case.id()) && ran.stderr.contains(&server.base_url), "{ran:?}");
    server.finish().await;

    // `--base-url` is the only address of the search.
    let server = case.start(vec![hello(chat())]).await;
    let home = Home::new();
    home.env("LLAMA_API_KEY", KEY);
    let ran = home.run(&["run", "--base-url", &format!("{}/v1", server.base_url), "hi"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hello\n"), "{ran:?}");
    server.finish().await;
}

/// Other services at the port of a model server.
#[tokio::test]
async fn prompt_is_not_sent_to_unidentified_local_server() {
    let model = json!({"id": "qwen3", "object": "model", "owned_by": "library"});
    let version = r#"{"version":"1.0"}"#;
    let strangers: Vec<(&str, String, Option<&str>)> = vec![
        ("HTML", "<!doctype html><h1>It works</h1>".into(), None),
        ("an empty object", "{}".into(), Some(version)),
        ("an empty list", r#"{"object":"list","data":[]}"#.into(), Some(version)),
        ("another JSON", r#"{"data":[{"id":"user-1","name":"Ann"}],"total":1}"#.into(), Some(version)),
        ("ids of another API", r#"{"object":"list","data":[{"id":"cus_1","object":"customer"}]}"#.into(), Some(version)),
        ("a list of models without the mark of the server", json!({"object": "list", "data": [model]}).to_string(), None),
        ("something that is all of that in text", format!("\"{}\"", "data id model list".repeat(10)), Some(version)),
        ("without end", format!("{{\"object\":\"list\",\"data\":[{}", " ".repeat(8 << 20)), Some(version)),
    ];
    for (what, list, version) in strangers {
        let server = Provider::start(chat().protocol, vec![]).await;
        server.page("/v1/models", 200, &list);
        version.iter().for_each(|version| server.page("/api/version", 200, version));
        let ran: CommandResult = home_with(|_| &server.base_url).run(&["run", "a secret plan"], "").await;
        assert_eq!(ran.code, 3, "{what}: {ran:?}");
        assert!(server.asked().iter().all(|asked| asked.starts_with("GET ")), "{what}: {:?}", server.asked());
        assert_eq!(server.finish().await.len(), 0, "{what}: {ran:?}");
    }
}
