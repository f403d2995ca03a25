//! `/rpc`: the method table as JSON-RPC over POST and WebSocket, and event streams as
//! subscriptions. jsonrpsee parses the messages and builds the responses.

mod dispatch;
mod errors;
mod socket;
mod subscription;
mod websocket;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, UPGRADE};
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use soketto::handshake::http::is_upgrade_request;

use super::params;
use super::response::ApiError;
use super::state::{AppState, ClientExtension, StateExtension};
use crate::api::Client;
use crate::error::{Error, Kind, Result};
use crate::limits;
use dispatch::Dispatcher;

/// Handles `POST /rpc` and WebSocket upgrades.
pub(crate) async fn serve(Extension(state): StateExtension, Extension(client): ClientExtension, request: Request) -> Response {
    let response = match (request.method() == Method::GET, is_upgrade_request(&request)) {
        (true, true) => websocket::upgrade(state, request),
        (true, false) => Err(Error::new(Kind::MethodNotAllowed, "/rpc supports POST and WebSocket")),
        (false, _) => post(state, client, request).await,
    };
    response.unwrap_or_else(|error| ApiError(error).into_response())
}

async fn post(state: Arc<AppState>, client: Arc<Client>, request: Request) -> Result<Response> {
    params::is_plain_json(request.headers())?;
    let (mut head, body) = request.into_parts();
    head.headers.remove(UPGRADE);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let request = Request::from_parts(head, Body::from(params::bytes(&state, body).await?));
    dispatch::answer(request, limits::HTTP_BODY_BYTES_MAX, Dispatcher::post(state, client)).await
}
