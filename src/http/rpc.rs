//! `/rpc`: the method table as JSON-RPC over POST and WebSocket, and the event stream as a
//! subscription. Uses jsonrpsee.

mod guard;
pub mod line;
mod socket;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use jsonrpsee::core::middleware::RpcServiceBuilder;
use jsonrpsee::core::server::{PendingSubscriptionSink, SubscriptionMessage};
use jsonrpsee::server::ws::is_upgrade_request;
use jsonrpsee::server::{
    BatchRequestConfig, Extensions, PingConfig, RpcModule, Server, ServerConfig, ServerHandle, StopHandle, TowerServiceBuilder,
};
use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::Service;
use tower::layer::util::{Identity, Stack};

use super::params;
use super::responder::attach_responder;
use super::response::ApiError;
use super::state::{AppState, StateExtension};
use crate::api::{CallContext, Client, ClientRole, METHODS, MethodKind, MethodRow, StreamItem};
use crate::error::{Error, Kind, Result};
use crate::limits;
use guard::{Guard, Shaped, rpc_error};
use line::Wire;
use socket::Socket;

/// The notification of a subscription.
const EVENT: &str = "_nuncio/events/event";
/// The method that ends a subscription.
const UNFOLLOW: &str = "_nuncio/events/unfollow";

/// The JSON-RPC service.
pub struct Rpc {
    module: RpcModule<()>,
    services: TowerServiceBuilder<Stack<Guard, Identity>, Identity>,
    /// Limits how many kibibytes of responses all sockets may leave unread.
    unread: Arc<Semaphore>,
    stop: StopHandle,
    handle: ServerHandle,
}

impl Rpc {
    /// Registers all methods.
    pub fn new() -> Result<Rpc> {
        let (stop, handle) = jsonrpsee::server::stop_channel();
        let mut module = RpcModule::new(());
        let wrong =
            |error: jsonrpsee::server::RegisterMethodError| Error::internal(format!("registering a method of /rpc: {error}"));
        for row in METHODS {
            if row.kind == MethodKind::Stream {
                let opened = move |params, pending, _: Arc<()>, extensions| follow(row, params, pending, extensions);
                module.register_subscription(row.name, EVENT, UNFOLLOW, opened).map_err(wrong)?;
            } else {
                let called = move |params: Params<'static>, _: Arc<()>, extensions: Extensions| call(row, params, extensions);
                module.register_async_method(row.name, called).map_err(wrong)?;
            }
        }
        let ping = PingConfig::new().ping_interval(limits::HEARTBEAT).inactive_limit(3 * limits::HEARTBEAT);
        let config = ServerConfig::builder()
            // Connections are limited where they are accepted.
            .max_connections(u32::MAX >> 4)
            .max_request_body_size(limits::HTTP_BODY_BYTES_MAX as u32)
            .max_response_body_size(limits::FRAME_BYTES_MAX as u32)
            .max_subscriptions_per_connection(limits::RPC_SUBSCRIPTIONS_MAX)
            .set_batch_request_config(BatchRequestConfig::Limit(limits::RPC_BATCH_MAX))
            .set_message_buffer_capacity(limits::RPC_MESSAGES_QUEUED_MAX)
            .enable_ws_ping(ping)
            .build();
        let guarded = RpcServiceBuilder::new().layer(Guard);
        let services = Server::builder().set_config(config).set_rpc_middleware(guarded).to_service_builder();
        let unread = Arc::new(Semaphore::new(limits::RPC_UNREAD_BYTES_MAX >> 10));
        Ok(Rpc { module, services, unread, stop, handle })
    }

    /// Closes all sockets.
    pub fn stop(&self) {
        let _ = self.handle.stop();
    }
}

/// `POST /rpc` and WebSockets.
pub async fn serve(Extension(state): StateExtension, request: Request) -> Response {
    match answer(&state, request).await {
        Ok(response) => response,
        Err(error) => ApiError(error).into_response(),
    }
}

