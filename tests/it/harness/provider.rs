//! A scripted model provider: raw HTTP/1.1 on loopback, so that connections can also break and
//! hang. The provider checks its requests: every exchange is used, the key is present, every tool
//! result has its call, and no rule of [`rules`] refuses a part.

pub mod answers;
mod exchange;
mod judge;
mod place;
mod protocol;
pub mod session;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use exchange::{ENDLESS_BYTES, End};
use judge::{Judge, RefusalGuard};

use crate::bounded;
use crate::rules::{self, Platform};

pub use exchange::Exchange;
pub use place::place;
pub use protocol::Protocol;

pub const KEY: &str = "sk-test-secret";

/// A received request.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
    /// The body as it was sent.
    pub text: String,
    /// Index of the connection, from 0.
    pub connection: usize,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Creates the response to a request.
type Responder = Box<dyn FnMut(&ReceivedRequest) -> Exchange + Send>;

#[derive(Default)]
struct Log {
    exchanges: VecDeque<Exchange>,
    received: Vec<ReceivedRequest>,
    /// The response to requests after the last exchange.
    otherwise: Option<Exchange>,
    /// Creates the responses to requests after the last exchange.
    responder: Option<Responder>,
    /// The response to requests whose conversation has more than this number of bytes.
    too_large: Option<(usize, Exchange)>,
    /// Responses by path, with a leading `*` by the end of a path. Other requests that are not for
    /// an answer of the model get the status 404.
    pages: Vec<(String, Exchange)>,
    /// Method and path of the requests that were answered with pages or with the status 404.
    asked: Vec<String>,
    judge: Judge,
}

pub struct Provider {
    pub base_url: String,
    protocol: Protocol,
    log: Arc<Mutex<Log>>,
    task: tokio::task::JoinHandle<()>,
    stop: tokio::sync::oneshot::Sender<()>,
    refusals: RefusalGuard,
}

impl Provider {
    pub async fn start(protocol: Protocol, exchanges: Vec<Exchange>) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Provider::serve(listener, protocol, exchanges)
    }

    /// Starts the provider on a bound address.
    pub fn serve(listener: TcpListener, protocol: Protocol, exchanges: Vec<Exchange>) -> Provider {
        let base_url = format!("http://{}", listener.local_addr().expect("an address"));
        let exchanges = exchanges.into_iter().map(|exchange| exchange.framed(protocol)).collect();
        let log = Arc::new(Mutex::new(Log { exchanges, ..Log::default() }));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(accept(listener, log.clone(), stopped));
        let refusals = RefusalGuard(log.clone());
        Provider { base_url, protocol, log, task, stop, refusals }
    }

    /// Turns off these rules of [`rules::RULES`] and [`rules::RULES_OF_SEVERAL_REQUESTS`].
    pub fn lax(&self, rules: &[u8]) {
        self.log.lock().expect("no panic").judge.lax(rules);
    }

    /// Judges the requests as this platform does. Without a call, the path of a request decides.
    pub fn platform(&self, platform: Platform) {
        self.log.lock().expect("no panic").judge.platform = Some(platform);
    }

    /// Answers every request whose conversation has more than `bytes` bytes with `rejection`.
    pub fn reject_larger(&self, bytes: usize, rejection: Exchange) {
        self.log.lock().expect("no panic").too_large = Some((bytes, rejection.framed(self.protocol)));
    }

    /// Answers every request after the last exchange with this response.
    pub fn otherwise(&self, exchange: Exchange) {
        self.log.lock().expect("no panic").otherwise = Some(exchange.framed(self.protocol));
    }

    /// Answers every request after the last exchange with the response that `responder` creates.
    pub fn respond(&self, responder: impl FnMut(&ReceivedRequest) -> Exchange + Send + 'static) {
        self.log.lock().expect("no panic").responder = Some(Box::new(responder));
    }

    /// Answers `GET …/models` with this list.
    pub fn list_models(&self, list: &str) {
        self.page("*/models", 200, list);
    }

    /// Answers a path with JSON. A leading `*` stands for the start of any path.
    pub fn page(&self, path: &str, status: u16, json: &str) {
        let mut log = self.log.lock().expect("no panic");
        log.pages.retain(|(known, _)| known != path);
        log.pages.push((path.to_owned(), Exchange::error(status, json)));
    }

    /// Method and path of the requests that were not for answers of the model.
    pub fn asked(&self) -> Vec<String> {
        self.log.lock().expect("no panic").asked.clone()
    }

    /// Waits until the caller has closed every hanging exchange, checks the requests, and returns
    /// them.
    pub async fn finish(self) -> Vec<ReceivedRequest> {
        let protocol = self.protocol;
        let received = self.finish_unchecked().await;
        for received in &received {
            let key = match protocol {
                Protocol::Anthropic => received.header("x-api-key"),
                Protocol::Gemini => received.header("x-goog-api-key"),
                Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Ollama | Protocol::Bedrock => {
                    received.header("authorization").and_then(|value| value.strip_prefix("Bearer "))
                }
            };
            assert_eq!(key, Some(KEY), "the key");
            assert_eq!(received.header("content-type"), Some("application/json"));
            let (mut calls, mut results) = (Vec::new(), Vec::new());
            calls_and_results(&received.body, &mut calls, &mut results);
            assert_eq!(calls, results, "every call has its result, in order");
        }
        received
    }

    /// Waits until the caller has closed every hanging exchange, and returns the requests.
    pub async fn finish_unchecked(self) -> Vec<ReceivedRequest> {
        let _ = self.stop.send(());
        bounded("the end of the caller's connections", self.task).await.expect("no panic in the provider");
        drop(self.refusals);
        let log = self.log.lock().expect("no panic");
        assert!(log.exchanges.is_empty(), "{} exchanges were left over", log.exchanges.len());
        log.received.clone()
    }
}

