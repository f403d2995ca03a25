//! Runs the calls in a JSON-RPC message with the method table.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response as HttpResponse;
use http_body_util::BodyExt;
use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::core::server::{BatchResponseBuilder, MethodResponse, ResponsePayload};
use jsonrpsee::server::{BatchRequestConfig, Extensions, http};
use jsonrpsee::types::error::ErrorCode;
use jsonrpsee::types::{Id, Request};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::errors::{converted, from_jsonrpsee, rpc_error};
use super::socket::{CallPermits, Socket};
use super::subscription;
use crate::acp;
use crate::api::{CallContext, Client, ClientRole, MethodKind, MethodRow, Reply, UNFOLLOW, method};
use crate::error::{Error, Kind, Result};
use crate::http::responder::attach_responder;
use crate::http::state::AppState;
use crate::json;
use crate::limits;

/// Maximum number of calls in one batch on `/rpc`.
const RPC_BATCH_MAX: u32 = 100;

/// Marks a response whose errors are in nuncio's format.
#[derive(Clone)]
struct ConversionMark;

/// Runs the calls of one message.
#[derive(Clone)]
pub(crate) struct Dispatcher {
    state: Arc<AppState>,
    sender: Sender,
}

#[derive(Clone)]
enum Sender {
    /// An authenticated POST request.
    Post(Arc<Client>),
    /// A WebSocket, whose bearer token is checked for each call. The cancellation token is
    /// cancelled when the response is in the socket's queue.
    Socket(Arc<Socket>, CancellationToken),
}

/// Parses the message in the body of a request, runs its calls and builds the response.
pub(crate) async fn answer(request: HttpRequest, bytes_max: usize, dispatcher: Dispatcher) -> Result<HttpResponse> {
    let batches = BatchRequestConfig::Limit(RPC_BATCH_MAX);
    let response = http::call_with_service(request, batches, bytes_max as u32, dispatcher).await.map(Body::new);
    if response.extensions().get::<ConversionMark>().is_some() {
        return Ok(response);
    }
    // jsonrpsee created the error, for example for malformed JSON. Such a response is small, so it
    // is read completely.
    let (mut head, body) = response.into_parts();
    let body = body.collect().await.map_err(|error| Error::internal(format!("/rpc: {error}")))?.to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(error) = converted(&answer) else { return Ok(HttpResponse::from_parts(head, Body::from(body))) };
    head.headers.remove(CONTENT_LENGTH);
    let body = json!({ "jsonrpc": "2.0", "id": answer["id"], "error": error }).to_string();
    Ok(HttpResponse::from_parts(head, Body::from(body)))
}

impl RpcServiceT for Dispatcher {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let this = self.clone();
        async move {
            let cost = (weight(request.params.as_deref()), reads(&request.method));
            let id = request.id.clone();
            this.bounded(cost, id, this.respond(request)).await
        }
    }

    /// Runs the calls of the batch in order.
    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let this = self.clone();
        async move {
            let parts = || batch.iter().filter_map(|part| part.as_ref().ok());
            let bytes = parts().map(|part| weight(part.params().map(|params| &**params))).sum();
            let reading = parts().any(|part| reads(part.method_name()));
            this.bounded((bytes, reading), Id::Null, this.many(batch)).await
        }
    }

    fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let this = self.clone();
        async move {
            this.notified(notification).await;
            MethodResponse::notification().with_extensions(marked(None))
        }
    }
}

impl Dispatcher {
    /// Creates a dispatcher for an authenticated POST request.
    pub(crate) fn post(state: Arc<AppState>, client: Arc<Client>) -> Dispatcher {
        Dispatcher { state, sender: Sender::Post(client) }
    }

    /// Creates a dispatcher for a message from a WebSocket. `queued` is cancelled when the response
    /// is in the socket's queue.
    pub(crate) fn socket(state: Arc<AppState>, socket: Arc<Socket>, queued: CancellationToken) -> Dispatcher {
        Dispatcher { state, sender: Sender::Socket(socket, queued) }
    }

    async fn respond(&self, request: Request<'_>) -> MethodResponse {
        let (id, params) = (request.id.clone(), request.params.as_deref());
        let value = match (&self.sender, method(&request.method)) {
            (_, Some(row)) => self.run(row, params).await,
            (Sender::Socket(socket, _), None) if request.method == UNFOLLOW => {
                Ok(socket.unfollow(params.map_or("", RawValue::get)).into())
            }
            (_, None) => Err(from_jsonrpsee(&ErrorCode::MethodNotFound.into())),
        };
        let value = match value {
            Ok(value) => value,
            Err(error) => return MethodResponse::error(id, rpc_error(&error)),
        };
        let response = MethodResponse::response(id.clone(), ResponsePayload::success(value), limits::FRAME_BYTES_MAX);
        if response.is_success() { response } else { convert(response, id) }
    }

