//! Faults between the model and nuncio, end to end: a turn completes with each tool call run once,
//! or it fails with the cause. A failure that is the same again is repeated at most once.

use harness::provider::Protocol;
use serde_json::{Value, json};

use harness::provider::answers::{body, document, event_stream, gzip};
use harness::provider::{Exchange, KEY, Provider};
use harness::wires::{WIRES, Wire};
use harness::{Agent, Home, Site, text};

/// An answer with thinking, a text and two calls of `bash`, which append a line to a file each.
struct Answer {
    protocol: Protocol,
    events: Vec<String>,
    /// Number of events up to the end of the first call.
    first_call: usize,
}

impl Answer {
    fn new(wire: &Wire) -> Answer {
        let events = wire.rich.iter().map(|event| commands(event)).collect();
        Answer { protocol: wire.protocol, events, first_call: wire.first_call }
    }

    fn body(&self) -> String {
        body(&self.events)
    }

    /// The body with these events after the first call.
    fn with_events(&self, events: &[&str]) -> String {
        let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        body(&[&self.events[..self.first_call], &events].concat())
    }
}

/// Replaces the calls of `read` by commands.
fn commands(text: &str) -> String {
    let text = text.replace("\"read\"", "\"bash\"").replace("file_path", "command");
    ["a", "b"].iter().fold(text, |text, name| {
        let command = format!("echo {name} >> effects");
        let text = text.replace(&format!("\\\"{name}\\\""), &format!("\\\"{command}\\\""));
        text.replace(&format!(":\"{name}\""), &format!(":\"{command}\""))
    })
}

struct Fault {
    name: &'static str,
    response: fn(&Answer) -> Exchange,
    /// Number of requests until the answer is complete, if only the first response has the fault.
    recovers_after: usize,
    /// Number of requests, and cause and part of the message of the error, if all responses have
    /// the fault.
    fails: Option<(usize, &'static str, &'static str)>,
}

/// A fault that does not need a second request.
const fn harmless(name: &'static str, response: fn(&Answer) -> Exchange) -> Fault {
    Fault { name, response, recovers_after: 1, fails: None }
}

/// A fault that is probably the same again.
const fn deterministic(name: &'static str, response: fn(&Answer) -> Exchange, message: &'static str) -> Fault {
    Fault { name, response, recovers_after: 2, fails: Some((2, "invalid_answer", message)) }
}

/// A fault that ends by itself. Each request may be repeated many times.
const fn transient(name: &'static str, response: fn(&Answer) -> Exchange) -> Fault {
    Fault { name, response, recovers_after: 2, fails: None }
}

/// A status that asks the client to wait. The setting `retry.wait_s` is 0 if all responses have it.
const fn busy(name: &'static str, response: fn(&Answer) -> Exchange, cause: &'static str, message: &'static str) -> Fault {
    Fault { name, response, recovers_after: 2, fails: Some((1, cause, message)) }
}

fn status(status: u16, message: &str) -> Exchange {
    Exchange::error(status, &json!({"error": {"message": message}}).to_string()).header("retry-after", "0")
}