async fn answer(state: &Arc<AppState>, request: Request) -> Result<Response> {
    let rpc = match state.rpc.get() {
        Some(rpc) => rpc,
        None => {
            let created = Rpc::new()?;
            state.rpc.get_or_init(|| created)
        }
    };
    let is_socket = request.method() == Method::GET && is_upgrade_request(&request);
    let mut request = request;
    let mut opening = None;
    if is_socket {
        // The token is checked again for each call.
        let token = request.headers().get(AUTHORIZATION).cloned();
        let headers = HeaderMap::from_iter(token.map(|token| (AUTHORIZATION, token)));
        let opened = Arc::new(Socket::new(headers, rpc.unread.clone()));
        opening = request.extensions().get::<Wire>().cloned().zip(Some(opened.clone()));
        request.extensions_mut().insert(opened);
    } else if request.method() == Method::GET {
        return Err(Error::new(Kind::MethodNotAllowed, "/rpc supports POST and WebSocket"));
    } else {
        params::is_plain_json(request.headers())?;
        let (mut head, body) = request.into_parts();
        head.headers.remove(UPGRADE);
        head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request = Request::from_parts(head, Body::from(params::bytes(state, body).await?));
    }
    let mut service = rpc.services.clone().build(rpc.module.clone(), rpc.stop.clone());
    if is_socket {
        drop(state.sockets.spawn(service.on_session_closed()));
    }
    let response = service.call(request).await.map_err(|error| Error::internal(format!("/rpc: {error}")))?;
    if is_socket && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(Error::new(Kind::InvalidRequest, "the WebSocket handshake is incomplete").hint("see RFC 6455, section 4.1"));
    }
    if let Some((wire, opened)) = opening {
        let _ = wire.set(opened);
    }
    let response = response.map(Body::new);
    match is_socket || response.extensions().get::<Shaped>().is_some() {
        true => Ok(response),
        false => reshape(response).await,
    }
}

/// Converts an error response of jsonrpsee itself, e.g. for malformed JSON, to our error format.
/// The body is small.
async fn reshape(response: Response) -> Result<Response> {
    let (mut head, body) = response.into_parts();
    let body = body.collect().await.map_err(|error| Error::internal(format!("/rpc: {error}")))?.to_bytes();
    let Some(error) = std::str::from_utf8(&body).ok().and_then(guard::reshaped) else {
        return Ok(Response::from_parts(head, Body::from(body)));
    };
    head.headers.remove(CONTENT_LENGTH);
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let body = json!({ "jsonrpc": "2.0", "id": answer["id"], "error": error }).to_string();
    Ok(Response::from_parts(head, Body::from(body)))
}

/// The shared state and the context of a call, from the request's extensions.
fn context(extensions: &Extensions) -> Result<(Arc<AppState>, CallContext)> {
    let found = extensions.get::<Arc<AppState>>().zip(extensions.get::<Arc<Client>>());
    let (state, client) = found.ok_or_else(|| Error::internal("the request is not authenticated"))?;
    let cx = CallContext::new(state.nuncio.clone(), attach_responder(state, client), CancellationToken::new());
    Ok((state.clone(), cx))
}

async fn call(entry: &'static MethodRow, params: Params<'static>, extensions: Extensions) -> Result<Value, ErrorObjectOwned> {
    let result = async {
        let params: Value = params.parse().map_err(|error| Error::invalid_params(error.message()))?;
        run(entry, params, &extensions).await
    };
    result.await.map_err(|error| rpc_error(&error))
}

/// Runs a call. When the client disconnects, calls that only read are cancelled; others continue.
async fn run(entry: &'static MethodRow, params: Value, extensions: &Extensions) -> Result<Value> {
    let (state, cx) = context(extensions)?;
    let result = async move { entry.run(cx, params).await?.result };
    match entry.role {
        ClientRole::Observer => result.await,
        ClientRole::Controller => state.run_detached(result).await,
    }
}

/// Sends events with their cursors, `synced` once the history is sent, and `ended` when the stream
/// ends.
async fn follow(row: &'static MethodRow, params: Params<'static>, pending: PendingSubscriptionSink, mut extensions: Extensions) {
    let opened = async {
        let (state, cx) = context(&extensions)?;
        let params: Value = params.parse().map_err(|error| Error::invalid_params(error.message()))?;
        let reply = row.run(cx, params).await?;
        reply.result?;
        Ok((state, reply.stream.ok_or_else(|| Error::internal("no stream was opened"))?))
    };
    let (state, mut stream) = match opened.await {
        Ok(opened) => opened,
        Err(error) => return pending.reject(rpc_error(&error)).await,
    };
    let _guard = state.subscriptions.token();
    let Ok(sink) = pending.accept().await else { return };
    let send = async |value: Value| match SubscriptionMessage::new(EVENT, sink.subscription_id(), &value) {
        Ok(message) => sink.send(message).await.is_ok(),
        Err(_) => false,
    };
    loop {
        let next = tokio::select! {
            next = tokio::time::timeout(limits::HEARTBEAT, stream.next(&state.ending)) => next,
            () = sink.closed() => return,
        };
        if guard::reauthenticate(&mut extensions).is_err() {
            break;
        }
        let Ok(next) = next else { continue };
        let values: Vec<Value> = match next {
            Ok(Some(StreamItem::Synced(cursor))) => vec![json!({ "synced": cursor })],
            Ok(Some(StreamItem::Events(events))) => {
                events.iter().map(|(cursor, event)| json!({ "cursor": cursor, "event": event })).collect()
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(error = %error, "a subscription failed");
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
