//! What stands around every call of `/rpc`: whose token was revoked is told so, notifications are heard, all errors have our shape.

use std::sync::Arc;

use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::core::server::{BatchResponseBuilder, MethodResponse};
use jsonrpsee::server::Extensions;
use jsonrpsee::server::middleware::rpc::RpcService;
use jsonrpsee::types::{ErrorObject, ErrorObjectOwned, Id, Request};
use serde_json::Value;
use serde_json::value::RawValue;

use super::socket::Opened;
use crate::api::{Client, FOLLOW, Role, entry};
use crate::error::{Error, KINDS, Kind, Result};
use crate::http::Door;
use crate::limits;
use crate::rpc::message::frame::error_object;

/// Marks answers whose errors have our shape.
#[derive(Clone)]
pub struct Shaped;

#[derive(Clone)]
pub struct Guard;

impl<S> tower::Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { inner }
    }
}

#[derive(Clone)]
pub struct Guarded<S> {
    inner: S,
}

impl RpcServiceT for Guarded<RpcService> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let this = self.clone();
        async move {
            let asked = (weight(request.params.as_deref()), reads(&request.method));
            let (id, extensions) = (request.id.clone(), request.extensions.clone());
            bounded(extensions, asked, id, this.one(request)).await
        }
    }

    /// Its calls go one after the other.
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

    // An `async fn` would borrow from what it is called on.
    #[allow(clippy::manual_async_fn)]
    fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        acknowledged(notification)
    }
}

impl Guarded<RpcService> {
    async fn one(&self, mut request: Request<'_>) -> MethodResponse {
        let (id, extensions) = (request.id.clone(), request.extensions.clone());
        if let Err(error) = allowed(&mut request) {
            return MethodResponse::error(id, told(&error)).with_extensions(shaped(extensions));
        }
        coded(self.inner.call(request).await, id).with_extensions(shaped(extensions))
    }

    async fn many(&self, batch: Batch<'_>) -> MethodResponse {
        let mut answers = BatchResponseBuilder::new_with_limit(limits::FRAME_BYTES_MAX);
        let mut notified = false;
        for part in batch {
            let answer = match part {
                Ok(BatchEntry::Call(request)) => self.one(request).await,
                Ok(BatchEntry::Notification(notification)) => {
                    notified = true;
                    heard(notification).await;
                    continue;
                }
                Err(wrong) => {
                    let (error, id) = wrong.into_parts();
                    MethodResponse::error(id, told(&ours(&error)))
                }
            };
            if let Err(error) = answers.append(answer) {
                return coded(error, Id::Null).with_extensions(shaped(Extensions::new()));
            }
        }
        if answers.is_empty() && notified {
            return MethodResponse::notification();
        }
        if answers.is_empty() {
            let error = Error::new(Kind::InvalidRequest, "a batch without calls");
            return MethodResponse::error(Id::Null, told(&error)).with_extensions(shaped(Extensions::new()));
        }
        MethodResponse::from_batch(answers.finish()).with_extensions(shaped(Extensions::new()))
    }
}

fn weight(params: Option<&RawValue>) -> usize {
    params.map_or(0, |params| params.get().len())
}

fn reads(method: &str) -> bool {
    entry(method).is_some_and(|entry| entry.role == Role::Observer)
}

/// A call within what its socket may have going on, until its answer has left.
async fn bounded(
    extensions: Extensions,
    (bytes, reads): (usize, bool),
    id: Id<'_>,
    called: impl Future<Output = MethodResponse>,
) -> MethodResponse {
    let Some(opened) = extensions.get::<Arc<Opened>>() else { return called.await };
    let refused = |error: Error| MethodResponse::error(id, told(&error));
    let held = match opened.call(bytes, reads).await {
        Ok(held) => held,
        Err(error) => return refused(error),
    };
    let answer = called.await;
    if answer.is_notification() || answer.is_subscription() {
        return answer;
    }
    match opened.leaves(answer.as_json().get().len(), held) {
        Ok(()) => answer,
        Err(error) => refused(error),
    }
}

fn shaped(mut extensions: Extensions) -> Extensions {
    extensions.insert(Shaped);
    extensions
}

/// Whether this call may be made: on a socket, the token is judged each time.
fn allowed(request: &mut Request<'_>) -> Result<()> {
    judge(&mut request.extensions)?;
    if request.method == FOLLOW && request.extensions.get::<Arc<Opened>>().is_none() {
        let error = Error::new(Kind::Unsupported, "events are followed over a WebSocket");
        return Err(error.hint("or as server-sent events, at /v1/events"));
    }
    Ok(())
}

/// Who asks over a socket: the gate says it anew. Over POST it just did.
pub fn judge(extensions: &mut Extensions) -> Result<()> {
    let (Some(opened), Some(door)) = (extensions.get::<Arc<Opened>>(), extensions.get::<Arc<Door>>()) else { return Ok(()) };
    let client = door.gate.client(&opened.headers)?;
    extensions.insert::<Arc<Client>>(Arc::new(client));
    Ok(())
}

async fn acknowledged(notification: Notification<'_>) -> MethodResponse {
    let extensions = notification.extensions.clone();
    heard(notification).await;
    MethodResponse::notification().with_extensions(shaped(extensions))
}

/// A notification has no answer, whatever comes of it.
async fn heard(mut notification: Notification<'_>) {
    let Some(entry) = entry(&notification.method).filter(|entry| entry.notification) else { return };
    let opened = notification.extensions.get::<Arc<Opened>>();
    let room = opened.map(|opened| opened.notification());
    let called = async {
        if let Some(None) = room {
            return Err(Error::new(Kind::Overloaded, "too many notifications at once"));
        }
        judge(&mut notification.extensions)?;
        let params = notification.params.as_ref().map_or(Ok(Value::Null), |params| serde_json::from_str(params.get()));
        let params = params.map_err(|error| Error::invalid_params(error.to_string()))?;
        super::run(entry, params, &notification.extensions).await
    };
    if let Err(error) = called.await {
        tracing::debug!(%error, method = entry.name, "a notification came to nothing");
    }
}

pub fn told(error: &Error) -> ErrorObjectOwned {
    let object = error_object(error);
    ErrorObjectOwned::owned(error.kind.row().rpc, error.to_string(), Some(object["data"].clone()))
}

/// An error of jsonrpsee's own, as one of ours. Its numbers up to -32005 have other meanings here.
fn ours(error: &ErrorObject<'_>) -> Error {
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

/// An answer whose error, if it is one, has our shape.
fn coded(answer: MethodResponse, id: Id<'_>) -> MethodResponse {
    // What a subscription answers was sent already.
    if !answer.is_error() || answer.is_subscription() {
        return answer;
    }
    match reshaped(answer.as_json().get()) {
        Some(error) => MethodResponse::error(id, error),
        None => answer,
    }
}

/// The error of an answer, in our shape; none where it is so already.
pub fn reshaped(answer: &str) -> Option<ErrorObjectOwned> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let error = answer.get("error").filter(|error| error["data"]["code"].is_null())?;
    let error: ErrorObjectOwned = serde_json::from_value(error.clone()).ok()?;
    Some(told(&ours(&error)))
}
