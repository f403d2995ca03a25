//! Failures of requests to models, and the recovery from them.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use nuncio::internal::model::{Chunk, Retry};

use super::{ask, exchange, hello, hi, open, request, shown};
use harness::provider::{Exchange, KEY, Provider};
use harness::wires::WIRES;

/// Omits the usage of failed attempts, which not every provider reports.
fn without_usage_of_failures(mut chunks: Vec<Chunk>) -> Vec<Chunk> {
    while let Some(at) = chunks.windows(2).position(|pair| matches!(pair, [Chunk::Usage(_), Chunk::Retry { .. }])) {
        chunks.remove(at);
    }
    chunks
}

#[tokio::test]
async fn busy_provider_is_retried() {
    for wire in WIRES {
        for (status, reason) in
            [(500, "the request failed"), (529, "the server is overloaded or not ready"), (429, "too many requests")]
        {
            let body = r#"{"error":{"message":"Slow down"}}"#;
            let (answer, _) = exchange(wire, vec![Exchange::error(status, body), Exchange::events(wire.plain)]).await;
            let expected = format!("retry 2: test/{}: {reason} (HTTP {status}): Slow down\n{}", wire.model, hello(wire));
            assert_eq!(shown(&answer.chunks), expected);
        }
    }
}

#[tokio::test]
async fn retry_after_is_obeyed() {
    let wire = &WIRES[0];
    let busy = Exchange::error(429, r#"{"type":"error","error":{"type":"rate_limit_error","message":"Slow down"}}"#);
    let asked = Instant::now();
    let (answer, _) = exchange(wire, vec![busy.header("retry-after", "1"), Exchange::events(wire.plain)]).await;
    assert!(asked.elapsed() >= Duration::from_secs(1));
    let Chunk::Retry { attempt: 2, delay, .. } = &answer.chunks[0] else { panic!("{:?}", answer.chunks) };
    assert!((1000..=1050).contains(&delay.as_millis()), "{delay:?}");
}

#[tokio::test]
async fn interrupted_answer_is_retried() {
    for wire in WIRES {
        let text = wire.plain.iter().position(|event| event.contains("Hel")).expect("there") + 1;
        let (answer, _) = exchange(wire, vec![Exchange::events(&wire.plain[..text]).cut(), Exchange::events(wire.plain)]).await;
        assert_eq!(answer.error, None);
        let shown = shown(&without_usage_of_failures(answer.chunks));
        let (before, after) = shown.split_once('\n').expect("lines");
        assert_eq!(before, "text Hel");
        let (retry, after) = after.split_once('\n').expect("lines");
        assert!(retry.starts_with(&format!("retry 2: test/{}: the answer was interrupted", wire.model)), "{retry}");
        assert_eq!(after, hello(wire));

        // A complete body with an incomplete answer is retried too.
        let (answer, _) = exchange(wire, vec![Exchange::events(&wire.plain[..text]), Exchange::events(wire.plain)]).await;
        assert!(answer.chunks.iter().any(|chunk| matches!(chunk, Chunk::Retry { delay, .. } if delay.as_millis() < 350)));
    }
}

#[tokio::test]
async fn calls_of_interrupted_answer_are_not_emitted() {
    for wire in WIRES {
        let cut = Exchange::events(&wire.rich[..wire.first_call]).cut();
        let (answer, _) = exchange(wire, vec![cut.clone(), cut, Exchange::events(wire.rich)]).await;
        assert_eq!(answer.error, None);
        let shown = shown(&answer.chunks);
        assert_eq!(shown.matches("retry ").count(), 2, "{shown}");
        let last = shown.rfind("retry ").expect("there");
        assert!(!shown[..last].contains("call "), "{shown}");
        let whole = shown[last..].split_once('\n').expect("lines").1;
        assert_eq!(format!("\n{whole}"), wire.rich_chunks);
    }
}

#[tokio::test]
async fn error_within_answer_is_retried() {
    for wire in WIRES {
        let (answer, _) = exchange(wire, vec![Exchange::events(wire.error), Exchange::events(wire.plain)]).await;
        let expected = format!("text Hel\nretry 2: test/{}: Overloaded\n{}", wire.model, hello(wire));
        assert_eq!(shown(&without_usage_of_failures(answer.chunks)), expected);
    }
}

#[tokio::test]
async fn stop_reasons_are_reported() {
    for wire in WIRES {
        let cases = [(wire.max_tokens, "stop MaxTokens\n"), (wire.refusal, "stop Refusal\n")];
        for (events, stop) in cases.into_iter().filter(|(events, _)| !events.is_empty()) {
            let (answer, _) = exchange(wire, vec![Exchange::events(events)]).await;
            assert_eq!(answer.error, None);
            assert!(shown(&answer.chunks).ends_with(stop), "{}: {}", wire.model, shown(&answer.chunks));
        }
    }
}

#[tokio::test]
async fn dropped_stream_closes_connection() {
    for wire in WIRES {
        let text = wire.plain.iter().position(|event| event.contains("Hel")).expect("there") + 1;
        let provider = Provider::start(wire.protocol, vec![Exchange::events(&wire.plain[..text]).hang()]).await;
        let model = open(wire, &provider.base_url);
        let mut stream = model.stream(request(hi()));
        let chunk = stream.by_ref().filter(|chunk| std::future::ready(!matches!(chunk, Ok(Chunk::UsageSoFar(_))))).next().await;
        assert_eq!(chunk, Some(Ok(Chunk::Text("Hel".to_owned()))));
        drop(stream);
        provider.finish().await;
    }
}

#[tokio::test]
async fn http_errors_have_message_and_hint() {
    let check = async |status: u16, body: &'static str, message: &str, hint: Option<&str>, unreachable: bool| {
        for wire in WIRES {
            // If the Responses API may be missing, the request is also sent as a chat completion.
            // After a bad request, one without the image is sent.
            let is_chat_too = status == 404 && wire.protocol == harness::provider::Protocol::OpenaiResponses;
            let requests = if is_chat_too || matches!(status, 200 | 400) { 2 } else { 1 };
            let (answer, _) = exchange(wire, vec![Exchange::error(status, body); requests]).await;
            let error = answer.error.expect("an error");
            assert_eq!(answer.chunks, []);
            assert_eq!(error.message, format!("test/{}: {message}", wire.model));
            assert_eq!(error.retry, Retry::Never);
            assert_eq!(error.unreachable, unreachable);
            assert_eq!(error.hint.as_deref().map(|hint| hint.split(" (").next().unwrap_or_default()), hint);
            assert!(!format!("{error:?}").contains(KEY));
        }
    };
    let settings = Some("check the settings of the provider: protocol, base_url, max_output_tokens");
    let credit = Some("check the plan and the credit of the provider's account, or choose another model");
    check(401, r#"{"error":{"message":"bad key"}}"#, "the key was refused (HTTP 401): bad key", Some("check TEST_KEY"), true).await;
    check(
        401,
        r#"{"message":"who is sk-test-secret?"}"#,
        "the key was refused (HTTP 401): who is [key]?",
        Some("check TEST_KEY"),
        true,
    )
    .await;
    check(200, r#"{"error":{"type":"invalid_request_error","message":"no"}}"#, "no", settings, false).await;
    check(403, "no", "the key was refused (HTTP 403): no", Some("check TEST_KEY"), true).await;
    check(404, r#"[{"error":{"message":"no model"}}]"#, "not found (HTTP 404): no model", Some("check the model's name"), false)
        .await;
    check(400, r#"{"error":"too long"}"#, "the request failed (HTTP 400): too long", settings, false).await;
    check(429, r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#, "the quota is used up (HTTP 429): pay", credit, false)
        .await;
    check(302, "", "the server sent a redirect (HTTP 302)", Some("check base_url"), false).await;
}

#[tokio::test]
async fn refused_connection_is_retried_and_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let base_url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let model = open(&WIRES[1], &base_url);
    let answer = ask(model.as_ref(), request(hi())).await;
    assert_eq!(answer.chunks.len(), 2, "two retries");
    let error = answer.error.expect("an error");
    assert!(error.unreachable);
    assert!(error.message.contains("refused") && error.message.ends_with("(after 3 attempts)"), "{error:?}");
}

/// A server that has answered before is expected to be back after the time of a restart.
#[tokio::test]
async fn restart_of_local_server_is_awaited() {
    for wire in WIRES {
        let provider = Provider::start(wire.protocol, vec![Exchange::events(wire.plain)]).await;
        let model = open(wire, &provider.base_url);
        let address = provider.base_url.strip_prefix("http://").expect("a URL").to_owned();
        assert_eq!(ask(model.as_ref(), request(hi())).await.error, None);
        provider.finish().await;
        let (mut stream, mut provider, mut retries, mut chunks) = (model.stream(request(hi())), None, 0, Vec::new());
        while let Some(chunk) = stream.next().await {
            match chunk.expect("no failure") {
                Chunk::Retry { left, .. } => {
                    // The first failure may be of the connection that was kept open.
                    retries += usize::from(left.is_some());
                    if retries == 4 {
                        let listener = tokio::net::TcpListener::bind(&address).await.expect("the same address");
                        provider = Some(Provider::serve(listener, wire.protocol, vec![Exchange::events(wire.plain)]));
                    }
                }
                chunk => chunks.push(chunk),
            }
        }
        assert_eq!(shown(&chunks), hello(wire));
        provider.expect("a restart").finish().await;
    }
}

#[tokio::test]
async fn event_stream_syntax_is_fully_supported() {
    let event = |event: &str| event.replace("\"choices\"", "\r\ndata: \"choices\"");
    let body = WIRES[1].plain.iter().map(|data| format!(": ping\r\n\r\nevent: x\r\ndata: {}\r\n\r\n", event(data)));
    let whole = format!("\u{feff}{}", body.collect::<String>());
    let pieces: Vec<String> = whole.chars().collect::<Vec<_>>().chunks(7).map(|piece| piece.iter().collect()).collect();
    let (answer, _) = exchange(&WIRES[1], vec![Exchange::new(200, "text/event-stream", pieces)]).await;
    assert_eq!(shown(&answer.chunks), hello(&WIRES[1]));
}
