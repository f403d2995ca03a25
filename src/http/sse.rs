//! Server-sent events (HTML standard, section 9.2), with cursors as ids. Events are read from the
//! log at the client's pace, so a slow client needs no buffer, only a cursor.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::Schema;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::metrics::GaugeGuard;
use super::params;
use super::state::AppState;
use crate::api::{AGENT_STATUS, CallContext, Client, EventStream, MethodRow, StreamItem};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::limits;

/// Interval at which an open stream's access token is validated again.
const TOKEN_AGAIN: Duration = Duration::from_secs(1);

/// Opens the stream of a method and responds with its events.
pub(crate) async fn answer(
    row: &MethodRow,
    state: Arc<AppState>,
    client: Arc<Client>,
    request: Request,
    schema: &Schema,
) -> Result<Response> {
    let recheck = TokenRecheck::new(&request);
    let last = request.headers().get("last-event-id").cloned();
    let mut params = params::gather(row, &state, request, schema, false).await?;
    // A client that reconnects sends the same URL again, so `Last-Event-ID` takes precedence over
    // `after`.
    if let Some(last) = last.filter(|last| !last.is_empty()) {
        let cursor: Option<u64> = last.to_str().ok().and_then(|last| last.parse().ok());
        let cursor = cursor.ok_or_else(|| Error::invalid_params("Last-Event-ID: invalid cursor"))?;
        params.insert("after".into(), cursor.into());
    }
    let cx = CallContext::new(state.app.clone(), client, CancellationToken::new());
    let reply = row.run(cx, Value::Object(params)).await?;
    reply.result?;
    let stream = reply.stream.ok_or_else(|| Error::internal(format!("{} opened no stream", row.name)))?;
    Ok(respond(state, recheck, *stream, |_| false))
}

/// Rechecks the token of a stream, which may be revoked while the stream is open.
pub(crate) struct TokenRecheck {
    headers: HeaderMap,
    checked_at: Instant,
}

impl TokenRecheck {
    /// Keeps the token of a request that was just authenticated.
    pub(crate) fn new(request: &Request) -> TokenRecheck {
        let kept = [header::AUTHORIZATION, header::COOKIE, header::HOST];
        let kept = kept.into_iter().filter_map(|name| Some((name.clone(), request.headers().get(&name)?.clone())));
        TokenRecheck { headers: kept.collect(), checked_at: Instant::now() }
    }

    /// Returns false once the token is revoked. Checks the token at most once per
    /// [`TOKEN_AGAIN`].
    fn is_valid(&mut self, state: &AppState) -> bool {
        if self.checked_at.elapsed() < TOKEN_AGAIN {
            return true;
        }
        self.checked_at = Instant::now();
        state.auth.client(&self.headers).is_ok()
    }
}

/// Responds with a stream of events, which ends after the first event for which `last` returns
/// true.
pub(crate) fn respond(
    state: Arc<AppState>,
    recheck: TokenRecheck,
    stream: EventStream,
    last: impl Fn(&Event) -> bool + Send + 'static,
) -> Response {
    struct StreamReader<L> {
        state: Arc<AppState>,
        stream: EventStream,
        last: L,
        recheck: TokenRecheck,
        over: bool,
        _open: GaugeGuard,
    }
    let _open = GaugeGuard::new(&state.requests.streams);
    let reading = StreamReader { state, stream, last, recheck, over: false, _open };
    let frames = futures_util::stream::unfold(reading, |mut reading| async move {
        if reading.over {
            return None;
        }
        let next = tokio::time::timeout(limits::HEARTBEAT, reading.stream.next(&reading.state.ending)).await;
        if !reading.recheck.is_valid(&reading.state) {
            return None;
        }
        let bytes = match next {
            Err(_) => Bytes::from_static(b": alive\n\n"),
            Ok(Ok(Some(StreamItem::Synced(cursor)))) => format!("event: synced\ndata: {{\"cursor\":{cursor}}}\n\n").into(),
            Ok(Ok(Some(StreamItem::Status(change)))) => {
                format!("event: {AGENT_STATUS}\ndata: {}\n\n", serde_json::json!(change)).into()
            }
            Ok(Ok(Some(StreamItem::Events(events)))) => {
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
            // End the response: the client reconnects with its cursor.
            Ok(Err(error)) => {
                tracing::warn!(error = %error, "an event stream failed");
                return None;
            }
        };
        Some((Ok::<_, std::convert::Infallible>(bytes), reading))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // nginx and others would hold events back until a buffer is full.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (StatusCode::OK, headers, Body::from_stream(frames)).into_response()
}

fn frame(cursor: u64, event: &Event, into: &mut Vec<u8>) {
    use std::io::Write;
    let _ = write!(into, "id: {cursor}\ndata: ");
    serde_json::to_writer(&mut *into, event).expect("events have string keys and no failing serializers");
    into.extend_from_slice(b"\n\n");
}
