//! Properties of the line reader and the message parser: lines are independent of the chunks in
//! which they arrive, and any input is parsed or refused.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::random::property;
use nuncio::internal::limits::LINE_START_BYTES;
use nuncio::internal::rpc::Framing;
use nuncio::internal::rpc::lines::{Line, LineReader};
use nuncio::internal::rpc::message::ReceivedMessage;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncRead, ReadBuf};

const BYTES_MAX: usize = 64;

/// An input that arrives in pieces, with a `Pending` before each of them.
struct Pieces {
    pieces: Vec<Vec<u8>>,
    waited: bool,
}

impl AsyncRead for Pieces {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        self.waited = !self.waited;
        if self.waited {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(piece) = self.pieces.first_mut() {
            let rest = piece.split_off(piece.len().min(buffer.remaining()));
            buffer.put_slice(piece);
            *piece = rest;
            if piece.is_empty() {
                self.pieces.remove(0);
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn read(pieces: Vec<Vec<u8>>) -> Vec<Line> {
    let pieces = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut lines = LineReader::new(Pieces { pieces, waited: false }, BYTES_MAX);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        found
    })
}

/// The expected lines, by a simpler implementation.
fn expected(bytes: &[u8]) -> Vec<Line> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let last = lines.pop().unwrap_or_default();
    let too_long = |line: &[u8]| Line::TooLong(line[..BYTES_MAX.min(LINE_START_BYTES)].to_vec());
    let line = |line: &[u8]| match line.len() > BYTES_MAX {
        true => too_long(line),
        false => Line::Text(line.strip_suffix(b"\r").unwrap_or(line).to_vec()),
    };
    let unended = (!last.is_empty()).then(|| if last.len() > BYTES_MAX { too_long(last) } else { Line::Text(last.to_vec()) });
    lines.into_iter().map(line).chain(unended).collect()
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![vec(any::<u8>(), 0..20), vec(Just(b'x'), 60..70), Just(b"{}\r".to_vec()), Just(Vec::new())];
    vec((line, any::<bool>()), 0..8)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, ends)| line.into_iter().chain(ends.then_some(b'\n'))).collect())
}

/// A small JSON object that is or resembles a message.
fn message() -> impl Strategy<Value = String> {
    let scalar =
        prop::sample::select(vec!["null", "1", "-1.5e300", "\"a\"", "\"\\ud800\"", "[]", "{}", "true", "\"2.0\"", "{\"code\":1}"]);
    let key = prop::sample::select(vec!["jsonrpc", "id", "method", "params", "result", "error", "x"]);
    vec((key, scalar), 0..6).prop_map(|members| {
        let members: Vec<String> = members.into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{\"jsonrpc\":\"2.0\",{}}}", members.join(",")).replace(",}", "}")
    })
}

#[test]
fn lines_do_not_depend_on_chunks() {
    proptest!(property("streams", 256), |(bytes in bytes(), cuts in vec(0..200_usize, 0..6))| {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| bytes[cut[0]..cut[1]].to_vec()).collect();
        prop_assert_eq!(read(pieces), expected(&bytes));
    });
}

#[test]
fn parsed_message_survives_a_round_trip() {
    proptest!(property("messages", 256), |(bytes in vec(any::<u8>(), 0..64), text in message())| {
        let _ = ReceivedMessage::parse(&bytes);
        // A parsed message is the same after it is written and parsed again.
        if let Ok(incoming) = ReceivedMessage::parse(text.as_bytes()) {
            let mut written = Vec::new();
            match &incoming {
                ReceivedMessage::Request { id, method, params } => Framing::Lines.request(id, method, params, &mut written),
                ReceivedMessage::Notification { method, params } => Framing::Lines.notification(method, params, &mut written),
                ReceivedMessage::Response { id, result: Ok(result) } => {
                    Framing::Lines.response(id, &Ok(result.clone()), &mut written);
                }
                ReceivedMessage::Response { result: Err(_), .. } => return Ok(()),
            }
            prop_assert_eq!(written.pop(), Some(b'\n'));
            prop_assert!(!written.contains(&b'\n'));
            prop_assert_eq!(ReceivedMessage::parse(&written).ok(), Some(incoming));
        }
    });
}
