//! The HTTP routes: those in the method table, and a few that do not call a method.

use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on, post};
use axum::{Extension, Router, middleware};
use schemars::Schema;
use serde_json::json;
use tower_http::compression::CompressionLayer;

use super::response::{self, ApiError};
use super::state::{ClientExtension, StateExtension};
use super::{call, hook, mcp, metrics, rpc, sign_in, sse, turn, web};
use crate::api::{METHODS, MethodKind, MethodRow, Route, StatusSnapshot, openapi};
use crate::error::{Error, Kind};

/// Returns true for requests that need no token: `/health`, `/ready`, the console's files and its
/// sign-in, and the
/// documents with which MCP clients look for an OAuth server (RFC 8615), which do not exist.
pub(crate) fn is_open(request: &Request) -> bool {
    let (path, method) = (request.uri().path(), request.method());
    let reads = method == Method::GET || method == Method::HEAD;
    let signs_in = method == Method::POST && path == sign_in::LOGIN_PATH;
    signs_in || reads && (matches!(path, "/health" | "/ready") || web::is_file(path) || path.starts_with("/.well-known/"))
}

pub(crate) fn router() -> Router {
    let ok = || response::json(200, &json!({ "status": "ok" }));
    let ready = async move |Extension(state): StateExtension| state.app.ready().await.map(|()| ok()).map_err(ApiError);
    let mut router = web::add_to(Router::new()).route("/health", get(async move || ok())).route("/ready", get(ready));
    for (row, route) in METHODS.iter().flat_map(|row| row.routes.iter().map(move |route| (row, *route))) {
        router = router.route(route.path, on(filter(route), handler(row, route)));
    }
    router
        .route("/v1/openapi.json", get(openapi_json))
        .route("/metrics", get(metrics_text))
        .route(hook::PATH, post(hook::answer))
        .route("/rpc", get(rpc::serve).post(rpc::serve))
        .route(mcp::PATH, post(mcp::serve))
        .route(sign_in::LOGIN_PATH, post(sign_in::login))
        .route(sign_in::LOGOUT_PATH, post(sign_in::logout))
        .route(sign_in::CODE_PATH, post(sign_in::code))
        .fallback(|| async { ApiError(Error::not_found("unknown route").hint("see /v1/openapi.json")) })
        .method_not_allowed_fallback(|| async {
            ApiError(Error::new(Kind::MethodNotAllowed, "the route does not support this method").hint("see /v1/openapi.json"))
        })
        // The default predicate does not compress event streams, images and short bodies.
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn(response::store_route))
}

async fn openapi_json(Extension(state): StateExtension) -> Response {
    let text = state.openapi_json.get_or_init(|| openapi().to_string().into());
    ([(header::CONTENT_TYPE, "application/json")], text.clone()).into_response()
}

async fn metrics_text(Extension(state): StateExtension, Extension(client): ClientExtension) -> Result<Response, ApiError> {
    if !client.sees_all {
        let message = "this token is limited to some sessions; metrics require a token for all sessions";
        return Err(Error::new(Kind::Forbidden, message).into());
    }
    let sessions = state.app.sessions_now().map(|sessions| &**sessions);
    let status = StatusSnapshot::read(&state.app, |_| true).await?;
    let text = metrics::text(&state.requests, sessions, &status)?;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, media)], text).into_response())
}

fn filter(route: Route) -> MethodFilter {
    match route.verb {
        "POST" => MethodFilter::POST,
        "PUT" => MethodFilter::PUT,
        "PATCH" => MethodFilter::PATCH,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::GET,
    }
}

/// Creates the handler of a method, which builds the method's params from the request and calls the
/// method.
fn handler(
    row: &'static MethodRow,
    route: Route,
) -> impl Fn(StateExtension, ClientExtension, Request) -> futures_util::future::BoxFuture<'static, Result<Response, ApiError>>
+ Clone
+ Send
+ Sync
+ 'static {
    // The schema is created by the first request, because most methods are never called over REST.
    let schema: Arc<OnceLock<Schema>> = Arc::default();
    move |Extension(state), Extension(client), request| {
        let schema = schema.clone();
        Box::pin(async move {
            client.require_role(row.role)?;
            let schema = schema.get_or_init(|| row.types.standalone().0);
            let result = match row.kind {
                MethodKind::Call | MethodKind::Notification => call::answer(row, route, &state, client, request, schema).await,
                MethodKind::Turn => turn::answer(row, &state, client, request, schema).await,
                MethodKind::Stream => sse::answer(row, state, client, request, schema).await,
            };
            result.map_err(ApiError)
        })
    }
}