    async fn many(&self, batch: Batch<'_>) -> MethodResponse {
        let mut answers = BatchResponseBuilder::new_with_limit(limits::FRAME_BYTES_MAX);
        let mut notified = false;
        for part in batch {
            let answer = match part {
                Ok(BatchEntry::Call(request)) => self.respond(request).await,
                Ok(BatchEntry::Notification(notification)) => {
                    notified = true;
                    self.notified(notification).await;
                    continue;
                }
                Err(wrong) => {
                    let (error, id) = wrong.into_parts();
                    MethodResponse::error(id, rpc_error(&from_jsonrpsee(&error)))
                }
            };
            if let Err(error) = answers.append(answer) {
                return convert(error, Id::Null);
            }
        }
        if !answers.is_empty() {
            return MethodResponse::from_batch(answers.finish());
        }
        if notified {
            return MethodResponse::notification();
        }
        MethodResponse::error(Id::Null, rpc_error(&Error::new(Kind::InvalidRequest, "the batch contains no calls")))
    }

    /// Runs a notification. Errors are logged, since a notification has no response.
    async fn notified(&self, notification: Notification<'_>) {
        let Some(row) = method(&notification.method).filter(|row| row.kind == MethodKind::Notification) else { return };
        let result = async {
            let _permit = match &self.sender {
                Sender::Socket(socket, _) => Some(socket.notification()?),
                Sender::Post(_) => None,
            };
            self.run(row, notification.params.as_deref()).await
        };
        if let Err(error) = result.await {
            tracing::debug!(%error, method = row.name, "a notification failed");
        }
    }

    /// Runs a method. When the client disconnects, read-only calls are cancelled; other calls
    /// continue.
    async fn run(&self, row: &'static MethodRow, params: Option<&RawValue>) -> Result<Value> {
        let client = match &self.sender {
            Sender::Post(client) => client.clone(),
            Sender::Socket(socket, _) => Arc::new(socket.client(&self.state)?),
        };
        let client = attach_responder(&client);
        let cx = CallContext::new(self.state.app.clone(), client, CancellationToken::new());
        let params = params.map_or(Ok(Value::Null), |params| json::from_str(params.get()));
        let params = params.map_err(|error| Error::invalid_params(error.to_string()))?;
        match (row.kind, &self.sender) {
            (MethodKind::Stream, Sender::Socket(socket, queued)) => {
                let permit = socket.subscription()?;
                let Reply { result, stream, .. } = acp::run(row, cx, params).await?;
                let stream = stream.ok_or_else(|| Error::internal(format!("{} opened no stream", row.name)))?;
                result.map(|_| subscription::start(&self.state, socket, queued, permit, *stream))
            }
            (MethodKind::Stream, Sender::Post(_)) => {
                let error = Error::new(Kind::Unsupported, "following events requires a WebSocket");
                Err(error.hint("or use server-sent events: GET /v1/events"))
            }
            _ => {
                let result = async move { acp::run(row, cx, params).await?.result };
                match row.role {
                    ClientRole::Observer => result.await,
                    ClientRole::Controller => self.state.run_detached(result).await,
                }
            }
        }
    }

    /// Runs a call within the limits of its socket. The response carries the permits, which the
    /// socket holds until the response is written.
    async fn bounded(
        &self,
        (bytes, reads): (usize, bool),
        id: Id<'_>,
        call: impl Future<Output = MethodResponse>,
    ) -> MethodResponse {
        let Sender::Socket(socket, _) = &self.sender else { return call.await.with_extensions(marked(None)) };
        let refused = |error: Error| MethodResponse::error(id, rpc_error(&error)).with_extensions(marked(None));
        let mut permits = match socket.call(bytes, reads).await {
            Ok(permits) => permits,
            Err(error) => return refused(error),
        };
        let answer = call.await;
        match socket.respond(answer.as_json().get().len(), &mut permits) {
            Ok(()) => answer.with_extensions(marked(Some(permits))),
            Err(error) => refused(error),
        }
    }
}

/// Creates the extensions of a response that is in nuncio's format already. They hold the
/// response's permits until it has been sent.
fn marked(permits: Option<CallPermits>) -> Extensions {
    let mut extensions = Extensions::new();
    extensions.insert(ConversionMark);
    if let Some(permits) = permits {
        extensions.insert(Arc::new(permits));
    }
    extensions
}

/// Returns the size of params in bytes.
fn weight(params: Option<&RawValue>) -> usize {
    params.map_or(0, |params| params.get().len())
}

/// Returns true for methods that only read.
fn reads(name: &str) -> bool {
    method(name).is_some_and(|row| row.role == ClientRole::Observer)
}

/// Converts an error response that was created by jsonrpsee.
fn convert(response: MethodResponse, id: Id<'_>) -> MethodResponse {
    let answer: Value = serde_json::from_str(response.as_json().get()).unwrap_or_default();
    match converted(&answer) {
        Some(error) => MethodResponse::error(id, error),
        None => response,
    }
}
