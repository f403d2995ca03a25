//! `nuncio sessions requests`: prints each request byte for byte as the provider received it.

use serde_json::{Value, json};

use harness::provider::session::{connect, home};
use harness::provider::{Exchange, KEY, Protocol, Provider, ReceivedRequest};
use harness::wires::{WIRES, Wire};
use harness::{CommandResult, Home};

use harness::images::png;

/// The part of a request that the provider refuses.
const REFUSED: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The requests of a session, in order: the turn and the number of each.
async fn logged(home: &Home, session: &str) -> Vec<(String, String)> {
    let log = home.log(session).await;
    let started = log.iter().filter(|event| event["body"]["type"] == "step.started");
    started.map(|event| (event["turnId"].as_str().unwrap().to_owned(), event["body"]["step"].to_string())).collect()
}

async fn printed(home: &Home, session: &str, more: &[&str]) -> CommandResult {
    home.run(&[&["sessions", "requests", session], more].concat(), "").await
}

/// Asserts that a printed request is a received one.
fn assert_sent(case: &str, printed: &CommandResult, base_url: &str, received: &ReceivedRequest) {
    assert_eq!(printed.code, 0, "{case}: {printed:?}");
    let (head, body) = printed.stdout.split_once("\n\n").expect("a head and a body");
    assert!(body.trim_end_matches('\n') == received.text, "{case}:\n{body}\n{}", received.text);
    let mut head = head.lines();
    let host = base_url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    assert_eq!(head.next(), Some(format!("POST {host}{}", received.path).as_str()), "{case}");
    let mut masked = 0;
    for line in head {
        let (name, value) = line.split_once(": ").expect("a header");
        let sent = received.header(name).unwrap_or_else(|| panic!("{case}: {name} was not sent"));
        match value {
            "[key]" => masked += 1,
            value => assert_eq!(sent, value, "{case}: {name}"),
        }
    }
    assert!(masked > 0 && !printed.stdout.contains(KEY), "{case}: {}", printed.stdout);
}

/// Compares all requests of a session with those that the provider accepted.
async fn assert_all_sent(case: &str, home: &Home, session: &str, base_url: &str, received: &[&ReceivedRequest]) {
    let steps = logged(home, session).await;
    assert_eq!(steps.len(), received.len(), "{case}");
    for ((turn, step), received) in steps.iter().zip(received) {
        let printed = printed(home, session, &["--turn", turn, "--step", step]).await;
        assert_sent(&format!("{case}, {turn} {step}"), &printed, base_url, received);
    }
    let last = printed(home, session, &[]).await;
    assert_sent(&format!("{case}, last"), &last, base_url, received.last().unwrap());
}

async fn prompt(agent: &mut harness::Agent, session: &str, text: &str, image: Option<&str>) {
    let image = image.map(|data| json!({ "type": "image", "mimeType": "image/png", "data": data }));
    let parts: Vec<Value> = [json!({ "type": "text", "text": text })].into_iter().chain(image).collect();
    let answer = agent.call("session/prompt", json!({ "sessionId": session, "prompt": parts })).await;
    assert_eq!(answer["stopReason"], "end_turn", "{text}");
}

fn events(wire: &Wire, events: &[&str]) -> Exchange {
    match wire.protocol {
        Protocol::Ollama => Exchange::new(200, "application/x-ndjson", events.iter().map(|line| format!("{line}\n")).collect()),
        _ => Exchange::events(events),
    }
}

