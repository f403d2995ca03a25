//! Serves the calls of other nuncio processes to the sessions that this process owns.

mod calls;
mod handler;

use std::sync::{Arc, Weak};

use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "http")]
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::api::App;
#[cfg(feature = "http")]
use crate::cluster::{Cluster, answer_greeting};
#[cfg(feature = "http")]
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::local_socket::{PEER, PeerListener, ServePeers, is_own_user};
use handler::PeerHandler;

/// Maximum number of processes that are connected to one process.
const PEERS_MAX: usize = 256;

/// Returns the function that serves the calls of other processes for `app`.
pub(crate) fn serve(app: Weak<App>) -> ServePeers {
    Box::new(move |listener| drop(crate::task::spawn(accept(app.clone(), listener))))
}

/// Accepts connections until `stop` is cancelled.
async fn accept(app: Weak<App>, PeerListener { listener, stop, tasks }: PeerListener) {
    let slots = Arc::new(Semaphore::new(PEERS_MAX));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of another process");
                tokio::time::sleep(limits::ACCEPT_PAUSE).await;
                continue;
            }
        };
        match stream.peer_cred() {
            Ok(peer) if is_own_user(peer.uid()) => {}
            Ok(peer) => {
                tracing::warn!(uid = peer.uid(), "a connection of another user was refused");
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "a connection of an unknown user was refused");
                continue;
            }
        }
        let Ok(slot) = slots.clone().try_acquire_owned() else {
            tracing::warn!("a connection was refused: {} processes are connected", PEERS_MAX);
            continue;
        };
        let (app, stop) = (app.clone(), stop.clone());
        tasks.spawn(async move {
            let _slot = slot;
            if let Some(app) = app.upgrade() {
                serve_connection(app, stream, stop).await;
            }
        });
    }
}

/// Serves a connection of another node until it ends, or passes it on to the process with this data
/// directory that the node wants to reach. Fails if the node does not prove the secret of the
/// cluster in time; otherwise calls `admitted`.
#[cfg(feature = "http")]
pub(crate) async fn serve_node<S>(app: &Arc<App>, cluster: &Cluster, mut stream: S, admitted: impl FnOnce()) -> Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let greeted = tokio::time::timeout(limits::PEER_HELLO, answer_greeting(&mut stream, cluster)).await;
    let node = greeted.map_err(|_| Error::new(Kind::Timeout, "it did not introduce itself"))??;
    tracing::debug!(node.name, node.socket, "another node is connected");
    admitted();
    let peers = app.sessions().await?.peers();
    let (stop, tasks) = peers.serving();
    let served = match node.socket {
        None => tasks.spawn(serve_connection(app.clone(), stream, stop)),
        Some(socket) => tasks.spawn(pass_on(peers.open(&socket)?, stream, stop)),
    };
    served.await.map_err(|_| Error::internal("serving a node panicked"))
}

/// Passes bytes on between another node and a process with this data directory, until one of them
/// ends the connection or `stop` is cancelled.
#[cfg(feature = "http")]
async fn pass_on(mut process: UnixStream, mut node: impl AsyncRead + AsyncWrite + Unpin, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        ended = tokio::io::copy_bidirectional(&mut process, &mut node) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a passed on connection ended");
            }
        }
    }
}

/// Serves one connection until it ends or `stop` is cancelled. Turns of HTTP clients continue after
/// the end of the connection; turns of other clients are cancelled.
async fn serve_connection(app: Arc<App>, stream: impl AsyncRead + AsyncWrite + Send + 'static, stop: CancellationToken) {
    let (connection, reader, mut writer) = crate::rpc::connection::<()>(PEER);
    let handler = PeerHandler::new(app, connection);
    let (input, output) = tokio::io::split(stream);
    let mut writing = crate::task::spawn(async move { writer.run(output, ()).await });
    let stays = tokio::select! {
        read = reader.run(input, &handler) => {
            read.inspect_err(|error| tracing::debug!(?error, "reading from another process failed")).is_err()
        }
        () = handler.refused() => true,
        () = stop.cancelled() => true,
        _ = &mut writing => false,
    };
    // The reason of a refusal is written even if the other process sends nothing more.
    let stays = stays || handler.is_refused();
    reader.cancel_handlers();
    if stays {
        // Write the responses of the calls that are ending.
        let ended = tokio::time::timeout(limits::PEER_DRAIN, async {
            reader.finish().await;
            let _ = (&mut writing).await;
        });
        let _ = ended.await;
    }
    writing.abort();
}
