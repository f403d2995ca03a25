//! Methods that list and answer permission requests, for clients whose transport does not send them
//! the requests.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, MethodRow, Reply};
use crate::api::dispatch::route::Route;
use crate::api::remote::forward::call_owner;
use crate::content::{
    ALLOW_PROJECT, CallDetails, HunkDecision, PermissionOption, PermissionOptionKind, ReviewAnswer, ReviewEdit, ReviewOffer,
    ToolKind, ToolLabel,
};
use crate::error::{Error, Kind, Result};
use crate::event::{Actor, PermissionRequest, ToolStart};
use crate::id::{PermissionId, Seq, SessionId, ToolCallId, TurnId};
use crate::session::folds::open_items::OpenPermission;
use crate::session::folds::state::ResolvedPermission;
use crate::session::folds::summary::SessionSummary;
use crate::session::{ChoiceDetails, OwnedSession, Session, SessionState};
use crate::store::SessionRow;

/// How long a late answer to a permission request waits for the first answer to be recorded.
const PERMISSION_RESOLVED: Duration = Duration::from_secs(1);

/// Selects permission requests.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListPermissionsParams {
    /// Only requests of this session.
    pub session_id: Option<SessionId>,
}

/// An open permission request.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Permission")]
pub(crate) struct PermissionView {
    pub permission_id: PermissionId,
    pub session_id: SessionId,
    turn_id: Option<TurnId>,
    pub tool_call: PendingToolCall,
    pub options: Vec<PermissionOption>,
    /// Time at which the request is denied, in milliseconds since the Unix epoch. Missing while the
    /// request waits for a person.
    deadline_ms: Option<u64>,
    /// For changes of files: the files and hunks that the answer may decide about.
    pub review: Option<ReviewOffer>,
}

/// The tool call that needs the permission. `content` shows its effect: a diff or a command.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AskedCall")]
pub(crate) struct PendingToolCall {
    pub tool_call_id: ToolCallId,
    #[serde(flatten)]
    pub tool: ToolLabel,
    #[serde(flatten)]
    pub details: CallDetails,
}

/// Open permission requests.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PermissionList {
    pub permissions: Vec<PermissionView>,
}

pub(crate) struct ListPermissions;

impl Method for ListPermissions {
    type Params = ListPermissionsParams;
    type Result = PermissionList;
    const NAME: &'static str = "_nuncio/permission/list";
    const ROUTES: &'static [Route] = &[Route::get("/v1/permissions")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the open permission requests in the sessions of all processes.";

    async fn call(cx: CallContext, params: ListPermissionsParams) -> Result<Reply<PermissionList>> {
        if let Some(id) = &params.session_id {
            cx.authorize(id).await?;
        }
        let listed = |id: &SessionId| params.session_id.as_ref().is_none_or(|only| only == id);
        let listed_open = accessible(&cx).into_iter().filter(|session| listed(&session.log.id));
        let owned: Vec<OwnedSession> = listed_open.filter_map(|session| session.owned().ok()).collect();
        let elsewhere = waiting_elsewhere(&cx, |row| listed(&row.id)).await?;
        let permissions = owned.iter().flat_map(|session| requests(session)).chain(elsewhere.iter().flat_map(requests));
        let mut permissions: Vec<PermissionView> = permissions.collect();
        if !cx.client.is_owner() {
            permissions.iter_mut().for_each(|asked| asked.options.retain(|option| !option.needs_owner()));
        }
        Ok(Reply::new(PermissionList { permissions }))
    }
}

/// Returns the open sessions that the caller has access to.
fn accessible(cx: &CallContext) -> Vec<Session> {
    let open = cx.app.sessions_now().map(|sessions| sessions.all_open()).unwrap_or_default();
    open.into_iter().filter(|session| cx.client.has_access_to(&session.log.state(|state| state.cwd.clone()))).collect()
}

/// Returns the permission requests of a session that can still be answered. If another process owns
/// the session, returns the requests that have no answer in the log.
fn requests(session: &Session) -> Vec<PermissionView> {
    let mut open: Vec<PermissionView> = session.log.state(|state| {
        let open = state.open_permissions.iter();
        open.filter_map(|OpenPermission { request, .. }| {
            Some(PermissionView {
                permission_id: request.permission_id.clone(),
                session_id: session.log.id.clone(),
                turn_id: state.turn.clone(),
                tool_call: asked_call(state, request)?,
                options: request.options.clone(),
                deadline_ms: request.deadline_ms,
                review: request.review.clone(),
            })
        })
        .collect()
    });
    open.retain(|request| session.is_waiting_for(&request.permission_id));
    open
}

/// Describes the call that needs the permission. Only the label is available for a request about a
/// budget, which has no call, and for a background subagent, whose call has ended.
fn asked_call(state: &SessionState, request: &PermissionRequest) -> Option<PendingToolCall> {
    let call = state.open_tools.iter().find(|open| open.has_id(&request.tool_call_id)).map(|open| &open.call);
    let details = CallDetails {
        kind: call.map_or(ToolKind::Other, |call| call.kind),
        input: call.map_or(Value::Null, |call| call.input.clone()),
        locations: call.map(|call| call.locations.clone()).unwrap_or_default(),
        content: request.content.clone(),
    };
    Some(PendingToolCall {
        tool_call_id: request.tool_call_id.clone(),
        tool: request.tool.clone().or(call.map(ToolStart::label))?,
        details,
    })
}

