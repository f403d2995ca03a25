//! Telemetry of the HTTP server: Prometheus metrics, one log line per request, traces. No telemetry
//! contains secrets.

use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

use harness::limits;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use harness::{Ask, Bridge, Collector, Home};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// One step that runs a command, and one step with only text.
fn steps() -> Value {
    json!([{"text": "one", "tool_calls": [{"name": "bash", "input": {"command": "true"}}]}, {"text": "two"}])
}

/// Values of the metrics, keyed by name with labels.
async fn metrics(bridge: &Bridge) -> HashMap<String, f64> {
    let answer = bridge.get("/metrics").send().await;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!((answer.status, answer.header("content-type")), (200, Some(media)), "{answer:?}");
    assert!(answer.body.ends_with("# EOF\n"), "{}", answer.body);
    let values = answer.body.lines().filter(|line| !line.starts_with('#'));
    values.map(|line| line.rsplit_once(' ').unwrap()).map(|(name, value)| (name.into(), value.parse().unwrap())).collect()
}

#[tokio::test]
async fn metrics_count_turns_tools_and_requests() {
    let home = Home::new();
    let server = home.serve_script(steps(), &["--mode", "auto"]).await;
    for ask in [server.get("/metrics").without("authorization"), server.get("/metrics").header("authorization", "Bearer x")] {
        assert_eq!(ask.send().await.error(), (401, "unauthenticated".into()));
    }
    assert_eq!(metrics(&server).await["nuncio_http_streams"], 0.0);
    let session = server.new_session(&home).await;
    let mut events = server.follow(&session).events().await;
    server.prompt(&session, "go").expect(200).await;
    server.post(&format!("/v1/sessions/{session}/cancel"), &json!({})).expect(200).await;
    events.until("turn.completed").await;

    let told = metrics(&server).await;
    for (name, value) in [
        ("nuncio_turns_total{outcome=\"completed\"}", 1.0),
        ("nuncio_tool_seconds_count{kind=\"execute\",status=\"completed\"}", 1.0),
        ("nuncio_turns_running", 0.0),
        ("nuncio_sessions_open", 1.0),
        ("nuncio_log_queue", 0.0),
        ("nuncio_http_streams", 1.0),
        ("nuncio_http_requests_total{method=\"POST\",route=\"/v1/sessions/{sessionId}/prompt\",status=\"200\"}", 1.0),
        ("nuncio_http_requests_total{method=\"GET\",route=\"/metrics\",status=\"200\"}", 1.0),
    ] {
        assert_eq!(told.get(name), Some(&value), "{name} in {told:#?}");
    }
    for (name, least) in [
        ("nuncio_tokens_total{kind=\"output\"}", 1.0),
        ("nuncio_http_connections", 2.0),
        ("nuncio_resident_memory_bytes", 1e6),
        ("nuncio_events_total", 5.0),
        ("nuncio_http_request_seconds_count", 5.0),
    ] {
        assert!(told.get(name).is_some_and(|value| *value >= least), "{name} in {told:#?}");
    }
    server.stop().await;
}

/// Names invented by clients create no new metric series.
#[tokio::test]
async fn invented_names_create_no_metric_series() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let strange = async |round: u32| {
        for ask in [
            server.get(&format!("/made/up/{round}")),
            server.get(&format!("/v1/sessions/nobody{round}?a={round}")),
            server.get(&format!("/v1/sessions/%2e%2e{round}")),
            server.ask(&format!("BREW{round}"), "/v1/sessions"),
            server.ask(&format!("BREW{round}"), &format!("/made/up/{round}")),
            server.get(&format!("/made/{round}")).without("authorization"),
            server.get("/v1/sessions").header("host", &format!("host{round}.example")),
        ] {
            assert!(ask.send().await.status >= 400, "{ask:?}");
        }
        metrics(&server).await.into_keys().collect::<BTreeSet<String>>()
    };
    metrics(&server).await;
    let first = strange(1).await;
    assert_eq!(strange(2).await, first);
    assert!(!first.iter().any(|name| name.contains("made") || name.contains("BREW") || name.contains("nobody")), "{first:#?}");
    server.stop().await;
}

