//! Serves `/rpc` WebSockets: reads messages, answers them concurrently, and writes their responses.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use jsonrpsee::types::error::reject_too_big_request;
use serde_json::json;
use soketto::connection::Error as SocketError;
use soketto::data::ByteSlice125;
use soketto::handshake::http::Server as Handshake;
use soketto::{Incoming, Receiver, Sender};
use tokio::io::BufStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{interval, timeout};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};
use tokio_util::sync::CancellationToken;

use super::dispatch::{self, Dispatcher};
use super::errors::{from_jsonrpsee, rpc_error};
use super::socket::{CallPermits, Socket, SocketMessage};
use crate::error::{Error, Kind, Result};
use crate::http::state::{AppState, ConnectionSlot};
use crate::limits;
use crate::task::TaskTracker;

type Stream = Compat<BufStream<TokioIo<Upgraded>>>;

/// Accepts a WebSocket and serves it in its own task.
pub(crate) fn upgrade(state: Arc<AppState>, mut request: Request) -> Result<Response> {
    let mut handshake = Handshake::new();
    let response = handshake
        .receive_request(&request)
        .map_err(|_| Error::new(Kind::InvalidRequest, "the WebSocket handshake is incomplete").hint("see RFC 6455, section 4.1"))?;
    let upgraded = hyper::upgrade::on(&mut request);
    let slot = request.extensions_mut().remove::<ConnectionSlot>();
    let token = request.headers().get(AUTHORIZATION).cloned();
    let headers = HeaderMap::from_iter(token.map(|token| (AUTHORIZATION, token)));
    let sockets = state.sockets.clone();
    sockets.spawn(async move {
        let _slot = slot;
        serve(state, handshake, upgraded, headers).await;
    });
    Ok(response.map(|()| Body::empty()))
}

async fn serve(state: Arc<AppState>, handshake: Handshake, upgraded: OnUpgrade, headers: HeaderMap) {
    let Ok(upgraded) = upgraded.await else { return };
    let mut builder = handshake.into_builder(BufStream::new(TokioIo::new(upgraded)).compat());
    builder.set_max_message_size(limits::FRAME_BYTES_MAX);
    let (sender, receiver) = builder.finish();
    let (outgoing, queue) = mpsc::channel(limits::RPC_MESSAGES_QUEUED_MAX);
    let socket = Arc::new(Socket::new(headers, outgoing, state.unread.clone()));
    let (closed, calls) = (socket.closed.clone(), TaskTracker::default());
    let writing = async {
        write(sender, queue).await;
        closed.cancel();
    };
    let reading = async {
        read(state, socket, receiver, &calls).await;
        calls.close();
        calls.wait().await;
    };
    tokio::join!(reading, writing);
}

/// Reads messages until the client closes the socket, or the server closes all sockets.
async fn read(state: Arc<AppState>, socket: Arc<Socket>, mut receiver: Receiver<Stream>, calls: &TaskTracker) {
    let messages = Arc::new(Semaphore::new(limits::RPC_MESSAGES_MAX));
    let next = async {
        loop {
            let Ok(permit) = messages.clone().acquire_owned().await else { return };
            let mut message = Vec::new();
            // A client from which nothing arrives for so long, not even the answer to a ping,
            // counts as disconnected.
            let Ok(received) = timeout(3 * limits::HEARTBEAT, receiver.receive(&mut message)).await else { return };
            match received {
                Ok(Incoming::Data(_)) => {
                    let (state, socket) = (state.clone(), socket.clone());
                    calls.spawn(async move {
                        let _permit = permit;
                        let closed = socket.closed.clone();
                        let _ = closed.run_until_cancelled(answer(state, socket, message)).await;
                    });
                }
                Ok(Incoming::Pong(_)) => {}
                Err(SocketError::MessageTooLarge { .. }) => {
                    let error = from_jsonrpsee(&reject_too_big_request(limits::HTTP_BODY_BYTES_MAX as u32));
                    let response = json!({ "jsonrpc": "2.0", "id": null, "error": rpc_error(&error) });
                    socket.send(response.to_string()).await;
                }
                Ok(Incoming::Closed(_)) | Err(_) => return,
            }
        }
    };
    tokio::select! {
        () = next => socket.closed.cancel(),
        () = socket.closed.cancelled() => {}
        () = state.sockets_closing.cancelled() => {}
    }
}

/// Runs the calls of a message and queues their response.
async fn answer(state: Arc<AppState>, socket: Arc<Socket>, message: Vec<u8>) {
    let queued = CancellationToken::new();
    let mut request = Request::new(Body::from(message));
    *request.method_mut() = Method::POST;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let dispatcher = Dispatcher::socket(state, socket.clone(), queued.clone());
    let Ok(mut response) = dispatch::answer(request, limits::FRAME_BYTES_MAX, dispatcher).await else { return };
    let permits = response.extensions_mut().remove::<Arc<CallPermits>>();
    let Ok(body) = response.into_body().collect().await else { return };
    // The response to a notification is empty.
    let Some(text) = String::from_utf8(body.to_bytes().into()).ok().filter(|text| !text.is_empty()) else { return };
    if socket.outgoing.send((text, permits)).await.is_ok() {
        queued.cancel();
    }
}

/// Writes messages and pings until all senders are gone or a write fails, then closes the socket.
async fn write(mut sender: Sender<Stream>, mut queue: mpsc::Receiver<SocketMessage>) {
    let mut pings = interval(limits::HEARTBEAT);
    loop {
        let written = tokio::select! {
            message = queue.recv() => match message {
                Some((text, _permits)) => write_text(&mut sender, text).await,
                None => break,
            },
            _ = pings.tick() => write_ping(&mut sender).await,
        };
        if written.is_err() {
            break;
        }
    }
    let _ = sender.close().await;
}

async fn write_text(sender: &mut Sender<Stream>, text: String) -> Result<(), SocketError> {
    sender.send_text_owned(text).await?;
    sender.flush().await
}

async fn write_ping(sender: &mut Sender<Stream>) -> Result<(), SocketError> {
    let empty: &[u8] = &[];
    sender.send_ping(ByteSlice125::try_from(empty).expect("an empty ping fits")).await?;
    sender.flush().await
}
