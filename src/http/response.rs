//! Parts that all responses share: the request id, the error envelope, security headers and the
//! request log.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use serde::Serialize;

use crate::api::{Client, Envelope, ErrorBody};
use crate::error::{Error, Kind, Result};
use crate::session::turn::panic_message;

use super::metrics::RequestMetrics;
use super::web;
use std::sync::Arc;

/// Maximum size of a request's head (request line and headers), in bytes.
const HTTP_HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum length of an unrouted path in the log, in characters.
const LOG_PATH_CHARS_MAX: usize = 200;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An error as a response. [`finish`] writes its body, which contains the request id.
pub(crate) struct ApiError(pub Error);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.kind.row().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(ResponseError(Arc::new(self.0)));
        response
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> ApiError {
        ApiError(error)
    }
}

/// The error of a response, until [`finish`] writes it.
#[derive(Clone)]
struct ResponseError(Arc<Error>);

/// Generates a request id.
pub(crate) fn request_id() -> String {
    format!("req_{}", uuid::Uuid::now_v7().simple())
}

/// Creates the span of a request. Its parent is the span in the `traceparent` header, if any (W3C
/// Trace Context).
pub(crate) fn span(request: &Request, id: &str) -> tracing::Span {
    let span = tracing::info_span!("request", id, method = %request.method());
    #[cfg(feature = "telemetry")]
    if request.headers().contains_key("traceparent") && !span.is_disabled() {
        use opentelemetry::propagation::TextMapPropagator;
        use tracing_opentelemetry::OpenTelemetrySpanExt;
        let caller = opentelemetry_http::HeaderExtractor(request.headers());
        // The error is ignored: without a collector, spans are not recorded and have no parent.
        let _ = span.set_parent(opentelemetry_sdk::propagation::TraceContextPropagator::new().extract(&caller));
    }
    span
}

/// Converts a panic of the request's handler into an error response.
pub(crate) async fn catch_panic(response: impl Future<Output = Response>) -> Response {
    AssertUnwindSafe(response).catch_unwind().await.unwrap_or_else(|panic| {
        let message = panic_message(&*panic);
        tracing::error!(panic = message, "a request panicked");
        ApiError(Error::internal("the request handler panicked")).into_response()
    })
}

/// Fails with `too_large` if the request line and headers exceed the limit. Hyper's own limit is
/// higher.
pub(crate) fn check_head(request: &Request) -> Result<()> {
    let uri = request.uri();
    let target = uri.path_and_query().map_or(0, |path| path.as_str().len()) + uri.authority().map_or(0, |host| host.as_str().len());
    let headers: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum();
    let line = request.method().as_str().len() + target + "  HTTP/1.1\r\n\r\n".len();
    if line + headers > HTTP_HEAD_BYTES_MAX {
        let most = HTTP_HEAD_BYTES_MAX;
        return Err(Error::new(Kind::TooLarge, format!("the head of the request is longer than {most} bytes")));
    }
    Ok(())
}

pub(crate) fn json(status: u16, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            (status, [(header::CONTENT_TYPE, "application/json")], bytes).into_response()
        }
        Err(error) => ApiError(Error::internal(format!("serializing the response: {error}"))).into_response(),
    }
}

/// Writes the body of an error response and sets the headers of all responses. `cross_origin` is
/// the allowed origin of a cross-origin request.
pub(crate) fn finish(response: &mut Response, id: &str, cross_origin: Option<HeaderValue>) {
    if let Some(ResponseError(error)) = response.extensions_mut().remove::<ResponseError>() {
        let body = ErrorBody {
            code: error.kind.row().code.into(),
            message: error.message.clone(),
            hint: error.hint.clone(),
            request_id: id.into(),
            details: error.details.clone(),
        };
        let bytes = serde_json::to_vec(&Envelope { error: body }).unwrap_or_default();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.remove(header::CONTENT_LENGTH);
        match error.kind {
            Kind::Unauthenticated => drop(headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Kind::Overloaded | Kind::StoreUnavailable | Kind::RateLimited => {
                drop(headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1")))
            }
            _ => {}
        }
        *response.body_mut() = Body::from(bytes);
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Some(origin) = cross_origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("x-request-id, preference-applied"));
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}

/// Creates the response to a CORS preflight request from an allowed origin (Fetch standard).
pub(crate) fn preflight() -> Response {
    let mut headers = HeaderMap::new();
    let allowed = "authorization, content-type, idempotency-key, last-event-id, prefer, traceparent";
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, DELETE"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// The log line and the metrics of a request. Queries and bodies are never logged.
pub(crate) struct RequestRecord {
    method: Method,
    path: String,
}

impl RequestRecord {
    /// Creates the record of a request that is about to be answered.
    pub(crate) fn new(request: &Request) -> RequestRecord {
        let path = request.uri().path().chars().take(LOG_PATH_CHARS_MAX).collect();
        RequestRecord { method: request.method().clone(), path }
    }

    /// Counts and logs the request.
    pub(crate) fn record(self, requests: &RequestMetrics, id: &str, response: &Response, took: Duration) {
        let matched = response.extensions().get::<RouteMatch>();
        let known = matched.map(|matched| matched.route.as_str()).filter(|route| !route.is_empty());
        requests.count(self.method.as_str(), known, response.status().as_u16(), took);
        let route = known.unwrap_or(&self.path);
        let principal = matched.map_or("nobody", |matched| matched.client.as_ref().map_or("nobody", |client| &client.principal));
        let ms = took.as_secs_f64() * 1000.0;
        let status = response.status().as_u16();
        // A page of the console loads many files.
        if web::is_file(&self.path) && response.status().is_success() {
            return tracing::debug!(id, method = %self.method, route, status, ms, principal, "request");
        }
        tracing::info!(id, method = %self.method, route, status, ms, principal, "request");
    }
}

/// The matched route and the client of a request, for its log line.
#[derive(Clone)]
struct RouteMatch {
    route: String,
    client: Option<Arc<Client>>,
}

/// Stores the matched route and the client in the response, for [`RequestRecord::record`]. This is
/// a middleware.
pub(crate) async fn store_route(request: Request, next: axum::middleware::Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or_else(String::new, |path| path.as_str().into());
    let client = request.extensions().get::<Arc<Client>>().cloned();
    let mut response = next.run(request).await;
    response.extensions_mut().insert(RouteMatch { route, client });
    response
}
