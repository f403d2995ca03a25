//! Faults of networks, proxies and servers between the model and nuncio. Whatever happens to an
//! answer, it is received exactly once, or the request fails.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};
use nuncio::internal::model::local::LocalServers;
use nuncio::internal::model::{Cause, Chunk, Retry};
use nuncio::internal::web::HttpClients;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::protocol_deviations::joined;
use super::{Answer, ask, endpoint, exchange, hi, open, request, shown};
use harness::provider::answers::{body, document, event_stream};
use harness::provider::{Exchange, Protocol, Provider};
use harness::wires::{WIRES, Wire};

/// Number of answers that are received at the same time.
const PARALLEL: usize = 64;

/// The body of an answer with these events, in the framing of a protocol, and its content type.
fn framed(protocol: Protocol, events: &[String]) -> (Vec<u8>, &'static str) {
    match protocol {
        Protocol::Ollama => (events.iter().map(|event| format!("{event}\n")).collect::<String>().into(), "application/x-ndjson"),
        _ => (body(events).into(), "text/event-stream"),
    }
}

/// The chunks of `wire.rich`, with joined texts and thoughts, and without the ids of calls.
fn rich_chunks(wire: &Wire) -> String {
    let chunks = wire.rich_chunks.trim_start().replace("thinking Two \nthinking files.\n", "thinking Two files.\n");
    let ids = ["toolu_1", "toolu.2", "call_1", "call_2", "fn_1", "fn_2"];
    ids.iter().fold(chunks, |chunks, id| chunks.replace(&format!("call {id} "), "call "))
}

/// Asserts that the answer is complete, exactly once, and that no call precedes a retry.
#[track_caller]
fn assert_received_once(answer: Answer, expected: &str, what: &str) {
    assert_eq!(answer.error, None, "{what}");
    let last = answer.chunks.iter().rposition(|chunk| matches!(chunk, Chunk::Retry { .. })).map_or(0, |at| at + 1);
    let (discarded, received) = answer.chunks.split_at(last);
    assert!(!discarded.iter().any(|chunk| matches!(chunk, Chunk::ToolCall { .. })), "{what}: {}", shown(discarded));
    // An answer without its last event may lack the usage.
    let lines = |text: &str| text.lines().filter(|line| !line.starts_with("usage ")).map(str::to_owned).collect::<Vec<_>>();
    let received: Vec<Chunk> = received.iter().filter(|chunk| !matches!(chunk, Chunk::UsageSoFar(_))).cloned().collect();
    assert_eq!(lines(&joined(&received)), lines(expected), "{what}");
}

/// Cuts an answer with thinking, text and two calls at every byte with an incomplete body, and at
/// every eighth with a body that ends regularly. The second request gets the whole answer.
async fn every_cut(wire: &'static Wire) {
    let events: Vec<String> = wire.rich.iter().map(|event| event.replace("Reading.", "Größe 🦀.")).collect();
    let (whole, content_type) = framed(wire.protocol, &events);
    let expected = rich_chunks(wire).replace("Reading.", "Größe 🦀.");
    let clients = HttpClients::default();
    let (whole, clients, expected) = (&whole, &clients, &expected);
    let cuts = (0..=whole.len()).map(|at| (at, true)).chain((0..=whole.len()).step_by(8).map(|at| (at, false)));
    let requests = AtomicUsize::new(0);
    let counted = &requests;
    let cut = async |(at, incomplete): (usize, bool)| {
        let answer = |body: &[u8]| Exchange::bytes(200, content_type, vec![body.to_vec()]);
        let first = answer(&whole[..at]);
        let provider = Provider::start(wire.protocol, vec![if incomplete { first.cut() } else { first }]).await;
        provider.otherwise(answer(whole));
        let model = nuncio::internal::model::open(
            endpoint("test", wire, &provider.base_url),
            clients,
            &LocalServers::default(),
            Default::default(),
        );
        let answer = ask(model.as_ref(), request(hi())).await;
        let what = format!("{} cut at byte {at} of {}, incomplete: {incomplete}", wire.model, whole.len());
        assert_received_once(answer, expected, &what);
        let requests = provider.finish().await.len();
        assert!(requests <= 2, "{what}");
        counted.fetch_add(requests, Ordering::Relaxed);
    };
    stream::iter(cuts).map(cut).buffer_unordered(PARALLEL).collect::<Vec<_>>().await;
    // Nearly all cuts need a second request.
    assert!(requests.load(Ordering::Relaxed) > whole.len() * 2, "{}", wire.model);
}

#[tokio::test]
async fn answer_cut_at_any_byte_is_received_once_anthropic() {
    every_cut(&WIRES[0]).await;
}

#[tokio::test]
async fn answer_cut_at_any_byte_is_received_once_openai_chat() {
    every_cut(&WIRES[1]).await;
}