const FAULTS: &[Fault] = &[
    harmless("two events in one packet", |answer| {
        Exchange::new(200, "text/event-stream", answer.events.chunks(2).map(body).collect()).drip()
    }),
    harmless("all events in one packet", |answer| event_stream(answer.body())),
    harmless("one byte per packet", |answer| {
        let bytes = answer.body().bytes().map(|byte| vec![byte]).collect();
        Exchange::bytes(200, "text/event-stream", bytes).drip()
    }),
    harmless("byte order mark", |answer| event_stream(format!("\u{feff}{}", answer.body()))),
    harmless("CRLF", |answer| event_stream(answer.body().replace('\n', "\r\n"))),
    harmless("CR", |answer| event_stream(answer.body().replace('\n', "\r"))),
    harmless("comments and other fields", |answer| {
        event_stream(format!(": wait\n\n{}", answer.body().replace("data: ", ": wait\nid: 1\nevent: message\nretry\ndata:")))
    }),
    harmless("event stream as application/json", |answer| Exchange::new(200, "application/json", vec![answer.body()])),
    harmless("event stream as text/plain", |answer| Exchange::new(200, "text/plain", vec![answer.body()])),
    harmless("body until the connection ends", |answer| {
        Exchange::raw(format!("HTTP/1.0 200 OK\r\n\r\n{}", answer.body()).as_bytes())
    }),
    harmless("document", |answer| Exchange::new(200, "application/json", vec![commands(document(answer.protocol))])),
    harmless("gzip", |answer| event_stream(gzip(answer.body().as_bytes())).header("content-encoding", "gzip")),
    deterministic("malformed event at the start", |_| event_stream("data: {oops}\n\n"), "invalid event"),
    deterministic("malformed event after a call", |answer| event_stream(answer.with_events(&["{\"type\":", "7"])), "invalid event"),
    deterministic(
        "page",
        |_| Exchange::new(200, "text/html", vec!["<html>\n<title>Sign in</title>\n</html>".into()]),
        "the server sent text/html instead of an answer: <html> <title>Sign in</title> </html>",
    ),
    deterministic(
        "other document",
        |_| Exchange::error(200, r#"{"status":"ok"}"#),
        r#"application/json instead of an answer: {"status":"ok"}"#,
    ),
    deterministic("document with an error", |_| Exchange::error(200, r#"{"error":{"message":"It broke."}}"#), "It broke."),
    deterministic("empty answer", |_| event_stream(""), "the answer is empty"),
    deterministic("events of another protocol", |_| event_stream("data: {\"kind\":\"x\"}\n\n"), "no known event"),
    deterministic(
        "invalid gzip",
        |answer| event_stream(answer.body()).header("content-encoding", "gzip"),
        "the answer cannot be decompressed",
    ),
    deterministic(
        "other compression",
        |answer| event_stream(answer.body()).header("content-encoding", "br"),
        "compressed with br, which is not supported",
    ),
    deterministic("no HTTP", |_| Exchange::raw(b"SSH-2.0-OpenSSH_9.6\r\n"), "sent no HTTP response"),
    transient("cut before the head", |_| Exchange::raw(b"")),
    transient("cut in the head", |_| Exchange::raw(b"HTTP/1.1 200 OK\r\ncontent-")),
    transient("cut after a call", |answer| event_stream(answer.with_events(&[])).cut()),
    transient("regular end after a call", |answer| event_stream(answer.with_events(&[]))),
    transient("incomplete gzip", |answer| {
        let mut bytes = gzip(answer.body().as_bytes());
        bytes.truncate(bytes.len() / 2);
        event_stream(bytes).header("content-encoding", "gzip")
    }),
    transient("incomplete document", |answer| {
        let document = document(answer.protocol);
        Exchange::error(200, &document[..document.len() - 20])
    }),
    busy("429", |_| status(429, "Slow down"), "rate_limit", "too many requests (HTTP 429): Slow down"),
    busy("500", |_| status(500, "It broke."), "other", "the request failed (HTTP 500): It broke."),
    busy("529", |_| status(529, "Overloaded"), "overloaded", "the server is overloaded or not ready (HTTP 529): Overloaded"),
];

/// A home with `settings` and a provider with these exchanges.
async fn start(wire: &Wire, exchanges: Vec<Exchange>, settings: &str) -> (Home, Provider) {
    let (home, provider, _) = harness::provider::session::home(wire, exchanges).await;
    home.config(&format!("{}{settings}", home.config_text()));
    (home, provider)
}

async fn connect(home: &Home) -> (Agent, String) {
    let mut agent = home.start(&["--thinking", "low", "--mode", "auto"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(home).await;
    (agent, session)
}

/// The lines that the commands have written.
fn effects(home: &Home) -> Vec<String> {
    let mut lines: Vec<String> = home.get("effects").unwrap_or_default().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Only the first response has the fault.
async fn recovers(wire: &Wire, fault: &Fault) {
    let answer = Answer::new(wire);
    let mut exchanges = vec![(fault.response)(&answer)];
    exchanges.extend((fault.recovers_after > 1).then(|| event_stream(answer.body())));
    exchanges.push(Exchange::events(wire.plain));
    let what = format!("{}: {}", wire.model, fault.name);
    let (home, provider) = start(wire, exchanges, "").await;
    let (mut agent, session) = connect(&home).await;
    let id = agent.prompt(&session, "go").await;
    let ended = agent.answer(&id).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(ended["stopReason"], "end_turn", "{what}");
    // The replay omits discarded text.
    let replayed = agent.load(&home, &session).await;
    agent.finish().await;
    assert_eq!(text(&replayed, "agent_message_chunk"), "Reading.Hello", "{what}");
    assert_eq!(effects(&home), ["a", "b"], "{what}");
    assert_eq!(provider.finish().await.len(), fault.recovers_after + 1, "{what}");
}

/// All responses have the fault. Returns the error.
async fn fails(wire: &Wire, fault: &Fault, (requests, cause, message): (usize, &str, &str)) {
    let what = format!("{}: {}", wire.model, fault.name);
    let (home, provider) = start(wire, Vec::new(), "[retry]\nwait_s = 0\n").await;
    provider.otherwise((fault.response)(&Answer::new(wire)));
    let (mut agent, session) = connect(&home).await;
    let id = agent.prompt(&session, "go").await;
    let error: Value = agent.answer(&id).await.expect_err(&what);
    agent.finish().await;
    assert_eq!(error["data"]["info"]["cause"], cause, "{what}: {error}");
    assert!(error["message"].as_str().unwrap().contains(message), "{what}: {error}");
    assert!(!error.to_string().contains(KEY), "{what}: {error}");
    assert_eq!(effects(&home), [""; 0], "{what}");
    assert_eq!(provider.finish().await.len(), requests, "{what}: {error}");
}

async fn every_fault(wire: &Wire) {
    for fault in FAULTS {
        recovers(wire, fault).await;
        if let Some(expected) = fault.fails {
            fails(wire, fault, expected).await;
        }
    }
}

#[tokio::test]
async fn faults_neither_lose_turns_nor_double_calls_anthropic() {
    every_fault(&WIRES[0]).await;
}

#[tokio::test]
async fn faults_neither_lose_turns_nor_double_calls_openai_chat() {
    every_fault(&WIRES[1]).await;
}

#[tokio::test]
async fn faults_neither_lose_turns_nor_double_calls_openai_responses() {
    every_fault(&WIRES[2]).await;
}

#[tokio::test]
async fn faults_neither_lose_turns_nor_double_calls_gemini() {
    every_fault(&WIRES[3]).await;
}

/// The key is never sent to the target of a redirect.
#[tokio::test]
async fn redirect_is_reported_and_not_followed() {
    for (wire, status) in WIRES.iter().zip(["301", "302", "307", "308"]) {
        let target = Site::start().await;
        let response =
            format!("HTTP/1.1 {status} X\r\nlocation: {}?token=secret\r\ncontent-length: 0\r\n\r\n", target.url("/v2/x"));
        let (home, provider) = start(wire, Vec::new(), "").await;
        provider.otherwise(Exchange::raw(response.as_bytes()));
        let (mut agent, session) = connect(&home).await;
        let id = agent.prompt(&session, "go").await;
        let error = agent.answer(&id).await.expect_err("a redirect").to_string();
        agent.finish().await;
        assert!(error.contains(&format!("redirects to {} (HTTP {status})", target.url("/v2/x"))), "{error}");
        assert!(error.contains("base_url") && error.contains("bad_request") && !error.contains("secret"), "{error}");
        assert_eq!((provider.finish().await.len(), target.asked().len()), (1, 0), "{error}");
    }
}
