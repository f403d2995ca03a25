//! `session/prompt`, which answers when its turn ends, and `session/cancel`.

use crate::api::views::attachment::with_attachments;
use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::call_context::TurnStart;
use crate::api::dispatch::convert::{into_meta, session_id};
use crate::api::dispatch::method::{Method, MethodKind, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::api::views::budget;
use crate::content::{BudgetLimits, Part};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::protocol::{acp, content};
use crate::session::AgentSetting;
use crate::session::message::IncomingMessage;
use crate::session::open::decisions::{AcceptedPrompt, PromptRequest};
use crate::session::turn::TurnEnd;

pub(crate) struct Prompt;

impl Method for Prompt {
    type Params = acp::PromptRequest;
    type Result = acp::PromptResponse;
    const NAME: &'static str = "session/prompt";
    const DOC: &'static str = "Starts a turn and answers when it ends (ACP prompt turn). On stdio a prompt to a busy session waits and then runs in its own turn; \
         other transports return session_busy. `_meta.nuncio.budget`: limits of the turn.";
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/prompt")];
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "prompt": [{"type": "text", "text": "What does this project do?"}]}"#;
    const KIND: MethodKind = MethodKind::Turn;
    const SCOPE: Scope = Scope::Owner;
    const ADDS_MESSAGE: bool = true;

    /// Converts a text to a block. A blank text is an empty prompt.
    fn from_rest(_: &CallContext, params: &mut Map<String, Value>) {
        into_meta(params, &["budget"]);
        if let Some(prompt) = params.get_mut("prompt")
            && let Some(text) = prompt.as_str()
        {
            *prompt = if text.trim().is_empty() { json!([]) } else { json!([{ "type": "text", "text": text }]) };
        }
    }

    fn rest_schema(params: &mut Schema, result: &mut Schema) {
        budget::add_to_schema(params);
        if let Some(prompt) = params.pointer_mut("/properties/prompt") {
            prompt["minItems"] = 1.into();
            *prompt = json!({ "anyOf": [prompt.take(), { "type": "string", "description": "The text of the prompt." }] });
        }
        // A REST response has no `usage`: REST reads the end of the turn from the log and returns
        // only the stop reason.
        if let Some(Value::Object(properties)) = result.pointer_mut("/properties") {
            properties.shift_remove("usage");
        }
    }

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<Self::Result>> {
        cx.client.authorized()?;
        let id = session_id(&params.session_id);
        let budget = budget::of_prompt(params.meta.as_ref())?;
        let prompt = with_attachments(&cx, &id, parts(params.prompt)?).await?;
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
) -> Result<Reply<acp::PromptResponse>> {
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
        return Ok(Reply::new(acp::PromptResponse::new(acp::StopReason::Cancelled)));
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
    Ok(Reply::from_result(response(end)).after(id, seq))
}

/// Converts the end of a turn to ACP's response to a prompt. The token counts of the turn are in
/// `usage` (unstable in ACP v1) and in `_meta.nuncio`, which also has the cost in US dollars.
fn response(end: TurnEnd) -> Result<acp::PromptResponse> {
    let TurnEnd { result, usage, cost, cause, seq: _ } = end;
    let usage = usage.as_ref().map(content::usage);
    let facts = [("usage", json!(usage)), ("cost", json!(cost.filter(|_| usage.is_some()))), ("cause", json!(cause))];
    let known = facts.into_iter().filter(|(_, fact)| !fact.is_null()).map(|(name, fact)| (name.to_owned(), fact));
    let ours = Map::from_iter(known);
    let meta = (!ours.is_empty()).then(|| acp::Meta::from_iter([("nuncio".to_string(), Value::Object(ours))]));
    Ok(acp::PromptResponse::new(content::stop_reason(result?)).usage(usage).meta(meta))
}

fn parts(blocks: Vec<acp::ContentBlock>) -> Result<Vec<Part>> {
    if blocks.is_empty() {
        return Err(Error::invalid_params("prompt: is empty"));
    }
    let part =
        |(index, block)| content::part(block).map_err(|problem| Error::invalid_params(format!("prompt[{index}]: {problem}")));
    blocks.into_iter().enumerate().map(part).collect()
}

pub(crate) struct CancelTurn;

impl Method for CancelTurn {
    type Params = acp::CancelNotification;
    type Result = ();
    const NAME: &'static str = "session/cancel";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const DOC: &'static str = "Cancels the running turn and the prompts that wait for it. No effect on an idle session.";
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/cancel")];
    const KIND: MethodKind = MethodKind::Notification;
    const SCOPE: Scope = Scope::OwnerIfAny;

    async fn call(cx: CallContext, params: Self::Params) -> Result<Reply<()>> {
        let id = session_id(&params.session_id);
        match cx.opened(&id) {
            Some(session) => cx.check_access(&session).map(|()| session.cancel())?,
            None => drop(cx.authorize(&id).await?),
        }
        Ok(Reply::new(()))
    }
}
