//! The routes: those of the method table, the event streams, and a few that are not methods.

use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use axum::{Extension, Router, middleware};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;

use super::idempotency::{self, Outcome};
use super::params::{self, Fields};
use super::response::{self, ApiError};
use super::{AppState, files, metrics, prompt, rpc, sse, web};
use crate::api::{Client, Cx, Entry, FOLLOW_ROUTES, METHODS, Route, openapi};
use crate::error::{Error, Kind, Result};

/// The shared state, as an argument of a handler.
pub type StateExtension = Extension<Arc<AppState>>;
/// The authenticated client, as an argument of a handler.
pub type ClientExtension = Extension<Arc<Client>>;

/// Returns true for requests that need no token: `/health` and the console's files.
pub fn is_open(request: &Request) -> bool {
    let reads = request.method() == Method::GET || request.method() == Method::HEAD;
    reads && (request.uri().path() == "/health" || web::is_file(request.uri().path()))
}

/// The router of all routes.
pub fn router() -> Router {
    let mut router =
        web::add_to(Router::new()).route("/health", get(|| async { response::json(200, &serde_json::json!({ "status": "ok" })) }));
    for entry in METHODS {
        if let Some(route) = entry.route {
            router = router.route(route.path, on(filter(route), handler(entry, route)));
        }
    }
    for route in FOLLOW_ROUTES {
        router = router.route(route.path, on(filter(route), sse::follow));
    }
    router
        .route("/v1/openapi.json", get(openapi_json))
        .route("/metrics", get(metrics::show))
        .route("/rpc", get(rpc::serve).post(rpc::serve))
        .fallback(|| async { ApiError(Error::not_found("unknown route").hint("see /v1/openapi.json")) })
        .method_not_allowed_fallback(|| async {
            ApiError(Error::new(Kind::MethodNotAllowed, "the route does not support this method").hint("see /v1/openapi.json"))
        })
        // The default predicate skips streams, images and short bodies.
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn(response::store_route))
}

async fn openapi_json(Extension(state): StateExtension) -> Response {
    let text = state.openapi_json.get_or_init(|| openapi().to_string().into());
    ([(header::CONTENT_TYPE, "application/json")], text.clone()).into_response()
}

fn filter(route: Route) -> MethodFilter {
    match route.verb {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    }
}

/// The handler of a method: builds its params from the request and calls it.
fn handler(
    entry: &'static Entry,
    route: Route,
) -> impl Fn(StateExtension, ClientExtension, Request) -> futures_util::future::BoxFuture<'static, Response>
+ Clone
+ Send
+ Sync
+ 'static {
    // Created by the first request, since most methods are never called over REST.
    let fields: Arc<OnceLock<Fields>> = Arc::default();
    move |Extension(state), Extension(client), request| {
        let fields = fields.clone();
        Box::pin(async move {
            if let Err(error) = client.must_be(entry.role) {
                return ApiError(error).into_response();
            }
            let fields = fields.get_or_init(|| Fields::of(entry.rest_schemas().0));
            let result = match entry.name {
                prompt::NAME => prompt::answer(entry, &state, client, request, fields).await,
                _ => plain(entry, route, &state, client, request, fields).await,
            };
            result.unwrap_or_else(|error| ApiError(error).into_response())
        })
    }
}

/// Calls a method other than a prompt.
async fn plain(
    entry: &'static Entry,
    route: Route,
    state: &Arc<AppState>,
    client: Arc<Client>,
    request: Request,
    fields: &Fields,
) -> Result<Response> {
    let key = if entry.creates() { idempotency::key(&request, &client)? } else { None };
    let (takes_form, as_bytes) = (route.takes_file, route.gives_file && !accepts(&request, "application/json"));
    let mut params = params::gather(state, request, fields, takes_form).await?;
    let cx = Cx::new(state.nuncio.clone(), prompt::attach_responder(state, &client), CancellationToken::new());
    (entry.from_rest)(&cx, &mut params);
    let params = Value::Object(params);
    let asker = state.clone();
    let work = async move {
        let Some(key) = key else { return Ok((route.status, call(entry, cx, params).await?)) };
        let asked = params.clone();
        let work = async { Ok(Outcome::Json { status: route.status, body: call(entry, cx, params).await? }) };
        match asker.idempotency.outcome(&asker.nuncio, key, entry.name, &asked, work).await? {
            Outcome::Json { status, body } => Ok((status, body)),
            Outcome::Turn(_) => Err(Error::internal("the response stored for a call is a turn")),
        }
    };
    let (status, body) = if route.verb == "GET" { work.await? } else { state.run_detached(work).await? };
    let file = if as_bytes { files::file(&body) } else { None };
    Ok(file.unwrap_or_else(|| response::json(status, &body)))
}

/// Runs a call. Returns the result in the form of REST.
async fn call(entry: &'static Entry, cx: Cx, params: Value) -> Result<Value> {
    let mut value = entry.run(cx, params).await?.result?;
    crate::api::to_rest(&mut value);
    Ok(if value.is_null() { serde_json::json!({}) } else { value })
}

/// Returns true if the `Accept` header names this media type (RFC 9110, section 12.5.1). Weights
/// are ignored.
pub fn accepts(request: &Request, media: &str) -> bool {
    let named = request.headers().get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|one| one.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(media))
}
