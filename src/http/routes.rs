//! The routes: one for each row of the table that has one, the streams, and the few that are no methods.

use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use axum::{Extension, Router, middleware};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower_http::compression::CompressionLayer;

use super::answer::{self, Failure};
use super::once::{self, Outcome};
use super::params::{self, Fields};
use super::{Door, files, metrics, prompt, rpc, sse, web};
use crate::api::{Client, Cx, Entry, FOLLOW_ROUTES, METHODS, Route, openapi};
use crate::error::{Error, Kind, Result};

/// What a handler of this door is given.
pub type TheDoor = Extension<Arc<Door>>;
pub type TheClient = Extension<Arc<Client>>;

/// What needs no token: it tells nothing.
pub fn is_open(request: &Request) -> bool {
    let reads = request.method() == Method::GET || request.method() == Method::HEAD;
    reads && (request.uri().path() == "/health" || web::is_file(request.uri().path()))
}

pub fn router() -> Router {
    let mut router =
        web::add_to(Router::new()).route("/health", get(|| async { answer::json(200, &serde_json::json!({ "status": "ok" })) }));
    for entry in METHODS {
        if let Some(route) = entry.route {
            router = router.route(route.path, on(filter(route), handler(entry, route)));
        }
    }
    for route in FOLLOW_ROUTES {
        router = router.route(route.path, on(filter(route), sse::follow));
    }
    router
        .route("/v1/openapi.json", get(described))
        .route("/metrics", get(metrics::show))
        .route("/rpc", get(rpc::serve).post(rpc::serve))
        .fallback(|| async { Failure(Error::not_found("there is no such route").hint("the routes are in /v1/openapi.json")) })
        .method_not_allowed_fallback(|| async {
            Failure(Error::new(Kind::MethodNotAllowed, "this route does not take that method").hint("see /v1/openapi.json"))
        })
        // Streams, pictures and what is short stay as they are.
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn(answer::seen))
}

async fn described(Extension(door): TheDoor) -> Response {
    let text = door.described.get_or_init(|| openapi().to_string().into());
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

/// The handler of a row: the request's params through the row's call.
fn handler(
    entry: &'static Entry,
    route: Route,
) -> impl Fn(TheDoor, TheClient, Request) -> futures_util::future::BoxFuture<'static, Response> + Clone + Send + Sync + 'static {
    // Made by the first request: most rows of most servers are never asked for.
    let fields: Arc<OnceLock<Fields>> = Arc::default();
    move |Extension(door), Extension(client), request| {
        let fields = fields.clone();
        Box::pin(async move {
            if let Err(error) = client.must_be(entry.role) {
                return Failure(error).into_response();
            }
            let fields = fields.get_or_init(|| Fields::of(entry.rest_schemas().0));
            let answered = match entry.name {
                prompt::NAME => prompt::answer(entry, &door, client, request, fields).await,
                _ => plain(entry, route, &door, client, request, fields).await,
            };
            answered.unwrap_or_else(|error| Failure(error).into_response())
        })
    }
}

async fn plain(
    entry: &'static Entry,
    route: Route,
    door: &Arc<Door>,
    client: Arc<Client>,
    request: Request,
    fields: &Fields,
) -> Result<Response> {
    let key = if entry.creates() { once::key(&request, &client)? } else { None };
    let (takes_form, as_bytes) = (route.takes_file, route.gives_file && !accepts(&request, "application/json"));
    let mut params = params::gather(door, request, fields, takes_form).await?;
    let cx = Cx::new(door.nuncio.clone(), prompt::attending(door, &client), CancellationToken::new());
    (entry.from_rest)(&cx, &mut params);
    let params = Value::Object(params);
    let asker = door.clone();
    let work = async move {
        let Some(key) = key else { return Ok((route.status, call(entry, cx, params).await?)) };
        let asked = params.clone();
        let work = async { Ok(Outcome::Json { status: route.status, body: call(entry, cx, params).await? }) };
        match asker.once.outcome(&asker.nuncio, key, entry.name, &asked, work).await? {
            Outcome::Json { status, body } => Ok((status, body)),
            Outcome::Turn(_) => Err(Error::internal("the key of a call holds a turn")),
        }
    };
    let (status, body) = if route.verb == "GET" { work.await? } else { door.to_its_end(work).await? };
    let file = if as_bytes { files::file(&body) } else { None };
    Ok(file.unwrap_or_else(|| answer::json(status, &body)))
}

/// One call, as REST tells its result.
async fn call(entry: &'static Entry, cx: Cx, params: Value) -> Result<Value> {
    let mut value = entry.run(cx, params).await?.result?;
    crate::api::to_rest(&mut value);
    Ok(if value.is_null() { serde_json::json!({}) } else { value })
}

/// Whether the client would rather have it this way (RFC 9110, section 12.5.1, without weights: who names it means it).
pub fn accepts(request: &Request, media: &str) -> bool {
    let named = request.headers().get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|one| one.split(';').next().unwrap_or("").trim().eq_ignore_ascii_case(media))
}
