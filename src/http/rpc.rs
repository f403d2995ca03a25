//! `/rpc`: the rows of the table as JSON-RPC over POST and WebSocket, and the stream of events as a subscription, by jsonrpsee.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::UPGRADE;
use axum::response::{IntoResponse, Response};
use jsonrpsee::core::server::{PendingSubscriptionSink, SubscriptionMessage};
use jsonrpsee::server::{BatchRequestConfig, Extensions, PingConfig, RpcModule, Server, ServerConfig, ServerHandle, StopHandle};
use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::answer::Failure;
use super::routes::TheDoor;
use super::{Door, params, prompt};
use crate::api::{Client, Cx, Entry, EventStream, FOLLOW, FollowParams, METHODS, Shown};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::rpc::message::frame::error_object;

/// What a subscription's notifications are called, and how it is ended.
const EVENT: &str = "_nuncio/events/event";
const UNFOLLOW: &str = "_nuncio/events/unfollow";

/// The module, and what ends its connections.
pub struct Rpc {
    module: RpcModule<()>,
    stop: StopHandle,
    handle: ServerHandle,
}

impl Rpc {
    pub fn new() -> Result<Rpc> {
        let (stop, handle) = jsonrpsee::server::stop_channel();
        let mut module = RpcModule::new(());
        let wrong = |error: jsonrpsee::server::RegisterMethodError| Error::internal(format!("a row of /rpc: {error}"));
        for entry in METHODS {
            let called = move |params: Params<'static>, _: Arc<()>, extensions: Extensions| call(entry, params, extensions);
            module.register_async_method(entry.name, called).map_err(wrong)?;
        }
        module.register_subscription(FOLLOW, EVENT, UNFOLLOW, follow).map_err(wrong)?;
        Ok(Rpc { module, stop, handle })
    }

    pub fn stop(&self) {
        let _ = self.handle.stop();
    }
}

pub async fn serve(Extension(door): TheDoor, request: Request) -> Response {
    match answer(&door, request).await {
        Ok(response) => response,
        Err(error) => Failure(error).into_response(),
    }
}

async fn answer(door: &Arc<Door>, request: Request) -> Result<Response> {
    let rpc = match door.rpc.get() {
        Some(rpc) => rpc,
        None => {
            let made = Rpc::new()?;
            door.rpc.get_or_init(|| made)
        }
    };
    let config = ServerConfig::builder()
        .max_connections(u32::MAX >> 4)
        .max_request_body_size(limits::HTTP_BODY_BYTES_MAX as u32)
        .max_response_body_size(limits::FRAME_BYTES_MAX as u32)
        .set_batch_request_config(BatchRequestConfig::Limit(limits::RPC_BATCH_MAX))
        .set_message_buffer_capacity(limits::RPC_MESSAGES_QUEUED_MAX)
        .enable_ws_ping(PingConfig::new().ping_interval(limits::HEARTBEAT).inactive_limit(3 * limits::HEARTBEAT))
        .build();
    let is_socket = request.headers().contains_key(UPGRADE);
    let request = if is_socket {
        request
    } else if request.method() == Method::GET {
        return Err(Error::new(Kind::MethodNotAllowed, "/rpc takes POST, and WebSockets"));
    } else {
        params::is_plain_json(request.headers())?;
        let (head, body) = request.into_parts();
        Request::from_parts(head, Body::from(params::bytes(door, body).await?))
    };
    let mut service = Server::builder().set_config(config).to_service_builder().build(rpc.module.clone(), rpc.stop.clone());
    if is_socket {
        drop(door.sockets.spawn(service.on_session_closed()));
    }
    let response = service.call(request).await.map_err(|error| Error::internal(format!("/rpc: {error}")))?;
    Ok(response.map(Body::new))
}

/// What the gate put into the request.
fn context(extensions: &Extensions) -> Result<(Arc<Door>, Cx)> {
    let found = extensions.get::<Arc<Door>>().zip(extensions.get::<Arc<Client>>());
    let (door, client) = found.ok_or_else(|| Error::internal("a request that did not pass the gate"))?;
    let cx = Cx::new(door.nuncio.clone(), prompt::attending(door, client), CancellationToken::new());
    Ok((door.clone(), cx))
}

async fn call(entry: &'static Entry, params: Params<'static>, extensions: Extensions) -> Result<Value, ErrorObjectOwned> {
    let called = async {
        let (door, cx) = context(&extensions)?;
        let params: Value = params.parse().map_err(|error| Error::invalid_params(error.message()))?;
        door.to_its_end(async move { entry.run(cx, params).await?.result }).await
    };
    called.await.map_err(|error| told(&error))
}

fn told(error: &Error) -> ErrorObjectOwned {
    let object = error_object(error);
    ErrorObjectOwned::owned(error.kind.row().rpc, error.to_string(), Some(object["data"].clone()))
}

/// Sends events with their cursors, `synced` once, and `ended` when nothing more will come.
async fn follow(params: Params<'static>, pending: PendingSubscriptionSink, _: Arc<()>, extensions: Extensions) {
    let opened = async {
        let (door, cx) = context(&extensions)?;
        let params: Value = params.parse().map_err(|error| Error::invalid_params(error.message()))?;
        let params: FollowParams = serde_path_to_error::deserialize(params)
            .map_err(|error| Error::invalid_params(format!("{}: {}", error.path(), error.inner())))?;
        Ok((door, EventStream::open(&cx, params).await?))
    };
    let (door, mut stream) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return pending.reject(told(&error)).await,
    };
    let _telling = door.telling.token();
    let Ok(sink) = pending.accept().await else { return };
    let send = async |value: Value| match SubscriptionMessage::new(EVENT, sink.subscription_id(), &value) {
        Ok(message) => sink.send(message).await.is_ok(),
        Err(_) => false,
    };
    loop {
        let next = tokio::select! {
            next = stream.next(&door.ending) => next,
            () = sink.closed() => return,
        };
        let values: Vec<Value> = match next {
            Ok(Some(Shown::Synced(cursor))) => vec![json!({ "synced": cursor })],
            Ok(Some(Shown::Events(events))) => {
                events.iter().map(|(cursor, event)| json!({ "cursor": cursor, "event": event })).collect()
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(error = %error, "a subscription broke off");
                break;
            }
        };
        for value in values {
            if !send(value).await {
                return;
            }
        }
    }
    send(json!({ "ended": true })).await;
}
