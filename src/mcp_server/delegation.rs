//! One call of `delegate`: a prompt in a new or an earlier session, and its result.

use std::path::PathBuf;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::elicitation::{FormChannel, PermissionForms};
use super::server::ToolServer;
use crate::api::{
    CloseSession, NewSessionParams, OpenSessionParams, Prompt, PromptParams, PromptResult, SessionParams, SetConfigOption, SetMode,
    SetModeParams, SetOptionParams,
};
use crate::client::{SessionClient, SessionEvents};
use crate::config::{NATIVE, Policy};
use crate::content::WorkProblems;
use crate::content::{Part, StopReason};
use crate::error::{Error, Result};
use crate::event::{Body, Event, PermissionDecision, PermissionRequest};
use crate::id::{Seq, SessionId, TurnId};
use crate::limits;
use crate::options::Mode;
use crate::permission::rules::stricter;
use crate::runtime::{SessionInUse, TargetWatch, task_agents};
use crate::session::WorkView;
use crate::session::permissions::broker::Responder;
use crate::tools::task::TaskAgent;

/// Delegates a task to nuncio, a coding agent that reads and edits files and runs commands in a
/// directory, and returns its result. It sees nothing of your conversation: the prompt must contain
/// everything that it needs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DelegateInput {
    /// The task, and what to report.
    prompt: String,
    /// Directory to work in; the server's directory, or that of your session, when it is missing.
    #[serde(default)]
    cwd: Option<PathBuf>,
    /// Permission mode: ask, accept-edits, plan (reads only) or auto; at most that of the server.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    mode: Option<Mode>,
    /// `PROVIDER/NAME` of the model.
    #[serde(default)]
    model: Option<String>,
    /// Name of an agent definition or of a hosted agent.
    #[serde(default)]
    agent: Option<String>,
    /// `sessionId` of an earlier result of this server, to continue its conversation.
    #[serde(default)]
    session: Option<SessionId>,
}

/// The structured content of a result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DelegateOutput {
    /// Pass it as `session` to continue the conversation.
    session_id: SessionId,
    turn_id: Option<TurnId>,
    /// `end_turn`, `cancelled`, `refusal`, `max_tokens` or `max_turn_requests`; null if the turn
    /// failed.
    stop_reason: Option<Value>,
    /// Token counts of the turn.
    usage: Option<Value>,
    /// Changes that the user rejected, and checks that fail; the result is an error then.
    #[serde(skip_serializing_if = "Option::is_none")]
    unresolved: Option<WorkProblems>,
}

/// A running call.
pub(super) struct Delegation {
    client: SessionClient,
    session: SessionId,
    prompt: String,
    events: SessionEvents,
    /// The target of progress notifications.
    waiting: TargetWatch,
    /// Cancels the turn.
    cancel: CancellationToken,
    /// `None` if the client cannot answer permission requests.
    forms: Option<PermissionForms>,
    view: WorkView,
    turn: Option<TurnId>,
    /// The turn ended because a permission request got no answer.
    unanswered: bool,
    /// Number of progress notifications.
    progress: u32,
    _in_use: SessionInUse,
    _permit: OwnedSemaphorePermit,
}

impl Delegation {
    /// Opens the session of a call. `channel` is `None` if the client cannot answer permission
    /// requests.
    pub(super) async fn start(
        server: &ToolServer,
        input: JsonObject,
        channel: Option<FormChannel>,
        waiting: TargetWatch,
        cancel: CancellationToken,
    ) -> Result<Delegation> {
        let input: DelegateInput = serde_path_to_error::deserialize(Value::Object(input))
            .map_err(|error| Error::invalid_params(format!("{}: {}", error.path(), error.inner())))?;
        let permit = server.access.permits.clone().try_acquire_owned().map_err(|_| {
            let message = format!("{} tasks are already running", limits::DELEGATIONS_MAX);
            Error::invalid_params(message).hint("wait for one of them")
        })?;
        if input.prompt.trim().is_empty() {
            return Err(Error::invalid_params("prompt: is empty"));
        }
        let client = server.client.clone();
        let (in_use, after) = match &input.session {
            Some(session) => (server.access.claim(session)?, resume(server, session, &input).await?),
            None => {
                let (session, after) = create(server, &input).await?;
                server.access.created(session.clone());
                (server.access.claim(&session)?, after)
            }
        };
        // Without a client that can answer, the session denies calls that need a permission
        // request.
        let events = client.follow(&in_use.id, after, channel.is_some().then_some(Responder::Program)).await?;
        Ok(Delegation {
            session: in_use.id.clone(),
            forms: channel.map(|channel| PermissionForms::new(server, channel, in_use.id.clone())),
            cancel,
            prompt: input.prompt,
            view: WorkView::default(),
            turn: None,
            unanswered: false,
            progress: 0,
            _in_use: in_use,
            _permit: permit,
            client,
            events,
            waiting,
        })
    }

