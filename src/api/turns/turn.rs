//! The list of turns of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::views::view::PageParams;
use crate::content::{Cost, Usage};
use crate::error::Result;
use crate::event::Actor;
use crate::id::Seq;
use crate::session::folds::turns::{LastTurn, TurnRecord, TurnStatus};

/// A turn. Times are in milliseconds since the Unix epoch.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnView {
    #[serde(flatten)]
    turn: LastTurn,
    /// The client that prompted.
    by: Option<Actor>,
    /// `PROVIDER/NAME` of the model; missing before the turn's first model request.
    model: Option<String>,
    /// Total usage of the model requests of the turn and of its subagents that have ended; missing
    /// if the provider reported none.
    usage: Option<Usage>,
    /// Total cost of these requests in US dollars; missing if no price is known.
    cost: Option<Cost>,
    started_at_ms: u64,
    ended_at_ms: Option<u64>,
    /// Seq of the turn's `turn.started`.
    pub first_seq: Seq,
    /// Seq of the event that ended the turn.
    last_seq: Option<Seq>,
}

impl TurnView {
    fn from_record(turn: &TurnRecord) -> TurnView {
        let ended = turn.turn.status != TurnStatus::Running;
        let (usage, cost) = turn.total();
        TurnView {
            turn: turn.turn.clone(),
            by: turn.by.clone(),
            model: turn.model.as_deref().map(String::from),
            usage,
            cost,
            started_at_ms: turn.started_ms,
            ended_at_ms: ended.then_some(turn.ended_ms),
            first_seq: turn.first_seq,
            last_seq: ended.then_some(turn.last_seq),
        }
    }
}

/// A page of turns, newest last. `nextCursor` is missing on the last page.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnsPage {
    pub turns: Vec<TurnView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

pub(crate) struct ListTurns;

impl Method for ListTurns {
    type Params = PageParams;
    type Result = TurnsPage;
    const NAME: &'static str = "_nuncio/session/turns";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "limit": 20}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/turns")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the turns of a session, newest last.";

    async fn call(cx: CallContext, params: PageParams) -> Result<Reply<TurnsPage>> {
        let (after, limit) = params.bounds()?;
        let session = cx.open_read_only(&params.session_id).await?;
        let page = session.log.state(|state| {
            let turns = state.turns.after(after);
            let page = &turns[..turns.len().min(limit)];
            let next_cursor = page.last().filter(|_| turns.len() > limit).map(|last| last.first_seq.to_string());
            TurnsPage { turns: page.iter().map(TurnView::from_record).collect(), next_cursor }
        });
        Ok(Reply::new(page))
    }
}
