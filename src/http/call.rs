//! REST calls that respond with the result of a method, as JSON or as the content of a file.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use schemars::Schema;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::idempotency::{self, StoredResult};
use super::params;
use super::responder::attach_responder;
use super::state::AppState;
use super::{files, response};
use crate::api::{CallContext, Client, MethodRow, Route};
use crate::error::{Error, Result};

/// Runs the method and responds with its result.
pub(crate) async fn answer(
    row: &'static MethodRow,
    route: Route,
    state: &Arc<AppState>,
    client: Arc<Client>,
    request: Request,
    schema: &Schema,
) -> Result<Response> {
    let key = if row.creates() { idempotency::key(&request, &client)? } else { None };
    let (takes_form, as_bytes) = (route.takes_file, route.gives_file && !params::accepts(&request, "application/json"));
    let params = params::gather(row, state, request, schema, takes_form).await?;
    let cx = CallContext::new(state.app.clone(), attach_responder(&client), CancellationToken::new());
    let params = Value::Object(params);
    let server = state.clone();
    let work = async move {
        let Some(key) = key else { return Ok((route.status, run(row, cx, params).await?)) };
        let asked = params.clone();
        let work = async { Ok(StoredResult::Json { status: route.status, body: run(row, cx, params).await? }) };
        match server.idempotency.outcome(&server.app, key, row.name, &asked, work).await? {
            StoredResult::Json { status, body } => Ok((status, body)),
            StoredResult::Turn(_) => Err(Error::internal("internal error: the stored response to a call is a turn")),
        }
    };
    let (status, body) = if route.verb == "GET" { work.await? } else { state.run_detached(work).await? };
    let file = if as_bytes { files::file(&body) } else { None };
    Ok(file.unwrap_or_else(|| response::json(status, &body)))
}

async fn run(row: &'static MethodRow, cx: CallContext, params: Value) -> Result<Value> {
    let value = Box::pin(row.run(cx, params)).await?.result?;
    Ok(if value.is_null() { serde_json::json!({}) } else { value })
}
