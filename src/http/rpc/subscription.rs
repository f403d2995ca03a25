//! Event streams as subscriptions of a WebSocket.

use std::sync::Arc;

use jsonrpsee::server::{IdProvider, RandomIntegerIdProvider};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::socket::Socket;
use crate::api::{EVENT, EventStream, SubscriptionParams, SubscriptionResult};
use crate::http::state::AppState;
use crate::limits;

/// Starts a subscription, which sends the events of a stream once `queued` is cancelled. Returns
/// the id of the subscription.
pub(crate) fn start(
    state: &Arc<AppState>,
    socket: &Arc<Socket>,
    queued: &CancellationToken,
    permit: OwnedSemaphorePermit,
    stream: EventStream,
) -> Value {
    let id = Value::from(RandomIntegerIdProvider.next_id());
    let (state, socket, queued, ended) = (state.clone(), socket.clone(), queued.clone(), socket.follow(&id));
    let subscription = id.clone();
    state.subscriptions.clone().spawn(async move {
        let _permit = permit;
        tokio::select! {
            () = ended.cancelled() => {}
            () = async {
                queued.cancelled().await;
                send_events(&state, &socket, &subscription, stream).await;
            } => {}
        }
        socket.forget(&subscription);
    });
    id
}

/// Sends events with their cursors, `synced` once the history is sent, and `ended` when the stream
/// ends or the token is revoked.
async fn send_events(state: &Arc<AppState>, socket: &Socket, id: &Value, mut stream: EventStream) {
    let send = async |result: SubscriptionResult<'_>| {
        let params = SubscriptionParams { subscription: id, result };
        socket.send(json!({ "jsonrpc": "2.0", "method": EVENT, "params": params }).to_string()).await
    };
    loop {
        let next = tokio::time::timeout(limits::HEARTBEAT, stream.next(&state.ending)).await;
        if socket.client(state).is_err() {
            break;
        }
        let Ok(next) = next else { continue };
        let item = match next {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(error = %error, "a subscription failed");
                break;
            }
        };
        for result in item.results() {
            if !send(result).await {
                return;
            }
        }
    }
    send(SubscriptionResult::Ended { ended: true }).await;
}
