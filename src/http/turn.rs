//! Turns over REST. The response waits for the end of the turn, returns at once
//! (`Prefer: respond-async`, RFC 7240), or streams the turn's events. The outcome is read from the
//! log.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
use parking_lot::Mutex;
use schemars::Schema;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::idempotency::{self, StoredResult};
use super::params;
use super::responder::attach_responder;
use super::state::AppState;
use super::{response, sse};
use crate::api::{CallContext, Client, EventStream, FollowParams, MethodRow, StreamItem, TurnStart, turn_end};
use crate::error::{Error, Kind, Result};

/// The form of the response.
enum Form {
    Wait,
    Async,
    Stream,
}

/// Starts a turn and responds in the form that the request asks for.
pub(crate) async fn answer(
    row: &'static MethodRow,
    state: &Arc<AppState>,
    client: Arc<Client>,
    request: Request,
    schema: &Schema,
) -> Result<Response> {
    let (form, key, recheck) = (form(&request), idempotency::key(&request, &client)?, sse::TokenRecheck::new(&request));
    let params = params::gather(row, state, request, schema, false).await?;
    let cx = CallContext::new(state.app.clone(), client, CancellationToken::new());
    let params = Value::Object(params);
    let started = match key {
        None => start(row, state, &cx, params).await?,
        Some(key) => {
            let (server, cx, asked) = (state.clone(), cx.clone(), params.clone());
            let work = async move {
                let work = async { start(row, &server, &cx, params).await.map(StoredResult::Turn) };
                server.idempotency.outcome(&server.app, key, row.name, &asked, work).await
            };
            match state.run_detached(work).await? {
                StoredResult::Turn(started) => started,
                StoredResult::Json { .. } => {
                    return Err(Error::internal("internal error: the stored response to a prompt is not a turn"));
                }
            }
        }
    };
    if let Form::Async = form {
        let mut response = response::json(202, &json!({ "turnId": started.turn }));
        response.headers_mut().insert("preference-applied", HeaderValue::from_static("respond-async"));
        return Ok(response);
    }
    let params =
        FollowParams { session_id: Some(started.session), after: started.after, turn: Some(started.turn), ..Default::default() };
    let stream = EventStream::open(&cx, params).await?;
    match form {
        Form::Stream => Ok(sse::respond(state.clone(), recheck, stream, |event| event.body.ends_turn())),
        _ => wait(row, state, stream).await,
    }
}

fn form(request: &Request) -> Form {
    let preferred = request.headers().get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut preferred = preferred.flat_map(|value| value.split([',', ';']));
    if params::accepts(request, "text/event-stream") {
        Form::Stream
    } else if preferred.any(|one| one.trim().eq_ignore_ascii_case("respond-async")) {
        Form::Async
    } else {
        Form::Wait
    }
}

/// Starts the turn. The call runs detached: it continues when the client disconnects.
async fn start(row: &'static MethodRow, state: &AppState, cx: &CallContext, params: Value) -> Result<TurnStart> {
    let (sender, started) = oneshot::channel();
    let mut cx = CallContext { client: attach_responder(&cx.client), ..cx.clone() };
    cx.turn_started = Some(Arc::new(Mutex::new(Some(sender))));
    let call = state.running.spawn(row.run(cx, params).in_current_span());
    match started.await {
        Ok(started) => Ok(started),
        // No turn was started: the call returns the error.
        Err(_) => {
            let reply = call.await.map_err(|_| Error::internal("the prompt panicked"))??;
            Err(reply.result.err().unwrap_or_else(|| Error::internal("the prompt did not start a turn")))
        }
    }
}

/// Waits for the end of the turn and responds with the result of its prompt.
async fn wait(row: &MethodRow, state: &AppState, mut stream: EventStream) -> Result<Response> {
    while let Some(shown) = stream.next(&state.ending).await? {
        let StreamItem::Events(events) = shown else { continue };
        if let Some(end) = events.iter().find_map(|(_, event)| turn_end(event)) {
            let mut result = json!(end?);
            row.nest_result(&mut result);
            return Ok(response::json(200, &result));
        }
    }
    Err(Error::new(Kind::Cancelled, "the session was closed before the turn ended"))
}
