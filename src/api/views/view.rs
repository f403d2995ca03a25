//! A read-only view of a session: its current state.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::options::modes;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::remote::placement::unavailable;
use crate::content::{Cost, PlanEntry, Role, StopReason, Usage};
use crate::error::{Error, Result};
use crate::event::{ParentCall, timestamp};
use crate::id::{MessageId, Seq, SessionId, TurnId};
use crate::limits;
use crate::options::{Mode, OptionValue, Thinking};
use crate::protocol::acp;
use crate::session::folds::open_items::OpenMessage;
use crate::session::folds::summary::{SessionSummary, SessionWork};
use crate::session::folds::turns::LastTurn;
use crate::session::{LiveOwner, Owners, Sessions};
use crate::store::SessionRow;

/// Default number of messages or turns on a page.
const LIST_PAGE: usize = 50;
/// Maximum number of messages or turns on a page.
const LIST_PAGE_MAX: usize = 200;

/// Status of a session in all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionStatus {
    /// No process owns the session.
    None,
    /// A process owns the session and no turn runs.
    Idle,
    /// A process owns the session and a turn runs.
    Busy,
}

/// Activity of a session, in whichever process it is. `waiting`: a permission request is open.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Activity {
    status: SessionStatus,
    waiting: bool,
    /// Id of the process that owns the session; missing if none does, or on another node.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_pid: Option<u32>,
    #[serde(flatten)]
    work: SessionWork,
}

impl Activity {
    /// Returns the activity of a stored session, which is not necessarily open in this process.
    pub(crate) async fn listed(sessions: &Sessions, owners: &mut Owners<'_>, row: &SessionRow) -> Result<Activity> {
        if let Some(session) = sessions.owned(&row.id) {
            let claimed = session.is_busy();
            let summary = session.log.state(SessionSummary::from_state);
            return Ok(Activity::owned(summary, claimed, LiveOwner::this_process()));
        }
        let summary = SessionSummary::stored(row);
        if let Some(owner) = owners.owner(row).await? {
            return Ok(Activity::owned(summary, false, owner));
        }
        // The owner may have ended the turn and released the session after the row was read.
        let read_again = if summary.turn().is_some() { sessions.row(&row.id).await.ok() } else { None };
        Ok(Activity::unowned(read_again.as_ref().map_or(summary, SessionSummary::stored)))
    }

    /// Returns the total cost of the session's model requests and of its subagents that have ended.
    /// `None` if no price is known.
    pub(crate) fn cost(&self) -> Option<Cost> {
        self.work.cost
    }

    /// Returns the stop reason of the newest turn. `None` if it runs, was cancelled or failed.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.work.last_turn.as_ref()?.stop_reason
    }

    pub(crate) fn last_turn(&self) -> Option<&LastTurn> {
        self.work.last_turn.as_ref()
    }

    pub(crate) fn waiting(&self) -> bool {
        self.waiting
    }

    /// Returns the number of turns, and the model of the newest request.
    pub(crate) fn turns(&self) -> (u64, Option<&str>) {
        (self.work.turns.unwrap_or_default(), self.work.model_used.as_deref())
    }

    pub(crate) fn owner_pid(&self) -> Option<u32> {
        self.owner_pid
    }

    pub(crate) fn origin(&self) -> Option<&str> {
        self.work.origin.as_deref()
    }

    pub(crate) fn agent(&self) -> Option<&str> {
        self.work.agent.as_deref()
    }

    pub(crate) fn status(&self) -> SessionStatus {
        self.status
    }

    /// Creates the activity of a session with a live owner. `claimed`: a turn is about to start.
    fn owned(summary: SessionSummary, claimed: bool, owner: LiveOwner) -> Activity {
        let busy = claimed || summary.turn().is_some();
        let status = if busy { SessionStatus::Busy } else { SessionStatus::Idle };
        Activity { owner_pid: owner.pid, ..Activity::new(status, summary) }
    }

    /// Creates the activity of a session without a live owner.
    fn unowned(mut summary: SessionSummary) -> Activity {
        summary.interrupt();
        Activity::new(SessionStatus::None, summary)
    }

    fn new(status: SessionStatus, summary: SessionSummary) -> Activity {
        Activity { status, waiting: !summary.open_permissions.is_empty(), owner_pid: None, work: summary.work }
    }
}

/// Selects a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SessionParams {
    pub session_id: SessionId,
}

/// Current state of a session.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionView {
    pub session_id: SessionId,
    pub cwd: PathBuf,
    pub additional_directories: Vec<PathBuf>,
    pub title: Option<String>,
    #[serde(flatten)]
    pub activity: Activity,
    /// Why no turn can start, if the status is `none` and the directory is missing.
    pub unavailable: Option<String>,
    pub mode: OptionValue<Mode>,
    /// The model of the next turn, `PROVIDER/NAME`; missing if it is not known yet.
    pub model: Option<String>,
    pub thinking: Option<OptionValue<Thinking>>,
    /// The system prompt of the next turn; missing for hosted agents.
    pub system_prompt: Option<String>,
    /// Names of the tools that the model can call; `GET /v1/tools?sessionId=` describes them.
    pub tools: Vec<String>,
    /// The id of the session in the hosted agent, from its first turn on.
    pub agent_session: Option<String>,
    /// The setting or the file with which the hosted agent makes calls without asking nuncio, so
    /// that the mode and the rules have no effect on them. Missing if it asks, or if this is not
    /// known.
    pub agent_rules: Option<String>,
    /// The tool call of another session that created this session of a subagent.
    pub parent: Option<ParentCall>,
    /// The sessions of the subagents, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildSession>,
    /// RFC 3339, as is `updatedAt`.
    pub created_at: String,
    pub updated_at: String,
    /// The running turn.
    pub turn_id: Option<TurnId>,
    /// The message that is being written, with its text so far.
    pub open_message: Option<OpenMessageView>,
    /// Seq of the last event.
    pub head: Seq,
    /// Tokens of the model's context window that the conversation uses.
    pub context_tokens: u64,
    /// Total usage of the session's model requests and of its subagents that have ended.
    pub usage: Usage,
    pub plan: Vec<PlanEntry>,
    /// Number of queued messages.
    pub queued: usize,
    pub modes: acp::SessionModeState,
}

