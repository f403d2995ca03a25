//! A prompt in its three forms: waited for, begun and left (`Prefer: respond-async`, RFC 7240), or watched as a stream. It is begun in one way;
//! what came of it is read from the log.

use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::once::{self, Outcome};
use super::params::{self, Fields};
use super::routes::accepts;
use super::{Door, answer, sse};
use crate::api::{Began, Client, Cx, Entry, EventStream, FollowParams, Method, Prompt, Shown};
use crate::content::StopReason;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event};

pub const NAME: &str = Prompt::NAME;

enum Form {
    Wait,
    Leave,
    Watch,
}

pub async fn answer(
    entry: &'static Entry,
    door: &Arc<Door>,
    client: Arc<Client>,
    request: Request,
    fields: &Fields,
) -> Result<Response> {
    let (form, key, pass) = (form(&request), once::key(&request, &client)?, sse::Pass::of(&request));
    let params = Value::Object(params::gather(door, request, fields, false).await?);
    let cx = Cx::new(door.nuncio.clone(), client, CancellationToken::new());
    let began = match key {
        None => begin(entry, door, &cx, params).await?,
        Some(key) => {
            let (asker, cx, asked) = (door.clone(), cx.clone(), params.clone());
            let work = async move {
                let work = async { begin(entry, &asker, &cx, params).await.map(Outcome::Turn) };
                asker.once.outcome(&asker.nuncio, key, entry.name, &asked, work).await
            };
            match door.to_its_end(work).await? {
                Outcome::Turn(began) => began,
                Outcome::Json { .. } => return Err(Error::internal("the key of a prompt holds no turn")),
            }
        }
    };
    if let Form::Leave = form {
        let mut response = answer::json(202, &json!({ "turnId": began.turn }));
        response.headers_mut().insert("preference-applied", HeaderValue::from_static("respond-async"));
        return Ok(response);
    }
    let params = FollowParams { session_id: Some(began.session), after: began.after, turn: Some(began.turn), ..Default::default() };
    let stream = EventStream::open(&cx, params).await?;
    match form {
        Form::Watch => Ok(sse::respond(door.clone(), pass, stream, |event| event.body.ends_turn())),
        _ => wait(door, stream).await,
    }
}

fn form(request: &Request) -> Form {
    let preferred = request.headers().get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut preferred = preferred.flat_map(|value| value.split([',', ';']));
    if accepts(request, "text/event-stream") {
        Form::Watch
    } else if preferred.any(|one| one.trim().eq_ignore_ascii_case("respond-async")) {
        Form::Leave
    } else {
        Form::Wait
    }
}

/// Starts the turn. The call runs on its own: a client that hangs up ends nothing.
async fn begin(entry: &'static Entry, door: &Door, cx: &Cx, params: Value) -> Result<Began> {
    let (told, began) = oneshot::channel();
    let mut cx = Cx { client: attending(door, &cx.client), ..cx.clone() };
    cx.began = Some(Arc::new(Mutex::new(Some(told))));
    let call = door.running.spawn(entry.run(cx, params).in_current_span());
    match began.await {
        Ok(began) => Ok(began),
        // Nothing was begun: the call says why.
        Err(_) => {
            let reply = call.await.map_err(|_| Error::internal("the prompt broke"))??;
            Err(reply.result.err().unwrap_or_else(|| Error::internal("a prompt that began no turn")))
        }
    }
}

/// Whoever prompts over HTTP can answer the turn's questions until its end, whether it holds a stream open or asks for the list.
pub fn attending(door: &Door, client: &Client) -> Arc<Client> {
    let client = Arc::new(client.again());
    let running = door.running.clone();
    client.on_show(Box::new(move |session, _| {
        let (attendance, session) = (session.broker.attend(), session.clone());
        running.spawn(async move {
            while let Some(mut turn) = session.turn() {
                turn.end().await;
            }
            drop(attendance);
        });
    }));
    client
}

/// The end of the turn, as ACP tells it.
async fn wait(door: &Door, mut stream: EventStream) -> Result<Response> {
    while let Some(shown) = stream.next(&door.ending).await? {
        let Shown::Events(events) = shown else { continue };
        if let Some(end) = events.iter().find_map(|(_, event)| end(event)) {
            return end.map(|stop_reason| answer::json(200, &json!({ "stopReason": stop_reason })));
        }
    }
    Err(Error::new(Kind::Cancelled, "the session ended first"))
}

/// How a turn ended, if this event ends it.
fn end(event: &Event) -> Option<Result<StopReason>> {
    match &event.body {
        Body::TurnCompleted { stop_reason } => Some(Ok(*stop_reason)),
        Body::TurnCancelled {} => Some(Ok(StopReason::Cancelled)),
        Body::TurnInterrupted {} => Some(Err(Error::new(Kind::Cancelled, "the process that worked on the turn ended first"))),
        Body::TurnFailed { code, message, hint } => {
            let mut error = Error::new(Kind::from_code(code).unwrap_or(Kind::Internal), message.as_str());
            error.hint = hint.clone();
            Some(Err(error))
        }
        _ => None,
    }
}
