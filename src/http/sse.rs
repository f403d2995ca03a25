//! Server-sent events (HTML standard, section 9.2): each event under its cursor. A slow reader is read for slowly, and costs a cursor.

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Door;
use super::answer::Failure;
use super::metrics::Counted;
use super::params::{self, Fields};
use super::routes::{TheClient, TheDoor};
use crate::api::{Cx, EventStream, FollowParams, Shown};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::limits;

/// `GET …/events`.
pub async fn follow(Extension(door): TheDoor, Extension(client): TheClient, request: Request) -> Response {
    let cx = Cx::new(door.nuncio.clone(), client, CancellationToken::new());
    let pass = Pass::of(&request);
    match open(&door, &cx, request).await {
        Ok(stream) => respond(door, pass, stream, |_| false),
        Err(error) => Failure(error).into_response(),
    }
}

async fn open(door: &Door, cx: &Cx, request: Request) -> Result<EventStream> {
    let last = request.headers().get("last-event-id").cloned();
    let fields = Fields::of(schemars::schema_for!(FollowParams));
    let mut params = params::gather(door, request, &fields, false).await?;
    // A reader that comes back asks for the same address again: where it was then is what counts.
    if let Some(last) = last.filter(|last| !last.is_empty()) {
        let cursor: Option<u64> = last.to_str().ok().and_then(|last| last.parse().ok());
        let cursor = cursor.ok_or_else(|| Error::invalid_params("Last-Event-ID: is no cursor of this stream"))?;
        params.insert("after".into(), cursor.into());
    }
    let params: FollowParams = serde_path_to_error::deserialize(Value::Object(params))
        .map_err(|error| Error::invalid_params(format!("{}: {}", error.path(), error.inner())))?;
    EventStream::open(cx, params).await
}

/// The token of a stream, which may be revoked while it is read.
pub struct Pass {
    headers: HeaderMap,
    looked: Instant,
}

impl Pass {
    pub fn of(request: &Request) -> Pass {
        let token = request.headers().get(header::AUTHORIZATION).map(|token| (header::AUTHORIZATION, token.clone()));
        Pass { headers: token.into_iter().collect(), looked: Instant::now() }
    }

    fn counts(&mut self, door: &Door) -> bool {
        if self.looked.elapsed() < limits::TOKEN_AGAIN {
            return true;
        }
        self.looked = Instant::now();
        door.gate.client(&self.headers).is_ok()
    }
}

/// A stream as an answer; `last` tells the event it ends with.
pub fn respond(door: Arc<Door>, pass: Pass, stream: EventStream, last: impl Fn(&Event) -> bool + Send + 'static) -> Response {
    struct Reading<L> {
        door: Arc<Door>,
        stream: EventStream,
        last: L,
        pass: Pass,
        over: bool,
        _open: Counted,
    }
    let _open = Counted::new(&door.requests.streams);
    let reading = Reading { door, stream, last, pass, over: false, _open };
    let frames = futures_util::stream::unfold(reading, |mut reading| async move {
        if reading.over {
            return None;
        }
        let next = tokio::time::timeout(limits::HEARTBEAT, reading.stream.next(&reading.door.ending)).await;
        if !reading.pass.counts(&reading.door) {
            return None;
        }
        let bytes = match next {
            Err(_) => Bytes::from_static(b": alive\n\n"),
            Ok(Ok(Some(Shown::Synced(cursor)))) => format!("event: synced\ndata: {{\"cursor\":{cursor}}}\n\n").into(),
            Ok(Ok(Some(Shown::Events(events)))) => {
                let mut bytes = Vec::with_capacity(256 * events.len());
                for (cursor, event) in &events {
                    frame(*cursor, event, &mut bytes);
                    if (reading.last)(event) {
                        reading.over = true;
                        break;
                    }
                }
                bytes.into()
            }
            Ok(Ok(None)) => return None,
            // The reader comes back with its cursor.
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "a stream broke off");
                return None;
            }
        };
        Some((Ok::<_, std::convert::Infallible>(bytes), reading))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (StatusCode::OK, headers, Body::from_stream(frames)).into_response()
}

fn frame(cursor: u64, event: &Event, into: &mut Vec<u8>) {
    use std::io::Write;
    let _ = write!(into, "id: {cursor}\ndata: ");
    serde_json::to_writer(&mut *into, event).expect("events have string keys and no failing serializers");
    into.extend_from_slice(b"\n\n");
}
