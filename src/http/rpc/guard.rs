//! Middleware of every call of `/rpc`: checks that the token is still valid, limits the calls of a
//! socket, handles notifications, and converts errors to our format.

use std::sync::Arc;

use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::core::server::{BatchResponseBuilder, MethodResponse};
use jsonrpsee::server::Extensions;
use jsonrpsee::server::middleware::rpc::RpcService;
use jsonrpsee::types::{ErrorObject, ErrorObjectOwned, Id, Request};
use serde_json::Value;
use serde_json::value::RawValue;

use super::socket::Socket;
use crate::api::{Client, FOLLOW, Role, entry};
use crate::error::{Error, KINDS, Kind, Result};
use crate::http::AppState;
use crate::limits;
use crate::rpc::message::error_object;

/// Marks responses whose errors are in our format.
#[derive(Clone)]
pub struct Shaped;

/// The layer that adds [`GuardService`].
#[derive(Clone)]
pub struct Guard;

impl<S> tower::Layer<S> for Guard {
    type Service = GuardService<S>;

    fn layer(&self, inner: S) -> GuardService<S> {
        GuardService { inner }
    }
}

/// The middleware service.
#[derive(Clone)]
pub struct GuardService<S> {
    inner: S,
}

impl RpcServiceT for GuardService<RpcService> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let this = self.clone();
        async move {
            let cost = (weight(request.params.as_deref()), reads(&request.method));
            let (id, extensions) = (request.id.clone(), request.extensions.clone());
            bounded(extensions, cost, id, this.one(request)).await
        }
    }

    /// Runs the calls of the batch in order.
    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let this = self.clone();
        async move {
            let parts = || batch.iter().filter_map(|part| part.as_ref().ok());
            let bytes = parts().map(|part| weight(part.params().map(|params| &**params))).sum();
            let reading = parts().any(|part| reads(part.method_name()));
            let extensions = parts().next().map(|part| part.extensions().clone()).unwrap_or_default();
            bounded(extensions, (bytes, reading), Id::Null, this.many(batch)).await
        }
    }

    // An `async fn` would borrow `self`.
    #[allow(clippy::manual_async_fn)]
    fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        acknowledge(notification)
    }
}

impl GuardService<RpcService> {
    async fn one(&self, mut request: Request<'_>) -> MethodResponse {
        let (id, extensions) = (request.id.clone(), request.extensions.clone());
        if let Err(error) = check_allowed(&mut request) {
            return MethodResponse::error(id, rpc_error(&error)).with_extensions(shaped(extensions));
        }
        convert(self.inner.call(request).await, id).with_extensions(shaped(extensions))
    }

    async fn many(&self, batch: Batch<'_>) -> MethodResponse {
        let mut answers = BatchResponseBuilder::new_with_limit(limits::FRAME_BYTES_MAX);
        let mut notified = false;
        for part in batch {
            let answer = match part {
                Ok(BatchEntry::Call(request)) => self.one(request).await,
                Ok(BatchEntry::Notification(notification)) => {
                    notified = true;
                    handle_notification(notification).await;
                    continue;
                }
                Err(wrong) => {
                    let (error, id) = wrong.into_parts();
                    MethodResponse::error(id, rpc_error(&from_jsonrpsee(&error)))
                }
            };
            if let Err(error) = answers.append(answer) {
                return convert(error, Id::Null).with_extensions(shaped(Extensions::new()));
            }
        }
        if answers.is_empty() && notified {
            return MethodResponse::notification();
        }
        if answers.is_empty() {
            let error = Error::new(Kind::InvalidRequest, "the batch contains no calls");
            return MethodResponse::error(Id::Null, rpc_error(&error)).with_extensions(shaped(Extensions::new()));
        }
        MethodResponse::from_batch(answers.finish()).with_extensions(shaped(Extensions::new()))
    }
}

/// The size of params in bytes.
fn weight(params: Option<&RawValue>) -> usize {
    params.map_or(0, |params| params.get().len())
}

/// Returns true for methods that only read.
fn reads(method: &str) -> bool {
    entry(method).is_some_and(|entry| entry.role == Role::Observer)
}

/// Runs a call within the limits of its socket. Its permits are held until the response is written.
async fn bounded(
    extensions: Extensions,
    (bytes, reads): (usize, bool),
    id: Id<'_>,
    call: impl Future<Output = MethodResponse>,
) -> MethodResponse {
    let Some(opened) = extensions.get::<Arc<Socket>>() else { return call.await };
    let refused = |error: Error| MethodResponse::error(id, rpc_error(&error));
    let held = match opened.call(bytes, reads).await {
        Ok(held) => held,
        Err(error) => return refused(error),
    };
    let answer = call.await;
    if answer.is_notification() || answer.is_subscription() {
        return answer;
    }
    match opened.respond(answer.as_json().get().len(), held) {
        Ok(()) => answer,
        Err(error) => refused(error),
    }
}

