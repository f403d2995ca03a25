//! A reader that reports the end of the input.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Passes the input on unchanged, and cancels `ended` at its end.
pub(super) struct EndOfInput<R> {
    pub input: R,
    pub ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EndOfInput<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let (before, empty) = (buffer.filled().len(), buffer.remaining() == 0);
        let read = Pin::new(&mut self.input).poll_read(cx, buffer);
        let failed = matches!(&read, Poll::Ready(Err(_)));
        if failed || (read.is_ready() && buffer.filled().len() == before && !empty) {
            self.ended.cancel();
        }
        read
    }
}
