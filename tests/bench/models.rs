//! Models in four wire formats, with a server in this process: deltas per second of the reader, the
//! time that a large request needs, and the time that nuncio adds to the first token. Prints a table.
//! Arguments select the parts by name.

#![allow(clippy::print_stdout)]

mod client;
mod process;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use client::World;
use futures_util::StreamExt;
use nuncio::content::Part;
use nuncio::internal::model::endpoint::{Endpoint, Protocol};
use nuncio::internal::model::local::LocalServers;
use nuncio::internal::model::{Block, Chunk, Message, Model, Request, Thinking, ToolResult, ToolSpec};
use nuncio::internal::web::HttpClients;
use serde_json::{Value, json};

const DELTAS: usize = 20_000;
const ROUNDS: usize = 11;
const TURNS: usize = 200;
/// Time between the head of a response and the first token.
const PAUSE: Duration = Duration::from_millis(5);
const TOKEN: &str = "tok1abc ";

/// The events of an answer: before the deltas, one delta, and after the deltas.
struct Format {
    protocol: Protocol,
    start: &'static [&'static str],
    delta: &'static str,
    end: &'static [&'static str],
}

const FORMATS: &[Format] = &[
    Format {
        protocol: Protocol::OpenaiChat,
        start: &[
            r#"{"id":"chatcmpl-8f1a6e","object":"chat.completion.chunk","created":1790000000,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#,
        ],
        delta: r#"{"id":"chatcmpl-8f1a6e","object":"chat.completion.chunk","created":1790000000,"model":"m","choices":[{"index":0,"delta":{"content":"tok1abc "},"logprobs":null,"finish_reason":null}]}"#,
        end: &[
            r#"{"id":"chatcmpl-8f1a6e","object":"chat.completion.chunk","created":1790000000,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            "[DONE]",
        ],
    },
    Format {
        protocol: Protocol::OpenaiResponses,
        start: &[
            r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","usage":null}}"#,
        ],
        delta: r#"{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_68af4030592c81","output_index":0,"content_index":0,"delta":"tok1abc ","logprobs":[]}"#,
        end: &[r#"{"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","status":"completed","usage":null}}"#],
    },
    Format {
        protocol: Protocol::Anthropic,
        start: &[
            r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        ],
        delta: r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"tok1abc "}}"#,
        end: &[
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    },
    Format {
        protocol: Protocol::Gemini,
        start: &[],
        delta: r#"{"candidates":[{"content":{"parts":[{"text":"tok1abc "}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"m","responseId":"x"}"#,
        end: &[
            r#"{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":9}}"#,
        ],
    },
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` passes `--test` and only checks that the benchmark starts.
    if arguments.iter().any(|argument| argument == "--test") {
        return;
    }
    let names: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let selects = |name: &str| names.is_empty() || names.iter().any(|wanted| *wanted == name);
    if selects("deltas") {
        FORMATS.iter().for_each(deltas);
    }
    if selects("large-request") {
        FORMATS.iter().for_each(large_request);
    }
    if selects("first-token") {
        FORMATS.iter().for_each(first_token);
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Reads an answer of [`DELTAS`] deltas, which the server sends at once.
fn deltas(format: &Format) {
    let body: Arc<str> = [events(format.start), events(&[format.delta]).repeat(DELTAS), events(format.end)].concat().into();
    let base_url = serve(move |stream, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length";
        // A client that has the end of the answer may close the connection.
        let _ = stream.write_all(format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes());
    });
    let endpoint = Endpoint::new("bench/m", format.protocol, base_url);
    let model = nuncio::internal::model::open(endpoint, &HttpClients::default(), &LocalServers::default(), Default::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            assert_eq!(runtime.block_on(read(&*model, request())), DELTAS * TOKEN.len());
            started.elapsed()
        })
        .collect();
    let median = median(&mut times);
    println!("{:18} {:12.0} deltas/s", format.protocol.as_str(), DELTAS as f64 / median.as_secs_f64());
}

/// Returns the number of bytes of text in the answer.
async fn read(model: &dyn Model, request: Request) -> usize {
    let (mut stream, mut bytes) = (model.stream(request), 0);
    while let Some(chunk) = stream.next().await {
        if let Chunk::Text(text) = chunk.expect("no failure") {
            bytes += text.len();
        }
    }
    bytes
}

/// Time until a short answer to a request of 500 kB with 100 tools, and to a small request. The
/// difference is the time in which the request is adapted, written, sent and received. What writing
/// the same JSON and sending the same bytes takes is measured next to it; the rest is adapting.
fn large_request(format: &Format) {
    let body: Arc<str> = [events(format.start), events(&[format.delta]), events(format.end)].concat().into();
    let received = Arc::new(Mutex::new(Vec::new()));
    let kept = received.clone();
    let base_url = serve(move |stream, request| {
        *kept.lock().expect("no panic") = request;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length";
        let _ = stream.write_all(format!("{head}: {}\r\n\r\n{body}", body.len()).as_bytes());
    });
    let endpoint = Endpoint::new("bench/m", format.protocol, base_url.clone());
    let model = nuncio::internal::model::open(endpoint, &HttpClients::default(), &LocalServers::default(), Default::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let large = large_conversation();
    let (mut times, mut sent, mut written) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let mut connection = TcpStream::connect(base_url.trim_start_matches("http://").trim_end_matches("/v1")).expect("a server");
    for _ in 0..ROUNDS * 3 {
        for (size, request) in [request(), large.clone()].into_iter().enumerate() {
            let started = Instant::now();
            assert_eq!(runtime.block_on(read(&*model, request)), TOKEN.len());
            times[size].push(started.elapsed());
            let bytes = std::mem::take(&mut *received.lock().expect("no panic"));
            let started = Instant::now();
            send(&mut connection, &bytes);
            sent[size].push(started.elapsed());
            let json: Value = serde_json::from_slice(&bytes).expect("JSON");
            let started = Instant::now();
            std::hint::black_box(serde_json::to_vec(&json).expect("JSON"));
            written[size].push(started.elapsed());
        }
    }
    let difference = |times: &mut [Vec<Duration>; 2]| {
        let [small, large] = times.each_mut().map(|times| median(times).as_secs_f64() * 1000.0);
        large - small
    };
    let [whole, sent, written] = [&mut times, &mut sent, &mut written].map(difference);
    println!(
        "{:18} request of 500 kB with 100 tools: {whole:.2} ms more than a small one: {written:.2} to write, {sent:.2} to send, \
         {:.2} to adapt",
        format.protocol.as_str(),
        whole - sent - written
    );
}

/// Sends a request with this body, and reads the head and the body of the answer.
fn send(connection: &mut TcpStream, body: &[u8]) {
    let head = format!("POST /v1 HTTP/1.1\r\nhost: bench\r\ncontent-length: {}\r\n\r\n", body.len());
    connection.write_all(&[head.as_bytes(), body].concat()).expect("a server");
    assert!(receive(&mut BufReader::new(connection)).is_some());
}

/// Returns a request of 500 kB with 100 tools.
fn large_conversation() -> Request {
    let text = "fn main() { println!(\"hello\"); }\n".repeat(28);
    let mut messages = vec![Arc::new(Message::User(vec![Part::text("go")]))];
    for number in 0..500 {
        let id = format!("callid{number:03}");
        let input = json!({ "file_path": format!("src/{number}.rs") });
        let call = Block::ToolCall { id: id.as_str().into(), name: "tool_1".into(), input, input_text: None, state: None };
        messages.push(Arc::new(Message::Assistant(vec![call])));
        let result =
            ToolResult { id: id.as_str().into(), name: "tool_1".into(), output: vec![Part::text(text.clone())], failed: false };
        messages.push(Arc::new(Message::ToolResults(vec![result])));
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "file_path": { "type": "string", "description": "The path.", "pattern": "^[a-z]+$" },
            "range": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/range" }] },
        },
        "required": ["file_path"],
        "$defs": { "range": { "type": "object", "properties": { "from": { "type": "integer" }, "to": { "type": "integer" } } } },
    });
    let tool = |number| ToolSpec { name: format!("tool_{number}"), description: "A tool.".into(), input_schema: schema.clone() };
    Request { messages: Arc::new(messages), tools: (0..100).map(tool).collect(), ..request() }
}

/// Time between the moment when the server writes the first token and the moment when the ACP client
/// has received it.
fn first_token(format: &Format) {
    let (written, when_written) = mpsc::channel();
    let chunk = |text: String| format!("{:x}\r\n{text}\r\n", text.len());
    let start = if format.start.is_empty() { String::new() } else { chunk(events(format.start)) };
    let (first, end) = (chunk(events(&[format.delta])), chunk(events(format.end)) + "0\r\n\r\n");
    let base_url = serve(move |stream, _| {
        let mut send = |text: &str| stream.write_all(text.as_bytes()).expect("written");
        send(&format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{start}"));
        std::thread::sleep(PAUSE);
        let now = Instant::now();
        send(&first);
        written.send(now).expect("the benchmark runs");
        send(&end);
    });
    let world = World::new(&json!({ "steps": [] }));
    let protocol = format.protocol.as_str();
    let settings = format!("[providers.bench]\nprotocol = \"{protocol}\"\nbase_url = \"{base_url}\"\n");
    std::fs::write(world.dir().join("home/config.toml"), settings).expect("settings");
    let mut client = world.client_of("bench/m");
    let mut times: Vec<Duration> = (0..TURNS)
        .map(|_| {
            let session = client.new_session(&world);
            client.send("session/prompt", client::prompt(&session, "hi"));
            client.skip_until(TOKEN);
            let received = Instant::now();
            client.receive();
            received - when_written.recv().expect("the server runs")
        })
        .collect();
    let median = median(&mut times).as_secs_f64() * 1000.0;
    let high = times[times.len() * 9 / 10].as_secs_f64() * 1000.0;
    println!("{protocol:18} first token: p50 {median:.2} ms, p90 {high:.2} ms later than the server's");
}

fn events(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn request() -> Request {
    Request {
        system: "".into(),
        messages: Arc::new(vec![Arc::new(Message::User(vec![Part::text("hi")]))]),
        tools: Arc::new([]),
        thinking: Thinking::Off,
        json_answer: false,
        cache_key: "bench".to_owned(),
        refused: Arc::default(),
    }
}

/// Starts a server that answers each request with `answer`. Returns its URL.
fn serve(answer: impl Fn(&mut TcpStream, Vec<u8>) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.expect("a connection"), answer.clone());
            std::thread::spawn(move || {
                stream.set_nodelay(true).expect("a socket");
                let mut requests = BufReader::new(stream.try_clone().expect("a socket"));
                while let Some(asks) = receive(&mut requests) {
                    match asks {
                        Some(body) => answer(&mut stream, body),
                        None => stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").expect("a client"),
                    }
                }
            });
        }
    });
    format!("http://{address}/v1")
}

/// Reads a request or an answer, and returns the body of one that asks the model and not for its
/// properties. `None` at the end of the connection.
fn receive(stream: &mut impl BufRead) -> Option<Option<Vec<u8>>> {
    let (mut length, mut asks) = (0, false);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        asks |= line.starts_with("POST ");
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(asks.then_some(body))
}
