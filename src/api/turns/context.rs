//! The context window of a session: its report, and compaction on request.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{MetaFields, Method, MethodKind, Reply, Scope};
use crate::api::dispatch::prompt_result::PromptResult;
use crate::api::dispatch::route::Route;
use crate::api::turns::prompt::{Prompt, prompt_session};
use crate::api::views::view::SessionParams;
use crate::content::Part;
use crate::error::Result;
use crate::id::SessionId;
use crate::session::AgentSetting;
use crate::session::context_report::ContextReport;

pub(crate) struct GetContext;

impl Method for GetContext {
    type Params = SessionParams;
    type Result = ContextReport;
    const NAME: &'static str = "_nuncio/session/context";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/context")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Returns the tokens of the next model request by source: system prompt, tools, instructions, files, tool results, messages.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<ContextReport>> {
        let session = cx.open_read_only(&params.session_id).await?;
        session.agent().context(&session.log).await.map(Reply::new)
    }
}

/// Selects a session and the emphasis of the summary.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CompactParams {
    session_id: SessionId,
    /// Text for the model about what the summary should emphasize.
    focus: Option<String>,
}

pub(crate) struct CompactSession;

impl Method for CompactSession {
    type Params = CompactParams;
    type Result = PromptResult;
    const NAME: &'static str = "_nuncio/session/compact";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "focus": "the failing tests"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/compact")];
    const DOC: &'static str = "Replaces the conversation that the model sees by a summary, in a turn of its own with the prompt `/compact`. The log keeps \
         all messages. A compaction that fails or is cancelled changes nothing.";
    const KIND: MethodKind = MethodKind::Turn;
    const SCOPE: Scope = Scope::Owner;
    const ADDS_MESSAGE: bool = true;

    const META: MetaFields = Prompt::META;

    async fn call(cx: CallContext, params: CompactParams) -> Result<Reply<PromptResult>> {
        cx.client.authorized()?;
        cx.owned(&params.session_id).await?.agent().check_settings(&[AgentSetting::Compaction])?;
        let text = params.focus.map_or("/compact".into(), |focus| format!("/compact {focus}"));
        prompt_session(cx, params.session_id, vec![Part::text(text)], None).await
    }
}
