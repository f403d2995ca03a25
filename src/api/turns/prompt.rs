//! `session/prompt`, which answers when its turn ends, and `session/cancel`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::api::dispatch::call_context::{CallContext, TurnStart};
use crate::api::dispatch::method::{MetaFields, Method, MethodKind, Reply, Scope};
use crate::api::dispatch::prompt_result::PromptResult;
use crate::api::dispatch::route::Route;
use crate::api::views::attachment::with_attachments;
use crate::api::views::budget;
use crate::api::views::view::SessionParams;
use crate::content::{BudgetLimits, Part, StopReason};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::protocol::content;
use crate::protocol::content::PromptContent;
use crate::session::AgentSetting;
use crate::session::message::IncomingMessage;
use crate::session::open::decisions::{AcceptedPrompt, PromptRequest};
use crate::session::turn::TurnEnd;

/// A prompt.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PromptParams {
    pub session_id: SessionId,
    pub prompt: PromptContent,
    /// Limits of the turn.
    #[schemars(with = "Option<BudgetLimits>")]
    pub budget: Option<Value>,
}

impl PromptParams {
    pub(crate) fn new(session_id: &SessionId, parts: Vec<Part>) -> PromptParams {
        PromptParams { session_id: session_id.clone(), prompt: PromptContent(parts), budget: None }
    }
}

pub(crate) struct Prompt;

impl Method for Prompt {
    type Params = PromptParams;
    type Result = PromptResult;
    const NAME: &'static str = "session/prompt";
    const DOC: &'static str = "Starts a turn and answers when it ends (ACP prompt turn). On stdio a prompt to a busy session waits and then runs in its own turn; \
         other transports return session_busy. `_meta.nuncio.budget`: limits of the turn.";
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/prompt")];
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "prompt": [{"type": "text", "text": "What does this project do?"}]}"#;
    const KIND: MethodKind = MethodKind::Turn;
    const SCOPE: Scope = Scope::Owner;
    const ADDS_MESSAGE: bool = true;
    const META: MetaFields = MetaFields { params: &["budget"], result: &["usage", "cost", "cause"], refuses_others: false };

    async fn call(cx: CallContext, params: PromptParams) -> Result<Reply<PromptResult>> {
        cx.client.authorized()?;
        let PromptParams { session_id: id, prompt: PromptContent(parts), budget } = params;
        let budget = budget::read(budget)?;
        if parts.is_empty() {
            return Err(Error::invalid_params("prompt: is empty"));
        }
        let prompt = with_attachments(&cx, &id, parts).await?;
        prompt_session(cx, id, prompt, budget).await
    }
}

/// Starts a turn with `prompt` and answers when it ends. The next call to the
/// session starts when the turn is claimed, so that a later `session/cancel` applies to it.
pub(in crate::api) async fn prompt_session(
    cx: CallContext,
    id: SessionId,
    prompt: Vec<Part>,
    budget: Option<BudgetLimits>,
) -> Result<Reply<PromptResult>> {
    let client = cx.client.clone();
    let session = cx.owned(&id).await?;
    session.agent().check_settings(&budget.iter().flat_map(AgentSetting::limited_by).collect::<Vec<_>>())?;
    let after = session.log.head();
    let message = IncomingMessage {
        by_model: client.is_model,
        is_forwarded: cx.forwarded,
        ..IncomingMessage::user(cx.message_id.clone(), prompt)
    };
    let prompted = if client.local.is_some() {
        let (by, forwarded) = (client.actor(), cx.forwarded);
        let (cancel, answered) = (cx.cancel.clone(), cx.answered.clone());
        session.prompt(message, PromptRequest { by, forwarded, budget, cancel, answered })?
    } else {
        AcceptedPrompt::Started(session.start_turn(message, client.actor(), budget)?)
    };
    cx.decided();
    client.show(&session, after);
    drop(session);
    let started = match prompted {
        AcceptedPrompt::Started(turn) => Some(turn),
        AcceptedPrompt::Waits(waiting) => waiting.started(&cx.cancel).await?,
    };
    let Some(mut turn) = started else {
        return Ok(Reply::new(PromptResult::new(StopReason::Cancelled, None)));
    };
    if cx.turn_started.is_some() {
        turn.opened().await?;
        cx.report_started(TurnStart { session: id.clone(), turn: turn.id.clone(), after });
    }
    let end = tokio::select! {
        biased;
        end = turn.end() => end,
        () = cx.cancel.cancelled() => {
            turn.cancel();
            turn.end().await
        }
    };
    let seq = end.seq;
    Ok(Reply::from_result(result(end)).after(id, seq))
}

fn result(end: TurnEnd) -> Result<PromptResult> {
    let TurnEnd { result, usage, cost, cause, seq: _ } = end;
    let usage = usage.as_ref().map(content::usage);
    Ok(PromptResult { stop_reason: result?, cost: cost.filter(|_| usage.is_some()), usage, cause })
}

pub(crate) struct CancelTurn;

impl Method for CancelTurn {
    type Params = SessionParams;
    type Result = ();
    const NAME: &'static str = "session/cancel";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const DOC: &'static str = "Cancels the running turn and the prompts that wait for it. No effect on an idle session.";
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/cancel")];
    const KIND: MethodKind = MethodKind::Notification;
    const SCOPE: Scope = Scope::OwnerIfAny;

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<()>> {
        let id = params.session_id;
        match cx.opened(&id) {
            Some(session) => cx.check_access(&session).map(|()| session.cancel())?,
            None => drop(cx.authorize(&id).await?),
        }
        Ok(Reply::new(()))
    }
}