    /// Runs the turn to its end, and closes the session, which is kept on disk.
    pub(super) async fn run(mut self) -> Result<CallToolResult> {
        let session_id = self.session.clone();
        let ended = self.turn(PromptParams::new(&session_id, vec![Part::text(self.prompt.clone())])).await;
        if let Err(error) = self.client.call::<CloseSession>(SessionParams { session_id }).await {
            tracing::warn!(session = %self.session, %error, "closing a session failed");
        }
        let (stop_reason, usage) = match &ended {
            Ok(response) => (Some(json!(response.stop_reason)), response.usage.as_ref().map(|usage| json!(usage))),
            Err(_) => (None, None),
        };
        let (answer, unresolved) = std::mem::take(&mut self.view).into_result();
        let problems = unresolved.as_ref().map(WorkProblems::text);
        let (session_id, turn_id) = (self.session.clone(), self.turn.clone());
        let output = DelegateOutput { session_id, turn_id, stop_reason, usage, unresolved };
        let (text, failed) = match ended {
            Ok(response) if response.stop_reason == StopReason::EndTurn => (answer, false),
            Ok(_) if self.unanswered => (format!("{answer}\n[stopped: no answer to a permission request]"), false),
            Ok(response) => (format!("{answer}\n[stopped: {}]", json!(response.stop_reason).as_str().unwrap_or_default()), false),
            Err(error) => (format!("{error}\n{answer}").trim_end().to_string(), true),
        };
        let text = problems.iter().map(|problems| format!("{problems}\n")).collect::<String>() + &text;
        let content = vec![ContentBlock::text(text)];
        let mut result =
            if failed || problems.is_some() { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = Some(json!(output));
        Ok(result)
    }

    async fn turn(&mut self, params: PromptParams) -> Result<PromptResult> {
        let client = self.client.clone();
        let mut turn = Box::pin(client.call_until::<Prompt>(params, self.cancel.clone()));
        let mut updates = interval(limits::SUBAGENT_UPDATE);
        updates.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            tokio::select! {
                biased;
                events = self.events.next() => events?.iter().for_each(|event| self.event(event)),
                ended = &mut turn => break ended,
                _ = updates.tick(), if self.view.changed => self.notify().await,
            }
        };
        self.events.committed().await?.iter().for_each(|event| self.event(event));
        ended
    }

    fn event(&mut self, event: &Event) {
        self.view.apply(event);
        match &event.body {
            Body::TurnStarted { .. } => self.turn = event.turn_id.clone(),
            Body::TurnCancelled { cause: Some(_) } => self.unanswered = true,
            Body::PermissionRequested(PermissionRequest { permission_id, tool, content, options, .. }) => {
                let title = tool.as_ref().map_or("the tool call", |tool| &tool.title);
                if let Some(forms) = &mut self.forms {
                    forms.ask(permission_id, title, content, options);
                }
            }
            Body::PermissionResolved(PermissionDecision { permission_id: Some(id), .. }) => {
                if let Some(forms) = &mut self.forms {
                    forms.withdraw(id);
                }
            }
            _ => {}
        }
    }