/// A message that a model is writing. `text` has the part that was received.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OpenMessage")]
pub(crate) struct OpenMessageView {
    message_id: MessageId,
    role: Role,
    text: String,
}

impl OpenMessageView {
    fn from_message(open: &OpenMessage) -> OpenMessageView {
        OpenMessageView { message_id: open.id.clone(), role: open.role, text: open.text.clone() }
    }
}

/// The session of a subagent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ChildView")]
pub(crate) struct ChildSession {
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(flatten)]
    activity: Activity,
}

pub(crate) struct GetSession;

impl Method for GetSession {
    type Params = SessionParams;
    type Result = SessionView;
    const NAME: &'static str = "_nuncio/session/get";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Returns the current state of a session, such as its activity, mode, model, system prompt and plan.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<SessionView>> {
        let sessions = cx.authorize(&params.session_id).await?;
        let id = &params.session_id;
        // The owner first: the state is then at least as new.
        let read = async || {
            let owner = sessions.owners().owner(&sessions.row(id).await?).await?;
            let session = sessions.open_read_only(id).await?;
            Ok((owner.or_else(|| session.is_owned().then(LiveOwner::this_process)), session))
        };
        let (mut owner, mut session) = read().await?;
        if owner.is_none() && session.log.state(|state| state.turn.is_some()) {
            // A process may have taken the session in between.
            (owner, session) = read().await?;
        }
        let children = children(sessions, id).await?;
        let claimed = session.is_busy();
        // Settings that cannot be read must not hide the session: the next turn reports the error.
        let setup = session.agent().setup(&session.log).await.unwrap_or_default();
        let agent_rules = session.agent().own_rules(&session.log);
        let cwd = session.log.state(|state| state.cwd.clone());
        let unavailable = if owner.is_some() { None } else { unavailable(sessions, id, &cwd).await? };
        let activity = |summary| match owner {
            Some(owner) => Activity::owned(summary, claimed, owner),
            None => Activity::unowned(summary),
        };
        let view = session.log.state_at_head(|state, head| SessionView {
            session_id: id.clone(),
            cwd: state.cwd.clone(),
            additional_directories: state.additional_directories().to_vec(),
            title: state.settings.title.clone(),
            unavailable,
            activity: activity(SessionSummary::from_state(state)),
            mode: state.mode.clone(),
            model: setup.model.or_else(|| state.settings.model.clone()),
            thinking: state.settings.thinking.clone(),
            system_prompt: setup.system_prompt,
            tools: setup.tools.into_iter().map(|tool| tool.name).collect(),
            agent_session: state.settings.agent_session.clone(),
            agent_rules,
            parent: state.parent.as_deref().map(|parent| parent.call.clone()),
            children,
            created_at: timestamp(state.created_ms),
            updated_at: timestamp(state.updated_ms),
            turn_id: state.turn.clone().filter(|_| owner.is_some()),
            open_message: state.open_messages.last().filter(|_| owner.is_some()).map(OpenMessageView::from_message),
            head,
            context_tokens: state.context_tokens,
            usage: state.turns.total().0.unwrap_or_default(),
            plan: state.plan.clone(),
            queued: state.queue.len(),
            modes: modes(state),
        });
        Ok(Reply::new(view))
    }
}

/// Lists the sessions of a session's subagents.
async fn children(sessions: &Sessions, id: &SessionId) -> Result<Vec<ChildSession>> {
    let mut owners = sessions.owners();
    let mut children = Vec::new();
    for row in sessions.store().children(id, limits::CHILDREN_LISTED_MAX).await? {
        let activity = Activity::listed(sessions, &mut owners, &row).await?;
        children.push(ChildSession { activity, session_id: row.id, title: row.title });
    }
    Ok(children)
}

/// Selects a page of a session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PageParams {
    pub session_id: SessionId,
    /// `nextCursor` of the previous page.
    pub cursor: Option<String>,
    /// Page size: 1 to 200; 50 when it is missing.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<usize>,
}

impl PageParams {
    /// Returns the seq after which the page starts, and its maximum length. Fails if a parameter is
    /// invalid.
    pub(crate) fn bounds(&self) -> Result<(Seq, usize)> {
        let after = match &self.cursor {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| Error::invalid_params("cursor: invalid"))?,
        };
        let limit = self.limit.unwrap_or(LIST_PAGE);
        if !(1..=LIST_PAGE_MAX).contains(&limit) {
            return Err(Error::invalid_params(format!("limit: must be 1 to {}", LIST_PAGE_MAX)));
        }
        Ok((after, limit))
    }
}