#[tokio::test]
async fn traces_continue_the_trace_of_the_caller() {
    let home = Home::new();
    let collector = Collector::start().await;
    home.config(&format!("[telemetry]\notlp_endpoint = \"http://{}\"\n", collector.address));
    let server = home.serve_script(steps(), &["--mode", "auto"]).await;
    let session = server.new_session(&home).await;
    let prompt = server.prompt(&session, "a secret of ours").header("traceparent", &format!("00-{TRACE}-{PARENT}-01"));
    prompt.expect(200).await;
    server.stop().await;

    let requests = collector.requests();
    assert!(!requests.is_empty() && requests.iter().all(|request| request.path == "/v1/traces"), "{requests:?}");
    let spans: Vec<_> = requests.iter().flat_map(|request| request.spans()).collect();
    let ours: Vec<_> = spans.iter().filter(|span| span.trace == TRACE).collect();
    let mut names: Vec<&str> = ours.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["model", "model", "request", "tool", "turn"], "{spans:#?}");
    let find = |name: &str| ours.iter().find(|span| span.name == name).unwrap();
    assert_eq!(find("request").parent, PARENT);
    assert_eq!(find("turn").parent, find("request").id);
    assert_eq!(find("model").parent, find("turn").id);
    assert_eq!(find("tool").parent, find("turn").id);
    // Requests without a `traceparent` header have their own traces.
    assert!(spans.iter().any(|span| span.name == "request" && span.trace != TRACE), "{spans:#?}");
    for secret in ["a secret of ours", &home.token()] {
        let shows = |body: &[u8]| body.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!requests.iter().any(|request| shows(&request.body)), "{secret} was sent");
    }
}

/// A collector that accepts connections and never answers delays only the exit, for a bounded time.
#[tokio::test]
async fn hanging_collector_delays_only_the_exit() {
    let home = Home::new();
    let hung = TcpListener::bind("127.0.0.1:0").await.unwrap();
    home.config(&format!("[telemetry]\notlp_endpoint = \"http://{}\"\n", hung.local_addr().unwrap()));
    let server = home.serve_script(json!([]), &[]).await;
    let session = server.new_session(&home).await;
    let started = Instant::now();
    for _ in 0..10 {
        server.prompt(&session, "go").expect(200).await;
    }
    let took = started.elapsed();
    assert!(took < 10 * limits::TRACES_SENT, "ten turns took {took:?}");
    let started = Instant::now();
    server.stop().await;
    let took = started.elapsed();
    assert!(took < 3 * limits::TRACES_SENT, "the end took {took:?}");
}

/// The log has one line per request and no secrets, at every log level.
#[tokio::test]
async fn log_has_one_line_per_request_and_no_secrets() {
    for level in ["", "trace", "trace,nuncio=trace,hyper=trace,jsonrpsee=trace,jsonrpsee_server=trace,soketto=trace"] {
        let home = Home::new();
        if !level.is_empty() {
            home.env("NUNCIO_LOG", level);
        }
        let server = home.serve_script(steps(), &["--mode", "auto"]).await;
        let token = server.token.clone();
        let session = server.new_session(&home).await;
        let key = |ask: Ask| ask.header("idempotency-key", "secret-key");
        let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": "secret-rpc"}]}});
        let mut expected = Vec::new();
        for (ask, method, route, status, principal) in [
            (key(server.prompt(&session, "secret-prompt")), "POST", "/v1/sessions/{sessionId}/prompt", 200, "owner"),
            (server.get("/v1/sessions?cursor=secret-query"), "GET", "/v1/sessions", 400, "owner"),
            (server.get("/v1/status?secret-query=x"), "GET", "/v1/status", 400, "owner"),
            (server.get("/health").without("authorization"), "GET", "/health", 200, "nobody"),
            (server.get("/v1/sessions").header("authorization", "Bearer secret-token"), "GET", "/v1/sessions", 401, "nobody"),
            (server.post("/rpc", &rpc), "POST", "/rpc", 200, "owner"),
        ] {
            let answer = ask.send().await;
            assert_eq!(answer.status, status, "{answer:?}");
            expected.push((answer.header("x-request-id").unwrap().to_string(), method, route, status, principal));
        }
        let mut socket = server.socket().await;
        socket
            .call("_nuncio/session/message", json!({"sessionId": session, "parts": [{"type": "text", "text": "secret-ws"}]}))
            .await;
        drop(socket);
        let said = server.stop().await;

        let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}")));
        let told: Vec<Value> = lines.map(|line| line["fields"].clone()).filter(|fields| fields["message"] == "request").collect();
        for (id, method, route, status, principal) in expected {
            let of_it: Vec<&Value> = told.iter().filter(|fields| fields["id"] == id).collect();
            let [line] = of_it.as_slice() else { panic!("{} lines of {method} {route}: {told:#?}", of_it.len()) };
            let is = (&line["method"], &line["route"], &line["status"], &line["principal"]);
            assert_eq!(is, (&json!(method), &json!(route), &json!(status), &json!(principal)));
            assert!(line["ms"].is_f64(), "{line}");
        }
        for secret in [token.as_str(), "secret-"] {
            let shown: Vec<&str> = said.lines().filter(|line| line.contains(secret)).collect();
            assert!(shown.is_empty(), "NUNCIO_LOG={level} shows {secret}: {}", shown.join("\n"));
        }
    }
}
