//! A connection below HTTP. It holds the connection's permit even after an upgrade to WebSocket,
//! reports written responses, and stops reading while the client does not read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::socket::Socket;
use crate::limits;

/// Set once a request upgrades the connection to a WebSocket.
pub type Wire = Arc<OnceLock<Arc<Socket>>>;

/// A stream with the flow control of WebSockets.
pub struct Line<S, H> {
    stream: S,
    wire: Wire,
    frames: Frames,
    /// The last write is pending.
    stuck: bool,
    /// How many bytes may still be read while the write is pending.
    room: usize,
    reader: Option<Waker>,
    _held: H,
}

impl<S, H> Line<S, H> {
    /// `held` is dropped when the connection closes.
    pub fn new(stream: S, wire: Wire, held: H) -> Line<S, H> {
        let frames = Frames::Head { matched: 0 };
        Line { stream, wire, frames, stuck: false, room: 0, reader: None, _held: held }
    }

    /// Records whether a write is pending.
    fn track<T>(&mut self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if self.wire.get().is_none() {
            return polled;
        }
        if polled.is_pending() {
            if !self.stuck {
                self.stuck = true;
                self.room = limits::HTTP_BODY_BYTES_MAX;
            }
            return polled;
        }
        self.stuck = false;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        polled
    }
}

impl<S: AsyncRead + Unpin, H: Unpin> AsyncRead for Line<S, H> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.stuck && this.room == 0 {
            this.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
        this.room = this.room.saturating_sub(buffer.filled().len() - before);
        polled
    }
}

impl<S: AsyncWrite + Unpin, H: Unpin> AsyncWrite for Line<S, H> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        if let (Poll::Ready(Ok(written)), Some(opened)) = (&polled, this.wire.get()) {
            let mut left = *written;
            for slice in slices {
                let part = &slice[..left.min(slice.len())];
                this.frames.scan(part, |length| opened.written(length));
                left -= part.len();
            }
        }
        this.track(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_flush(cx);
        this.track(polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.track(polled)
    }
}

/// Parses the server's output from the head of the 101 response on: unmasked frames (RFC 6455,
/// section 5.2).
enum Frames {
    Head { matched: usize },
    Start { bytes: [u8; 10], known: usize },
    Payload { text: bool, length: u64, left: u64 },
}

impl Frames {
    const START: Frames = Frames::Start { bytes: [0; 10], known: 0 };

    /// Calls `texts` with the length of each completed text frame.
    fn scan(&mut self, mut bytes: &[u8], mut texts: impl FnMut(u64)) {
        while let Some((&first, rest)) = bytes.split_first() {
            match self {
                Frames::Head { matched } => {
                    bytes = rest;
                    *matched = match first {
                        byte if byte == b"\r\n\r\n"[*matched] => *matched + 1,
                        b'\r' => 1,
                        _ => 0,
                    };
                    if *matched == 4 {
                        *self = Frames::START;
                    }
                }
                Frames::Start { bytes: head, known } => {
                    bytes = rest;
                    head[*known] = first;
                    *known += 1;
                    let number =
                        |range: std::ops::Range<usize>| head[range].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
                    let length = match (*known, head[1] & 0x7f) {
                        (2, short @ ..126) => u64::from(short),
                        (4, 126) => number(2..4),
                        (10, 127) => number(2..10),
                        _ => continue,
                    };
                    let text = head[0] & 0x0f == 1;
                    *self = if length == 0 { Frames::START } else { Frames::Payload { text, length, left: length } };
                }
                Frames::Payload { text, length, left } => {
                    let taken = (*left).min(bytes.len() as u64);
                    *left -= taken;
                    bytes = &bytes[taken as usize..];
                    if *left == 0 {
                        if *text {
                            texts(*length);
                        }
                        *self = Frames::START;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_at_any_chunk_size() {
        let mut output = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n".to_vec();
        output.extend(b"\x81\x05hello\x89\x00\x81\x7e\x00\xc8");
        output.extend([b'x'; 200]);
        output.extend(b"\x89\x02hi\x81\x7f\x00\x00\x00\x00\x00\x01\x11\x70");
        output.extend([b'\r'; 70_000]);
        output.extend(b"\x81\x01x");
        for size in [1, 2, 3, 7, 1000, output.len()] {
            let (mut frames, mut texts) = (Frames::Head { matched: 0 }, Vec::new());
            output.chunks(size).for_each(|part| frames.scan(part, |length| texts.push(length)));
            assert_eq!(texts, [5, 200, 70_000, 1], "{size}");
        }
    }
}
