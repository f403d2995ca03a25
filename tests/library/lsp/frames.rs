//! Framing of messages with headers, for streams split at any position.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::pin::Pin;
use std::task::{Context, Poll};

use nuncio::internal::limits;
use nuncio::internal::rpc::headers::{HeaderReader, header};
use tokio::io::{AsyncRead, ReadBuf};

/// A stream that returns at most one of these pieces per read.
struct Pieces(VecDeque<Vec<u8>>);

impl AsyncRead for Pieces {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        if let Some(mut piece) = self.0.pop_front() {
            let rest = piece.split_off(piece.len().min(buffer.remaining()));
            buffer.put_slice(&piece);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn encode(body: &[u8]) -> Vec<u8> {
    [header(body.len()).as_bytes(), body].concat()
}

/// Reads a stream in pieces of these sizes. Returns the message bodies, and the error if reading
/// failed.
fn read(stream: &[u8], mut sizes: impl Iterator<Item = usize>) -> (Vec<Vec<u8>>, Option<String>) {
    let (mut pieces, mut rest) = (VecDeque::new(), stream);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(sizes.next().unwrap().clamp(1, rest.len()));
        pieces.push_back(piece.to_vec());
        rest = after;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut messages = HeaderReader::new(Pieces(pieces), limits::LSP_MESSAGE_BYTES_MAX);
        let mut bodies = Vec::new();
        loop {
            match messages.next().await {
                Ok(Some(body)) => bodies.push(body),
                Ok(None) => return (bodies, None),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::InvalidData);
                    return (bodies, Some(error.to_string()));
                }
            }
        }
    })
}

#[test]
fn messages_are_complete_wherever_the_stream_is_split() {
    let mut stream = encode(b"{}");
    stream.extend_from_slice(b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:  4 \r\n\r\n\"\xc3\xa9\"");
    stream.extend(encode(b""));
    stream.extend(encode(b"Content-Length: 3\r\n\r\nabc"));
    let bodies: Vec<Vec<u8>> = [&b"{}"[..], b"\"\xc3\xa9\"", b"", b"Content-Length: 3\r\n\r\nabc"].map(<[u8]>::to_vec).to_vec();
    for first in 1..stream.len() {
        let sizes = std::iter::once(first).chain(std::iter::repeat(stream.len()));
        assert_eq!(read(&stream, sizes), (bodies.clone(), None), "cut at {first}");
    }
    for size in 1..20 {
        assert_eq!(read(&stream, std::iter::repeat(size)), (bodies.clone(), None), "in pieces of {size}");
    }
}

#[test]
fn invalid_message_ends_the_stream() {
    let long = format!("X: {}\r\n\r\n", "x".repeat(limits::LSP_HEADER_BYTES_MAX));
    let endless = "x".repeat(limits::LSP_HEADER_BYTES_MAX + 1);
    let large = format!("Content-Length: {}\r\n\r\n", limits::LSP_MESSAGE_BYTES_MAX + 1);
    let cases = [
        ("Content-Length: -1\r\n\r\n", "invalid Content-Length: \" -1\""),
        ("Content-Length: 2x\r\n\r\n", "invalid Content-Length: \" 2x\""),
        ("Content-Length: 99999999999999999999999\r\n\r\n", "invalid Content-Length"),
        ("Content-Type: a\r\n\r\n{}", "header without Content-Length: \"Content-Type: a\""),
        ("\r\n\r\n", "header without Content-Length: \"\""),
        (&large, "message too large: 16777217 bytes"),
        (&long, "header too large: 4099 bytes"),
        (&endless, "no end of header in 4097 bytes"),
    ];
    for (stream, why) in cases {
        let whole = [encode(b"{}"), stream.as_bytes().to_vec()].concat();
        let (bodies, error) = read(&whole, std::iter::once(whole.len()));
        assert_eq!(bodies, [b"{}"], "{stream}");
        assert!(error.as_ref().is_some_and(|error| error.starts_with(why)), "{stream}: {error:?}");
    }
}
