//! Messages behind headers, however they are cut.

use nuncio::limits;
use nuncio::lsp::{Frames, encode};

/// All bodies of a stream that comes in pieces of these sizes; the error that ended it.
fn read(stream: &[u8], mut sizes: impl Iterator<Item = usize>) -> (Vec<Vec<u8>>, Option<String>) {
    let mut frames = Frames::default();
    let mut bodies = Vec::new();
    let mut rest = stream;
    loop {
        match frames.take() {
            Ok(Some(body)) => bodies.push(body),
            Err(error) => return (bodies, Some(error)),
            Ok(None) if rest.is_empty() => return (bodies, None),
            Ok(None) => {
                let (piece, after) = rest.split_at(sizes.next().unwrap().clamp(1, rest.len()));
                frames.buffer.extend_from_slice(piece);
                rest = after;
            }
        }
    }
}

#[test]
fn messages_are_whole_wherever_the_stream_is_cut() {
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
fn what_is_no_message_ends_the_stream() {
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
