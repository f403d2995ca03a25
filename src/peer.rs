//! Serves the calls of other nuncio processes to the sessions that this process owns.

mod calls;
mod handler;

use std::sync::{Arc, Weak};

use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::api::App;
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

/// Serves one connection until it ends or `stop` is cancelled. Turns of HTTP clients continue after
/// the end of the connection; turns of other clients are cancelled.
async fn serve_connection(app: Arc<App>, stream: UnixStream, stop: CancellationToken) {
    let (connection, reader, mut writer) = crate::rpc::connection::<()>(PEER);
    let handler = PeerHandler::new(app, connection);
    let (input, output) = stream.into_split();
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