fn stored_bytes(home: &Home, session: &str) -> u64 {
    let stored = std::fs::read_dir(home.data().join("requests").join(session)).unwrap();
    stored.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// A session with retries, calls, a large image, a refused image, a compaction, a mode, a restart
/// after kill -9 and a fork.
#[tokio::test]
async fn each_request_is_shown_as_it_was_sent() {
    for wire in WIRES {
        let (home, provider, name) = home(wire, Vec::new()).await;
        let mut received = 0;
        provider.respond(move |request| {
            received += 1;
            match received {
                1 => Exchange::error(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "0"),
                2 => events(wire, wire.rich),
                _ if request.text.contains(REFUSED) => Exchange::error(400, r#"{"error":{"message":"Could not process image"}}"#),
                _ => events(wire, wire.plain),
            }
        });
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        prompt(&mut agent, &session, "read a and b", Some(&png(2500, 3, false))).await;
        prompt(&mut agent, &session, "look", Some(REFUSED)).await;
        agent.call("session/set_mode", json!({ "sessionId": session, "modeId": "plan" })).await;
        prompt(&mut agent, &session, "and now?", None).await;
        agent.kill().await;
        let mut agent = connect(&home).await;
        agent.load(&home, &session).await;
        prompt(&mut agent, &session, "again", None).await;
        prompt(&mut agent, &session, "/compact the colors", None).await;
        prompt(&mut agent, &session, "after it", None).await;
        let fork = agent.call("session/fork", json!({ "sessionId": session, "cwd": home.work(), "mcpServers": [] })).await;
        let fork = fork["sessionId"].as_str().unwrap().to_owned();
        prompt(&mut agent, &fork, "forked", None).await;
        agent.finish().await;

        let base_url = provider.base_url.clone();
        let received = provider.finish_unchecked().await;
        let accepted: Vec<&ReceivedRequest> = received.iter().filter(|received| !received.text.contains(REFUSED)).collect();
        assert!(received.len() > accepted.len(), "{name}: an image was refused");
        let (of_fork, of_session) = accepted.split_last().unwrap();
        assert_all_sent(&name, &home, &session, &base_url, of_session).await;
        let with_copied: Vec<&ReceivedRequest> = of_session.iter().copied().chain([*of_fork]).collect();
        assert_all_sent(&format!("{name}, fork"), &home, &fork, &base_url, &with_copied).await;

        // The prompt and the tools are stored once.
        let bytes = stored_bytes(&home, &session);
        assert!(bytes < 32 << 10, "{name}: {bytes} bytes");
    }
}

fn chat() -> &'static Wire {
    WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiChat).expect("a wire")
}

/// The messages of this request are not those of the log.
#[tokio::test]
async fn request_that_a_hook_changed_is_shown_as_it_was_sent() {
    let wire = chat();
    let (home, provider, name) = home(wire, Vec::new()).await;
    let script = r#"sed -e 's/.*"messages":\(.*\)}/{"messages":\1}/' -e 's/tops3cret/REDACTED/g'"#;
    let hook = format!("[[hooks]]\nevent = \"prompt.messages.transform\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n");
    home.config(&format!("{}{hook}", home.config_text()));
    provider.otherwise(events(wire, wire.plain));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    prompt(&mut agent, &session, "the password is tops3cret", None).await;
    prompt(&mut agent, &session, "/compact", None).await;
    prompt(&mut agent, &session, "next", None).await;
    agent.finish().await;
    let base_url = provider.base_url.clone();
    let received = provider.finish().await;
    let received: Vec<&ReceivedRequest> = received.iter().collect();
    assert!(received[0].text.contains("REDACTED"));
    // A changed message is stored once, not with each request.
    let stored = std::fs::read_dir(home.data().join("requests").join(&session)).unwrap();
    let texts = stored.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    assert_eq!(texts.filter(|text| text.contains("REDACTED")).count(), 1);
    assert_all_sent(&name, &home, &session, &base_url, &received).await;
}

