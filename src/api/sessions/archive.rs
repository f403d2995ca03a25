//! `session/archive` and `session/unarchive`: hide a session from `session/list` and show it again.

use super::session::ended;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::method::{Method, NoResult, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::api::views::view::SessionParams;
use crate::error::Result;

pub(crate) struct ArchiveSession;

impl Method for ArchiveSession {
    type Params = SessionParams;
    type Result = NoResult;
    const NAME: &'static str = "session/archive";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/archive")];
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str = "Cancels the work of a session, closes it and hides it from `session/list`. Its history is kept.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<NoResult>> {
        let id = params.session_id;
        let sessions = cx.authorize(&id).await?;
        let archived = sessions.archive(&id).await.map(|()| NoResult {});
        Ok(ended(sessions, id, archived))
    }
}

pub(crate) struct UnarchiveSession;

impl Method for UnarchiveSession {
    type Params = SessionParams;
    type Result = NoResult;
    const NAME: &'static str = "session/unarchive";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/unarchive")];
    const DOC: &'static str = "Lists an archived session again. Does not open it.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<NoResult>> {
        let id = &params.session_id;
        cx.authorize(id).await?.set_archived(id, false).await?;
        Ok(Reply::new(NoResult {}))
    }
}
