//! A proxy for a local socket. It can hold the bytes in each direction, and cut the connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// A direction of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToOwner,
    ToCaller,
}

/// A proxy in the place of a socket. Dropping it cuts the connections.
pub struct Proxy {
    socket: PathBuf,
    held: watch::Sender<Option<Direction>>,
    cut: Arc<Notify>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Moves the socket to `moved` and listens in its place.
    pub fn start(socket: &Path, moved: &Path) -> Proxy {
        std::fs::rename(socket, moved).unwrap();
        let listener = UnixListener::bind(socket).unwrap();
        let held = watch::Sender::new(None);
        let (moved, holds) = (moved.to_owned(), held.subscribe());
        let cut = Arc::new(Notify::new());
        let cuts = cut.clone();
        let accepting = tokio::spawn(async move {
            // Aborts the copies when it is dropped.
            let mut copies = tokio::task::JoinSet::new();
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = cuts.notified() => {
                        copies.abort_all();
                        continue;
                    }
                };
                let Ok((caller, _)) = accepted else { return };
                let Ok(owner) = UnixStream::connect(&moved).await else { continue };
                let ((from_caller, to_caller), (from_owner, to_owner)) = (caller.into_split(), owner.into_split());
                copies.spawn(copy(from_caller, to_owner, Direction::ToOwner, holds.clone()));
                copies.spawn(copy(from_owner, to_caller, Direction::ToCaller, holds.clone()));
            }
        });
        Proxy { socket: socket.into(), held, cut, accepting }
    }

    /// Holds the bytes in a direction.
    pub fn hold(&self, direction: Direction) {
        self.held.send_replace(Some(direction));
    }

    /// Passes the held bytes on.
    pub fn release(&self) {
        self.held.send_replace(None);
    }

    /// Cuts the connections. New connections are accepted.
    pub fn cut(&self) {
        self.cut.notify_one();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = std::fs::remove_file(&self.socket);
    }
}

async fn copy(
    mut from: tokio::net::unix::OwnedReadHalf,
    mut to: tokio::net::unix::OwnedWriteHalf,
    direction: Direction,
    mut held: watch::Receiver<Option<Direction>>,
) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let released = held.wait_for(|held| *held != Some(direction)).await.map(drop);
        if released.is_err() || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