    /// Sends the status of the work, if the client asked for progress.
    async fn notify(&mut self) {
        let message = self.view.status();
        let Some(request) = self.waiting.borrow().clone() else { return };
        let Some(progress_token) = request.token else { return };
        self.progress += 1;
        let mut params = ProgressNotificationParam::new(progress_token, f64::from(self.progress));
        params.message = Some(message);
        // Ignore a failure: the client has disconnected.
        let _ = request.peer.notify_progress(params).await;
    }
}

/// Opens an earlier session and applies the settings of the call. Returns the seq of its last
/// event.
async fn resume(server: &ToolServer, session: &SessionId, input: &DelegateInput) -> Result<Seq> {
    if input.agent.is_some() || input.cwd.is_some() {
        return Err(Error::invalid_params("agent and cwd: a session keeps those with which it was created"));
    }
    let client = &server.client;
    let (_, after) = client.resume(OpenSessionParams::new(session.clone())).await?;
    let applied = apply(server, session, input).await;
    if applied.is_err() {
        // Return the error of the settings, not the error of the close.
        let _ = client.call::<CloseSession>(SessionParams { session_id: session.clone() }).await;
    }
    applied.map(|()| after)
}

/// Applies the settings of the call to an open session.
async fn apply(server: &ToolServer, session: &SessionId, input: &DelegateInput) -> Result<()> {
    let client = &server.client;
    let mode = |id: &SessionId| server.app.sessions_now()?.opened(id).map(|session| session.mode());
    if let Some(model) = &input.model {
        client.call::<SetConfigOption>(SetOptionParams::new(session, "model", model)).await?;
    }
    let (current, most) = (mode(session), server.mode().await);
    if let Some(mode) = input.mode.or(current).map(|mode| at_most(most, mode)).filter(|mode| current != Some(*mode)) {
        client.call::<SetMode>(SetModeParams { session_id: session.clone(), mode_id: mode.id().into() }).await?;
    }
    Ok(())
}

/// Returns the requested mode, or the caller's mode `most` if it is stricter.
fn at_most(most: Mode, requested: Mode) -> Mode {
    stricter(most, requested, Policy::Ask)
}

/// Creates a session for the call.
async fn create(server: &ToolServer, input: &DelegateInput) -> Result<(SessionId, Seq)> {
    let base = &server.access.cwd;
    let cwd = input.cwd.as_ref().map_or_else(|| base.clone(), |cwd| base.join(cwd));
    server.client.require_dir(&cwd).map_err(|error| error.hint(allowed_directories(server)))?;
    let most = server.mode().await;
    let agent = input.agent.as_deref().map(|name| find_agent(server, &cwd, name)).transpose()?;
    let mode = input.mode.into_iter().chain(agent.as_ref().and_then(|agent| agent.mode)).reduce(at_most).unwrap_or(most);
    let profile = agent.map(|agent| agent.profile).unwrap_or_default();
    // `--agent` is for the user's sessions; here it would start the caller again.
    let own_agent = || server.access.session.is_some().then(|| NATIVE.to_owned());
    let mut params = NewSessionParams::in_directory(cwd);
    params.place.system_prompt = profile.system_prompt.map(Value::String);
    params.mode = Some(at_most(most, mode));
    params.model = input.model.clone().or(profile.model);
    params.agent = profile.hosted.or_else(own_agent);
    server.client.begin(params).await
}

/// Returns a hint that names the directories in which a call may work.
fn allowed_directories(server: &ToolServer) -> String {
    let roots: Vec<String> = server.access.roots.iter().map(|root| root.display().to_string()).collect();
    format!("omit cwd, or use a directory inside {}; --root of the server allows others", roots.join(", "))
}

fn find_agent(server: &ToolServer, cwd: &std::path::Path, name: &str) -> Result<TaskAgent> {
    let found = task_agents(&server.app.services, cwd);
    let agent = found.agent(name).cloned().ok_or_else(|| {
        let (missing, known) = found.missing(name);
        Error::invalid_params(missing).hint(known)
    })?;
    if agent.profile.tools.is_some() || agent.profile.max_requests.is_some() {
        let message = format!("agent: the definition of {name} limits its tools or requests, which delegate does not support");
        return Err(Error::invalid_params(message).hint("choose another agent, or ask nuncio to start it with task"));
    }
    Ok(agent)
}