/// The size of the conversation in a request body of any protocol.
fn conversation_bytes(body: &Value) -> usize {
    ["messages", "input", "contents"].iter().filter_map(|name| body[*name].as_array()).map(|list| user_bytes(list)).sum()
}

/// Size of the messages, without the system prompt that some protocols put before them.
fn user_bytes(messages: &[Value]) -> usize {
    messages.iter().filter(|message| message["role"] != "system").map(|message| message.to_string().len()).sum()
}

/// Collects the ids of all tool calls and tool results in a body.
fn calls_and_results(value: &Value, calls: &mut Vec<String>, results: &mut Vec<String>) {
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match value {
        Value::Array(values) => values.iter().for_each(|value| calls_and_results(value, calls, results)),
        Value::Object(fields) => {
            match fields.get("type").and_then(Value::as_str) {
                Some("tool_use") => calls.push(id(&value["id"])),
                Some("tool_result") => results.push(id(&value["tool_use_id"])),
                Some("function_call") => calls.push(id(&value["call_id"])),
                Some("function_call_output") => results.push(id(&value["call_id"])),
                Some("function") if fields.contains_key("id") => calls.push(id(&value["id"])),
                _ if fields.contains_key("tool_call_id") => results.push(id(&value["tool_call_id"])),
                _ => {}
            }
            if let Some(call) = fields.get("toolUse") {
                calls.push(id(&call["toolUseId"]));
            }
            if let Some(result) = fields.get("toolResult") {
                results.push(id(&result["toolUseId"]));
            }
            if let Some(call) = fields.get("functionCall") {
                calls.push(id(&call["id"]));
            }
            if let Some(response) = fields.get("functionResponse") {
                results.push(id(&response["id"]));
            }
            fields.values().for_each(|value| calls_and_results(value, calls, results));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn accept(listener: TcpListener, log: Arc<Mutex<Log>>, mut stopped: tokio::sync::oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let (closing, closed) = tokio::sync::watch::channel(false);
    for number in 0.. {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.expect("a connection");
                connections.spawn(serve(stream, number, log.clone(), closed.clone()));
            }
            _ = &mut stopped => break,
        }
    }
    let _ = closing.send(true);
    while let Some(ended) = connections.join_next().await {
        ended.expect("no panic in a connection");
    }
}

async fn serve(mut stream: TcpStream, connection: usize, log: Arc<Mutex<Log>>, mut closed: tokio::sync::watch::Receiver<bool>) {
    stream.set_nodelay(true).expect("a connection");
    let mut buffer = Vec::new();
    loop {
        let received = tokio::select! {
            received = receive(&mut stream, &mut buffer, connection) => received,
            _ = closed.wait_for(|closed| *closed) => return,
        };
        let Some(received) = received else { return };
        let (exchange, is_page) = {
            let mut log = log.lock().expect("no panic");
            let (path, _) = received.path.split_once('?').unwrap_or((&received.path, ""));
            let matches = |known: &str| match known.strip_prefix('*') {
                Some(end) => path.ends_with(end),
                None => received.path == known,
            };
            let page = log.pages.iter().find(|(path, _)| matches(path)).map(|(_, page)| page.clone());
            if page.is_some() || received.method == "GET" || path.ends_with("/api/show") {
                log.asked.push(format!("{} {}", received.method, received.path));
                (page.unwrap_or_else(|| Exchange::error(404, "")), true)
            } else {
                let refusal = log.judge.refuse(&received);
                let too_large = log.too_large.clone().filter(|(bytes, _)| conversation_bytes(&received.body) > *bytes);
                let rejection = refusal.or(too_large.map(|(_, rejection)| rejection));
                let next = rejection.or_else(|| log.exchanges.pop_front());
                let next = next.or_else(|| log.responder.as_mut().map(|respond| respond(&received)));
                let next = next.or_else(|| log.otherwise.clone()).expect("an exchange for every request");
                log.judge.add_answer(&received, next.status);
                log.received.push(received);
                (next, false)
            }
        };
        let writes = writes(&exchange);
        for bytes in if exchange.drip { writes } else { vec![writes.concat()] } {
            let sent = stream.write_all(&bytes).await;
            // A caller need not read a page to its end.
            assert!(sent.is_ok() || is_page, "the caller listens: {sent:?}");
        }
        match exchange.end {
            End::Whole => {}
            End::Cut | End::Raw => return,
            End::Endless => {
                let piece = chunk(exchange.pieces.last().expect("a piece to repeat"));
                let mut sent = 0;
                while sent < ENDLESS_BYTES && stream.write_all(&piece).await.is_ok() {
                    sent += piece.len();
                }
                return;
            }
            End::Hang => {
                let mut rest = [0; 64];
                assert!(matches!(stream.read(&mut rest).await, Ok(0) | Err(_)), "nothing comes but the end");
                return;
            }
        }
    }
}

/// The response of an exchange: the head, and each piece as a chunk (RFC 9112, section 7.1).
fn writes(exchange: &Exchange) -> Vec<Vec<u8>> {
    if exchange.end == End::Raw {
        return exchange.pieces.clone();
    }
    let mut head = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n", exchange.status);
    for (name, value) in &exchange.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let end = (exchange.end == End::Whole).then(|| b"0\r\n\r\n".to_vec());
    std::iter::once(head.into_bytes()).chain(exchange.pieces.iter().map(|piece| chunk(piece))).chain(end).collect()
}

fn chunk(piece: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()
}

/// Reads the next request of a connection; `None` at its end.
async fn receive(stream: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> Option<ReceivedRequest> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).expect("a head in ASCII");
    let mut lines = head.lines();
    let mut request = lines.next().expect("a request line").split(' ').map(str::to_owned);
    let (method, path) = (request.next().expect("a method"), request.next().expect("a path"));
    let headers: Vec<(String, String)> =
        lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().expect("a length"));
    while buffer.len() < end + length {
        assert!(stream.read_buf(buffer).await.expect("a body") > 0, "a whole body");
    }
    let text = String::from_utf8_lossy(&buffer[end..end + length]).into_owned();
    let body = match length {
        0 => Value::Null,
        _ if text.starts_with("grant_type=") => Value::Null,
        _ => serde_json::from_str(&rules::without_surrogates(&text)).expect("a body in JSON"),
    };
    buffer.drain(..end + length);
    Some(ReceivedRequest { method, path, headers, body, text, connection })
}