/// Either `optionId`, or `outcome`, which selects the first option of that kind.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AnswerPermissionParams {
    pub permission_id: PermissionId,
    pub option_id: Option<String>,
    pub outcome: Option<PermissionOptionKind>,
    /// Reason of the decision; the model receives it.
    pub reason: Option<String>,
    /// For changes of files: decisions that differ from the option, about hunks or files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<HunkDecision>,
    /// For changes of files: the user's own text in place of hunks or files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<ReviewEdit>,
}

impl AnswerPermissionParams {
    /// Creates an answer that does not decide about parts of a review.
    pub(crate) fn new(
        permission_id: PermissionId,
        option_id: Option<String>,
        outcome: Option<PermissionOptionKind>,
        reason: Option<String>,
    ) -> AnswerPermissionParams {
        AnswerPermissionParams { permission_id, option_id, outcome, reason, hunks: Vec::new(), edits: Vec::new() }
    }
}

/// The answer was accepted.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AnswerResult {}

pub(crate) struct AnswerPermission;

impl Method for AnswerPermission {
    type Params = AnswerPermissionParams;
    type Result = AnswerResult;
    const NAME: &'static str = "_nuncio/permission/answer";
    const EXAMPLE: &'static str = r#"{"permissionId": "perm_01", "outcome": "allow_once"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/permissions/{permissionId}")];
    const DOC: &'static str =
        "Answers a permission request. An option that the request does not offer is an error and leaves it open.";

    async fn call(cx: CallContext, params: AnswerPermissionParams) -> Result<Reply<AnswerResult>> {
        let asks = |session: &Session| session.broker.is_open(&params.permission_id);
        let Some(session) = accessible(&cx).into_iter().find(asks) else { return answer_elsewhere(cx, params).await };
        let AnswerPermissionParams { permission_id: id, option_id, outcome, reason, hunks, edits } = params;
        let choice = ChoiceDetails { reason, review: ReviewAnswer { hunks, edits } };
        if option_id.as_deref() == Some(ALLOW_PROJECT) {
            cx.client.require_owner()?;
        }
        let by = Actor::from(&*cx.client.principal);
        match (option_id, outcome) {
            (Some(option), None) => session.broker.answer(&id, &option, by, choice)?,
            (None, Some(kind)) => session.broker.answer_kind(&id, kind, by, choice)?,
            _ => return Err(Error::invalid_params("optionId: give either optionId or outcome")),
        }
        Ok(Reply::new(AnswerResult {}))
    }
}

/// Answers a request in a session that another process owns.
async fn answer_elsewhere(cx: CallContext, params: AnswerPermissionParams) -> Result<Reply<AnswerResult>> {
    let id = &params.permission_id;
    let waits = |row: &SessionRow| SessionSummary::stored(row).open_permissions.contains(id);
    let elsewhere = if cx.forwarded { Vec::new() } else { waiting_elsewhere(&cx, waits).await? };
    for session in elsewhere {
        if session.log.state(|state| state.open_permissions.iter().any(|open| open.has_id(id))) {
            let encoded = serde_json::to_value(&params).map_err(|error| Error::internal(error.to_string()))?;
            let row = MethodRow::new::<AnswerPermission>();
            if let Some(Reply { result, after, .. }) = call_owner(&row, &cx, &session, &encoded).await? {
                return Ok(Reply { after, ..Reply::from_result(result.map(|_| AnswerResult {})) });
            }
        }
    }
    Err(not_open(&cx, id).await)
}

/// Returns the selected sessions of other processes that wait for an answer and that the caller has
/// access to.
async fn waiting_elsewhere(cx: &CallContext, selected: impl Fn(&SessionRow) -> bool) -> Result<Vec<Session>> {
    let sessions = cx.app.sessions().await?;
    let mut waiting = Vec::new();
    for row in sessions.waiting_elsewhere().await? {
        if selected(&row) && cx.client.has_access_to(&row.cwd) {
            match sessions.open_read_only(&row.id).await {
                Ok(session) => waiting.push(session),
                // The other sessions are listed. A deleted session is no error.
                Err(error) if error.kind == Kind::NotFound => {}
                Err(error) => tracing::warn!(session = %row.id, %error, "a waiting session cannot be opened"),
            }
        }
    }
    Ok(waiting)
}

/// Creates the error for a request that is not open. If the request was resolved a short time ago,
/// the error contains the outcome.
async fn not_open(cx: &CallContext, id: &PermissionId) -> Error {
    let in_log = |session: &Session| session.log.state(|state| state.open_permissions.iter().any(|open| open.has_id(id)));
    for session in accessible(cx).into_iter().filter(in_log) {
        // An error leaves the outcome unknown.
        let _ = session.catch_up(Seq::MAX).await;
    }
    // An answer that was accepted may not be in the log yet.
    if let Some(session) = accessible(cx).into_iter().filter(in_log).find_map(|session| session.owned().ok()) {
        let resolved = async {
            loop {
                let mut follow = session.log.follow(session.log.head());
                if !in_log(&session) {
                    return;
                }
                follow.moved().await;
            }
        };
        let _ = tokio::time::timeout(PERMISSION_RESOLVED, resolved).await;
    }
    let resolved =
        |session: Session| session.log.state(|state| state.resolved_permissions.iter().find(|one| one.id == *id).cloned());
    match accessible(cx).into_iter().find_map(resolved) {
        Some(ResolvedPermission { outcome, by, .. }) => {
            let answer = json!({ "outcome": outcome, "by": by });
            let message =
                format!("permission {id} is resolved already: {} by {by}", answer["outcome"].as_str().unwrap_or_default());
            Error::not_found(message).details(answer)
        }
        None => Error::not_found(format!("no open permission {id}")),
    }
}
