//! The method that follows events.

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::event_stream::{EventStream, FollowParams};
use crate::api::dispatch::method::{Method, MethodKind, Reply};
use crate::api::dispatch::route::Route;
use crate::error::Result;

pub(crate) struct FollowEvents;

impl Method for FollowEvents {
    type Params = FollowParams;
    type Result = ();
    const NAME: &'static str = "_nuncio/events/follow";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[
        Route::get("/v1/sessions/{sessionId}/events").operation_id("session_events"),
        Route::get("/v1/events").operation_id("events"),
    ];
    const ROLE: ClientRole = ClientRole::Observer;
    const KIND: MethodKind = MethodKind::Stream;
    const DOC: &'static str = "Streams the events of one session or of all sessions after a cursor, then live events.";

    async fn call(cx: CallContext, params: FollowParams) -> Result<Reply<()>> {
        Ok(Reply::new(()).stream(EventStream::open(&cx, params).await?))
    }
}
