//! A collector of traces: receives OTLP over HTTP (opentelemetry-proto, `ExportTraceServiceRequest`
//! in protobuf) and keeps the requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub struct Collector {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Export>>>,
    _accepting: tokio::task::JoinHandle<()>,
}

/// One request to the collector.
#[derive(Clone, Debug)]
pub struct Export {
    pub path: String,
    pub body: Vec<u8>,
}

/// A span. Ids are hexadecimal digits; the parent of a root span is empty.
#[derive(Debug)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
}

impl Collector {
    pub async fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received: Arc<Mutex<Vec<Export>>> = Arc::default();
        let into = received.clone();
        let _accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, into.clone()));
            }
        });
        Collector { address, received, _accepting }
    }

    pub fn requests(&self) -> Vec<Export> {
        self.received.lock().unwrap().clone()
    }
}

/// Serves the requests of a connection, one after another, until the connection ends.
async fn serve(stream: TcpStream, into: Arc<Mutex<Vec<Export>>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap().to_string();
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).await?;
            if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = said.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        into.lock().unwrap().push(Export { path, body });
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
    }
}

impl Export {
    /// ResourceSpans (1) → ScopeSpans (2) → Span (2): trace_id 1, span_id 2, parent_span_id 4,
    /// name 5.
    pub fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for resource in fields(&self.body, 1) {
            for scope in fields(resource, 2) {
                for span in fields(scope, 2) {
                    let id = |number| hex(fields(span, number).first().copied().unwrap_or_default());
                    let name = String::from_utf8(fields(span, 5)[0].to_vec()).unwrap();
                    spans.push(Span { trace: id(1), id: id(2), parent: id(4), name });
                }
            }
        }
        spans
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The length-delimited fields of a message with this number (protobuf encoding, wire type 2).
fn fields(mut message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let length = match tag & 7 {
            0 => {
                varint(&mut message);
                0
            }
            1 => 8,
            2 => varint(&mut message) as usize,
            5 => 4,
            other => panic!("wire type {other}"),
        };
        let (field, rest) = message.split_at(length);
        message = rest;
        if tag & 7 == 2 && tag >> 3 == wanted {
            found.push(field);
        }
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = message.split_first().unwrap();
        *message = rest;
        value |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte & 128 == 0 {
            return value;
        }
    }
}
