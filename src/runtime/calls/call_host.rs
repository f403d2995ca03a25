//! The host of a tool call, its permission request, and how a call ends.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::config::{Policy, Rule};
use crate::content::ToolLabel;
use crate::error::Result;
use crate::event::{Body, ToolChange, ToolUpdate};
use crate::id::{PermissionId, SessionId, ToolCallId, TurnId};
use crate::options::Mode;
use crate::permission::git_acts::GitActs;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::{PermissionAnswer, Turn, TurnQuestion};
use crate::toolkit::{ClientAccess, KnownFiles, Progress, Subagents, ToolContext, ToolError, ToolOutput};

/// Where tool calls come from: the model of a turn, a program that a hosted agent runs in its turn,
/// or the command `nuncio tool`. By default, a call of a turn is recorded in the turn's log, and no
/// model has made it.
pub(crate) trait CallHost: Send + Sync {
    /// Returns the turn of the calls; `None` outside of a session.
    fn turn(&self) -> Option<&Turn>;

    fn cancel(&self) -> &CancellationToken;

    /// Returns the permission mode, and the rules remembered from earlier permission answers.
    /// `default` is the policy of the mode `ask`.
    fn permissions(&self, default: Policy) -> (Mode, Vec<Rule>) {
        self.turn().map(|turn| turn.permissions(default)).unwrap_or_default()
    }

    /// Returns the session, the turn and the model of the call; empty outside of a session.
    fn origin(&self) -> CallOrigin {
        let Some(Turn { id, log, .. }) = self.turn() else { return CallOrigin::default() };
        let model = log.state(|state| {
            let turn = state.turns.get(id).and_then(|turn| turn.model.as_deref());
            turn.map(String::from).or(state.settings.model.clone())
        });
        CallOrigin { session: Some(log.id.clone()), turn: Some(id.clone()), model }
    }

    /// Returns the callback that receives live output of the call. Output is dropped while the
    /// log's queue is full; the call's result contains all of it.
    fn progress(&self, id: &ToolCallId) -> Progress {
        let Some(Turn { id: turn_id, log, .. }) = self.turn() else { return Arc::new(|_| {}) };
        let (log, turn_id, id) = (log.clone(), turn_id.clone(), id.clone());
        Arc::new(move |content| {
            let (tool_call_id, content, change) = (id.clone(), Some(content), ToolChange::default());
            let update = ToolUpdate { tool_call_id, status: None, content, change };
            log.try_emit(Some(turn_id.clone()), Body::ToolUpdated(update));
        })
    }

    /// Returns access to the client's files and terminals, if the client provides any.
    fn client(&self) -> Option<Arc<dyn ClientAccess>> {
        self.turn()?.clients.latest()
    }

    /// Returns whether the conversation lacks the text of an instruction file.
    fn needs_instructions(&self, _file: &str) -> bool {
        false
    }

    /// Returns the files that the model of the call has seen. `None` if no model makes the call.
    fn known_files(&self) -> Option<KnownFiles> {
        None
    }

    /// Returns what the user asked git to do; everything if a person makes the call.
    fn asked_git_acts(&self) -> GitActs {
        self.turn().map_or(GitActs::ALL, Turn::asked_git_acts)
    }

    /// Returns whether the log has the notice about the failure of a hook with this title.
    fn has_reported(&self, title: &str) -> bool {
        self.turn().is_some_and(|turn| turn.log.state(|state| state.failed_hooks.contains(title)))
    }

    /// Returns the number of tokens of the conversation, for events about usage.
    fn context_tokens(&self) -> u64 {
        0
    }

    /// Returns whether the budget of the turn, if there is one, allows a model request. If a limit
    /// is reached, asks whether to raise it, until `cancel`.
    fn allows_request<'a>(&'a self, _: &'a SessionEnvironment, _cancel: &'a CancellationToken) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async { Ok(true) })
    }

    /// Starts subagents, if a model makes the call.
    fn subagents(&self) -> Option<Subagents> {
        None
    }

    /// Records an event, in order with the other events, without waiting for the log.
    fn emit(&self, body: Body) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(turn) = self.turn() {
                turn.emit(body).await;
            }
        })
    }

    /// Records an event like [`CallHost::emit`]. It is not synced by itself, because a durable
    /// event of the call follows before the call has an effect.
    fn emit_before_commit(&self, body: Body) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match self.turn() {
                Some(turn) => turn.emit_before_commit(body).await,
                None => self.emit(body).await,
            }
        })
    }

    /// Records an event and waits until it is written; with `durably`, waits until the event would
    /// survive a machine crash.
    fn commit(&self, body: Body, durably: bool) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            match self.turn() {
                Some(turn) if durably => turn.commit_durably(body).await.map(drop),
                Some(turn) => turn.commit(body).await.map(drop),
                None => Ok(()),
            }
        })
    }

    /// Asks for permission and waits for the answer. The permission id is `None` if the request was
    /// not recorded.
    fn ask(&self, question: TurnQuestion) -> BoxFuture<'_, (Option<PermissionId>, PermissionAnswer)>;

    /// Waits until `timeout` has passed since the last person's client was attached.
    fn unanswered(&self, timeout: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(timeout))
    }

    /// Returns whether the turn ends because a permission request got no answer.
    fn is_unanswered(&self) -> bool {
        false
    }
}

/// Where a tool call comes from, for hooks.
#[derive(Default)]
pub(crate) struct CallOrigin {
    pub session: Option<SessionId>,
    pub turn: Option<TurnId>,
    /// `PROVIDER/NAME` of the turn's last model request.
    pub model: Option<String>,
}

/// A running call, which may make requests to the user and to the model.
pub(in crate::runtime) struct ServedCall<'a> {
    pub host: &'a dyn CallHost,
    pub id: &'a ToolCallId,
    pub environment: &'a SessionEnvironment,
    pub context: &'a ToolContext,
    /// Time limit of each permission request and form while no person's client is attached.
    pub timeout: Duration,
}

/// A call that ended.
pub(crate) struct CallResult {
    pub outcome: CallOutcome,
    /// The tool, with the title of the call's final input.
    pub label: ToolLabel,
    /// Messages of hooks for the next model request.
    pub messages: Vec<String>,
}

/// How a call ended. The texts are results for the model.
pub(crate) enum CallOutcome {
    Completed(ToolOutput),
    Failed(String),
    InvalidInput(String),
    Denied(String),
    /// Cancelled before the tool ran.
    Cancelled,
}

impl From<Result<ToolOutput, ToolError>> for CallOutcome {
    fn from(result: Result<ToolOutput, ToolError>) -> CallOutcome {
        result.map_or_else(|ToolError(message)| CallOutcome::Failed(message), CallOutcome::Completed)
    }
}