#[tokio::test]
async fn answer_cut_at_any_byte_is_received_once_openai_responses() {
    every_cut(&WIRES[2]).await;
}

#[tokio::test]
async fn answer_cut_at_any_byte_is_received_once_gemini() {
    every_cut(&WIRES[3]).await;
}

#[tokio::test]
async fn answer_cut_at_any_byte_is_received_once_ollama() {
    every_cut(&WIRES[4]).await;
}

#[tokio::test]
async fn document_is_read_as_answer() {
    for wire in WIRES.iter().filter(|wire| wire.protocol != Protocol::Ollama) {
        for content_type in ["application/json", "application/json; charset=utf-8", "text/plain"] {
            let document = Exchange::new(200, content_type, vec![document(wire.protocol).to_owned()]);
            let (answer, _) = exchange(wire, vec![document]).await;
            assert!(shown(&answer.chunks).contains("usage 10 20 0 0\n"), "{}", shown(&answer.chunks));
            assert_received_once(answer, &rich_chunks(wire), wire.model);
        }
    }
}

/// Documents that end for other reasons than the end of the answer.
#[tokio::test]
async fn stop_reason_of_document_is_reported() {
    let cases = [
        r#"{"type":"message","content":[{"type":"text","text":"Hel"}],"stop_reason":"max_tokens"}"#,
        r#"{"choices":[{"message":{"content":"Hel"},"finish_reason":"length"}]}"#,
        r#"{"object":"response","status":"incomplete","output":[{"type":"message","content":[{"type":"output_text","text":"Hel"}]}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}]},"finishReason":"MAX_TOKENS"}]}"#,
    ];
    for (wire, document) in WIRES.iter().zip(cases) {
        let (answer, _) = exchange(wire, vec![Exchange::error(200, document)]).await;
        let shown = shown(&answer.chunks).replace("usage 0 0 0 0\n", "");
        assert_eq!((answer.error, shown.as_str()), (None, "text Hel\nstop MaxTokens\n"), "{}", wire.model);
    }
}

/// Each event is decoded when it arrives, although the stream is compressed.
#[tokio::test]
async fn compressed_events_are_not_held_back() {
    for wire in WIRES.iter().filter(|wire| wire.protocol != Protocol::Ollama) {
        let text = wire.plain.iter().position(|event| event.contains("Hel")).expect("there") + 1;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        for event in &wire.plain[..text] {
            write!(encoder, "data: {event}\n\n").expect("memory");
        }
        encoder.flush().expect("memory");
        let exchange = event_stream(encoder.get_ref().clone()).header("content-encoding", "gzip").hang();
        let provider = Provider::start(wire.protocol, vec![exchange]).await;
        let model = open(wire, &provider.base_url);
        let mut stream = model.stream(request(hi()));
        let chunk = stream.by_ref().filter(|chunk| std::future::ready(!matches!(chunk, Ok(Chunk::UsageSoFar(_))))).next().await;
        assert_eq!(chunk, Some(Ok(Chunk::Text("Hel".to_owned()))));
        drop(stream);
        // The request asks for an answer without compression.
        assert_eq!(provider.finish().await[0].header("accept-encoding"), Some("identity"));
    }
}

/// The address has `https://`, and the server does not speak TLS.
#[tokio::test]
async fn missing_tls_is_reported_at_once() {
    for response in ["HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", ""] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(response.as_bytes()).await;
                // Reads the client's part, so that the response is not lost.
                let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await;
            }
        });
        let model = open(&WIRES[1], &format!("https://{address}/v1"));
        let answer = ask(model.as_ref(), request(hi())).await;
        server.abort();
        let error = answer.error.expect("an error");
        assert!(error.hint.as_ref().is_some_and(|hint| hint.contains("http://")), "{error:?}");
        assert!(error.unreachable && error.retry == Retry::Never && !error.message.contains("attempts"), "{error:?}");
    }
}

/// Events that end an answer, although the answer is invalid.
#[tokio::test]
async fn invalid_end_of_answer_is_repeated_once() {
    let cut_call = r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"file_"}}"#;
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"read","input":{}}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let malformed =
        r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: read("}]}"#;
    let cases: [(usize, &[&str]); 3] = [(0, &[start, cut_call, end, stop]), (0, &[stop]), (3, &[malformed])];
    for (wire, events) in cases {
        let provider = Provider::start(WIRES[wire].protocol, Vec::new()).await;
        provider.otherwise(Exchange::events(events));
        let answer = ask(open(&WIRES[wire], &provider.base_url).as_ref(), request(hi())).await;
        let cause = answer.error.map(|error| error.cause);
        assert_eq!((cause, provider.finish().await.len()), (Some(Cause::InvalidAnswer), 2), "{events:?}");
    }
}
