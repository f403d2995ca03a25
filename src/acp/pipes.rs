//! Standard input and output as asynchronous streams. Pipes and sockets are read and written
//! directly, other files through a thread.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

type Input = Box<dyn AsyncRead + Unpin + Send>;
type Output = Box<dyn AsyncWrite + Unpin + Send>;

/// Opens standard input and output of this process. Call this once, inside the Tokio runtime.
pub(crate) fn standard() -> (Input, Output) {
    let input = direct(rustix::stdio::stdin(), |fd, kind| match kind {
        FileType::Fifo => Some(Box::new(pipe::Receiver::from_owned_fd(fd).ok()?) as Input),
        FileType::Socket => Some(Box::new(socket(fd)?) as Input),
        _ => None,
    });
    let output = direct(rustix::stdio::stdout(), |fd, kind| match kind {
        FileType::Fifo => Some(Box::new(pipe::Sender::from_owned_fd(fd).ok()?) as Output),
        FileType::Socket => Some(Box::new(socket(fd)?) as Output),
        _ => None,
    });
    (input.unwrap_or_else(|| Box::new(tokio::io::stdin())), output.unwrap_or_else(|| Box::new(tokio::io::stdout())))
}

/// Opens a duplicate of `fd` with `open`, which receives the file type. None if the descriptor
/// cannot be used directly.
fn direct<T>(fd: impl AsFd, open: impl FnOnce(OwnedFd, FileType) -> Option<T>) -> Option<T> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&fd).ok()?.st_mode);
    open(fd.as_fd().try_clone_to_owned().ok()?, kind)
}

fn socket(fd: OwnedFd) -> Option<UnixStream> {
    let stream = StdUnixStream::from(fd);
    stream.set_nonblocking(true).ok()?;
    UnixStream::from_std(stream).ok()
}