/// A request that is still running in another process, and one that no attempt repaired.
#[tokio::test]
async fn running_and_failed_requests_are_shown() {
    let wire = chat();
    let (home, provider, name) = home(wire, vec![events(wire, &wire.plain[..2]).hang()]).await;
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let id = agent.prompt(&session, "wait").await;
    agent.until_update("agent_message_chunk").await;
    let running = printed(&home, &session, &[]).await;
    agent.notify("session/cancel", json!({ "sessionId": session })).await;
    agent.answer(&id).await.unwrap();
    agent.finish().await;
    let base_url = provider.base_url.clone();
    assert_sent(&name, &running, &base_url, &provider.finish().await[0]);

    let provider = Provider::start(wire.protocol, Vec::new()).await;
    let settings = home.config_text().replace(&base_url, &provider.base_url);
    home.config(&settings);
    provider.respond(|_| Exchange::error(400, r#"{"error":{"message":"Could not process image"}}"#));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let image = json!({ "type": "image", "mimeType": "image/png", "data": REFUSED });
    let refused = agent.request("session/prompt", json!({ "sessionId": session, "prompt": [image] })).await;
    assert!(refused.is_err(), "{refused:?}");
    agent.finish().await;
    let base_url = provider.base_url.clone();
    let received = provider.finish_unchecked().await;
    assert!(received.len() > 1, "a repair was tried");
    assert_sent("failed", &printed(&home, &session, &[]).await, &base_url, received.last().unwrap());
}

/// Secrets in headers and in the query are neither shown nor stored.
#[tokio::test]
async fn keys_in_headers_and_queries_are_masked() {
    let wire = chat();
    let (home, provider, name) = home(wire, vec![events(wire, wire.plain)]).await;
    home.env("QUERY_SECRET", "q-s3cret-1");
    let more = "headers = { x-own = \"h-s3cret-2\" }\nquery = { variant = \"$QUERY_SECRET\", subscription-key = \"q-s3cret-3\", api-version = \"7\" }\n";
    home.config(&format!("{}{more}", home.config_text()));
    let ran = home.run(&["run", "hi"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let received = provider.finish().await.remove(0);
    for secret in ["q-s3cret-1", "q-s3cret-3"] {
        assert!(received.path.contains(&secret.replace('-', "%2D")), "{secret} was sent: {}", received.path);
    }
    assert_eq!(received.header("x-own"), Some("h-s3cret-2"));
    let sessions = home.run(&["sessions", "list", "--json"], "").await;
    let session = sessions.lines()[0]["sessionId"].as_str().unwrap().to_owned();
    let shown = printed(&home, &session, &[]).await;
    assert!(shown.stdout.contains("x-own: [key]") && shown.stdout.contains("=7"), "{name}: {shown:?}");
    assert_eq!(shown.stdout.lines().next().unwrap().matches("=[key]").count(), 2, "{shown:?}");
    assert!(shown.stdout.contains(&received.text));
    for entry in std::fs::read_dir(home.data().join("requests").join(&session)).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("s3cret") && !text.contains(KEY), "{text}");
    }
    assert!(!shown.stdout.contains("s3cret"), "{shown:?}");
}

/// Requests about which a part is not known say so in their first line.
#[tokio::test]
async fn first_line_says_what_is_missing() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{ "text": "Hello" }]), &[]).await;
    agent.turn(&session, "the question").await;
    agent.finish().await;
    let shown = printed(&home, &session, &[]).await;
    assert!(shown.stdout.starts_with("# ") && shown.stdout.contains("without HTTP"), "{shown:?}");
    let content: Value = serde_json::from_str(shown.stdout.lines().last().unwrap()).unwrap();
    assert!(content["system"].is_string() && content["tools"].is_array(), "{content}");

    let export = home.run(&["sessions", "export", &session], "").await;
    assert!(!export.stdout.contains(content["system"].as_str().unwrap()), "the system prompt is no part of an export");
    std::fs::remove_dir_all(home.data().join("requests")).unwrap();
    let shown = printed(&home, &session, &[]).await;
    assert!(shown.stdout.starts_with("# ") && shown.stdout.lines().next().unwrap().contains("the system prompt"), "{shown:?}");
    assert!(shown.stdout.contains("the question"), "{shown:?}");
}

#[tokio::test]
async fn unknown_request_is_an_error_that_names_the_known_ones() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{ "text": "Hello" }]), &[]).await;
    let empty = agent.new_session(&home).await;
    agent.turn(&session, "hi").await;
    agent.call("session/set_mode", json!({ "sessionId": empty, "modeId": "plan" })).await;
    agent.finish().await;
    for (session, more, words) in [
        (&session, &["--step", "7"][..], "the numbers 1 to 1"),
        (&session, &["--turn", "nonsense"], "starts with nonsense"),
        (&session, &["--step", "0"], "the numbers 1 to 1"),
        (&empty, &[], "has sent no model request"),
    ] {
        let shown = printed(&home, session, more).await;
        assert!(shown.code != 0 && shown.stdout.is_empty() && shown.stderr.contains(words), "{more:?}: {shown:?}");
    }
    assert!(home.data().join("requests").join(&session).exists());
    assert_eq!(home.run(&["sessions", "rm", "--yes", &session], "").await.code, 0);
    assert!(!home.data().join("requests").join(&session).exists(), "the texts are removed with the session");
}

/// The log of a server that a person sends with a report has what happened, and no content.
#[tokio::test]
async fn debug_log_has_each_turn_request_and_call_without_content() {
    let wire = chat();
    let (home, provider, _) = home(wire, vec![events(wire, wire.rich), events(wire, wire.plain)]).await;
    let deny = "[permissions]\nrules = [{ tool = \"read\", path = \"b\", policy = \"deny\" }]\n";
    home.config(&format!("{}{deny}", home.config_text()));
    home.env("NUNCIO_LOG", "debug");
    let ran = home.run(&["run", "read a and b, tops3cret"], "").await;
    assert_eq!(ran.code, 4, "a call was denied: {ran:?}");
    provider.finish().await;
    for words in [
        "turn.started",
        "step.started",
        "model request",
        "status=200",
        "path=/chat/completions",
        "step.completed",
        "permission.resolved",
        "tool.completed",
        "tool=read",
        "turn.completed",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(" DEBUG ")).collect();
    for secret in [KEY, "tops3cret", "what stands in a", "Reading."] {
        assert!(lines.iter().all(|line| !line.contains(secret)), "{secret}: {lines:?}");
    }
}