fn shaped(mut extensions: Extensions) -> Extensions {
    extensions.insert(Shaped);
    extensions
}

/// Checks that the call is allowed. On a socket, the token is checked for each call.
fn check_allowed(request: &mut Request<'_>) -> Result<()> {
    reauthenticate(&mut request.extensions)?;
    if request.method == FOLLOW && request.extensions.get::<Arc<Socket>>().is_none() {
        let error = Error::new(Kind::Unsupported, "following events requires a WebSocket");
        return Err(error.hint("or use server-sent events: GET /v1/events"));
    }
    Ok(())
}

/// Authenticates the client of a socket again. Over POST, the request was just authenticated.
pub fn reauthenticate(extensions: &mut Extensions) -> Result<()> {
    let (Some(opened), Some(state)) = (extensions.get::<Arc<Socket>>(), extensions.get::<Arc<AppState>>()) else { return Ok(()) };
    let client = state.auth.client(&opened.headers)?;
    extensions.insert::<Arc<Client>>(Arc::new(client));
    Ok(())
}

async fn acknowledge(notification: Notification<'_>) -> MethodResponse {
    let extensions = notification.extensions.clone();
    handle_notification(notification).await;
    MethodResponse::notification().with_extensions(shaped(extensions))
}

/// Runs a notification. Errors are logged, since a notification has no response.
async fn handle_notification(mut notification: Notification<'_>) {
    let Some(entry) = entry(&notification.method).filter(|entry| entry.notification) else { return };
    let opened = notification.extensions.get::<Arc<Socket>>();
    let permit = opened.map(|opened| opened.notification());
    let result = async {
        if let Some(None) = permit {
            return Err(Error::new(Kind::Overloaded, "too many notifications at once"));
        }
        reauthenticate(&mut notification.extensions)?;
        let params = notification.params.as_ref().map_or(Ok(Value::Null), |params| serde_json::from_str(params.get()));
        let params = params.map_err(|error| Error::invalid_params(error.to_string()))?;
        super::run(entry, params, &notification.extensions).await
    };
    if let Err(error) = result.await {
        tracing::debug!(%error, method = entry.name, "a notification failed");
    }
}

/// An error in our format.
pub fn rpc_error(error: &Error) -> ErrorObjectOwned {
    let object = error_object(error);
    ErrorObjectOwned::owned(error.kind.row().rpc, error.to_string(), Some(object["data"].clone()))
}

/// Converts an error of jsonrpsee itself. Its codes up to -32005 have other meanings here.
fn from_jsonrpsee(error: &ErrorObject<'_>) -> Error {
    use jsonrpsee::types::error as theirs;
    let kind = match error.code() {
        theirs::OVERSIZED_REQUEST_CODE
        | theirs::OVERSIZED_RESPONSE_CODE
        | theirs::TOO_BIG_BATCH_REQUEST_CODE
        | theirs::TOO_BIG_BATCH_RESPONSE_CODE => Kind::TooLarge,
        theirs::TOO_MANY_SUBSCRIPTIONS_CODE | theirs::SERVER_IS_BUSY_CODE => Kind::Overloaded,
        code => KINDS.iter().find(|row| row.rpc == code && code <= -32600).map_or(Kind::Internal, |row| row.kind),
    };
    let more = error.data().and_then(|data| serde_json::from_str::<String>(data.get()).ok());
    Error::new(kind, more.map_or_else(|| error.message().into(), |more| format!("{}: {more}", error.message())))
}

/// Converts the error of a response, if any, to our format.
fn convert(answer: MethodResponse, id: Id<'_>) -> MethodResponse {
    // The response of a subscription has been sent already.
    if !answer.is_error() || answer.is_subscription() {
        return answer;
    }
    match reshaped(answer.as_json().get()) {
        Some(error) => MethodResponse::error(id, error),
        None => answer,
    }
}

/// The error of a response in our format. `None` if it is in our format already.
pub fn reshaped(answer: &str) -> Option<ErrorObjectOwned> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let error = answer.get("error").filter(|error| error["data"]["code"].is_null())?;
    let error: ErrorObjectOwned = serde_json::from_value(error.clone()).ok()?;
    Some(rpc_error(&from_jsonrpsee(&error)))
}
