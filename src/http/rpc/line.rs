//! A connection below HTTP. It holds its slot also as a WebSocket, sees which answers have left, and does not read from whom does not read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::socket::Opened;
use crate::limits;

/// Becomes the socket's once a request of the connection opened one.
pub type Wire = Arc<OnceLock<Arc<Opened>>>;

pub struct Line<S, H> {
    stream: S,
    wire: Wire,
    frames: Frames,
    /// What was written last waits for the other end; and what may be read meanwhile.
    stuck: bool,
    room: usize,
    reader: Option<Waker>,
    _held: H,
}

impl<S, H> Line<S, H> {
    /// `held` is let go of when the connection ends, whatever it became.
    pub fn new(stream: S, wire: Wire, held: H) -> Line<S, H> {
        let frames = Frames::Head { matched: 0 };
        Line { stream, wire, frames, stuck: false, room: 0, reader: None, _held: held }
    }

    fn passed<T>(&mut self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
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
                this.frames.pass(part, |length| opened.left(length));
                left -= part.len();
            }
        }
        this.passed(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_flush(cx);
        this.passed(polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.passed(polled)
    }
}

/// What a server says from the head of its 101 on (RFC 6455, section 5.2): frames, which are not masked.
enum Frames {
    Head { matched: usize },
    Start { bytes: [u8; 10], known: usize },
    Payload { text: bool, length: u64, left: u64 },
}

impl Frames {
    const START: Frames = Frames::Start { bytes: [0; 10], known: 0 };

    /// Tells the length of each text that is complete.
    fn pass(&mut self, mut bytes: &[u8], mut texts: impl FnMut(u64)) {
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
    fn texts_are_seen_however_they_are_cut() {
        let mut said = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n".to_vec();
        said.extend(b"\x81\x05hello\x89\x00\x81\x7e\x00\xc8");
        said.extend([b'x'; 200]);
        said.extend(b"\x89\x02hi\x81\x7f\x00\x00\x00\x00\x00\x01\x11\x70");
        said.extend([b'\r'; 70_000]);
        said.extend(b"\x81\x01x");
        for size in [1, 2, 3, 7, 1000, said.len()] {
            let (mut frames, mut texts) = (Frames::Head { matched: 0 }, Vec::new());
            said.chunks(size).for_each(|part| frames.pass(part, |length| texts.push(length)));
            assert_eq!(texts, [5, 200, 70_000, 1], "{size}");
        }
    }
}
