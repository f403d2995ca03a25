//! The tool calls of a turn: their events are recorded in the turn's log.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::budget::TurnBudget;
use crate::config::{Policy, Rule};
use crate::error::Result;
use crate::event::{Body, ToolChange, ToolUpdate};
use crate::id::{PermissionId, ToolCallId};
use crate::options::Mode;
use crate::permission::git_acts::GitActs;
use crate::runtime::calls::call_host::{CallHost, CallOrigin};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::{PermissionAnswer, Turn, TurnQuestion};
use crate::toolkit::{ClientAccess, KnownContent, KnownFiles, Progress, Subagents};

impl CallHost for Turn {
    fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    fn permissions(&self, default: Policy) -> (Mode, Vec<Rule>) {
        Turn::permissions(self, default)
    }

    fn needs_instructions(&self, file: &str) -> bool {
        !self.log.state(|state| state.history.has_instructions(file))
    }

    fn known_files(&self) -> Option<KnownFiles> {
        let files = self.log.state(|state| state.shown_files.clone());
        Some(Arc::new(move |path| {
            Some(KnownContent { at_ms: files.known_at(path)?, is_last_seen: files.is_last_seen_whole(path) })
        }))
    }

    fn asked_git_acts(&self) -> GitActs {
        Turn::asked_git_acts(self)
    }

    fn has_reported(&self, title: &str) -> bool {
        self.log.state(|state| state.failed_hooks.contains(title))
    }

    fn origin(&self) -> CallOrigin {
        let model = self.log.state(|state| {
            let turn = state.turns.get(&self.id).and_then(|turn| turn.model.as_deref());
            turn.map(String::from).or(state.settings.model.clone())
        });
        CallOrigin { session: Some(self.log.id.clone()), turn: Some(self.id.clone()), model }
    }

    /// Returns a callback that emits updates of a call. Updates are dropped while the log's queue
    /// is full; the call's result contains all output.
    fn progress(&self, id: &ToolCallId) -> Progress {
        let (log, turn_id, id) = (self.log.clone(), self.id.clone(), id.clone());
        Arc::new(move |content| {
            let update = Body::ToolUpdated(ToolUpdate {
                tool_call_id: id.clone(),
                status: None,
                content: Some(content),
                change: ToolChange::default(),
            });
            log.try_emit(Some(turn_id.clone()), update);
        })
    }

    fn client(&self) -> Option<Arc<dyn ClientAccess>> {
        self.clients.latest()
    }

    fn context_tokens(&self) -> u64 {
        self.log.state(|state| state.context_tokens)
    }

    fn allows_request<'a>(
        &'a self,
        environment: &'a SessionEnvironment,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let subagent = self.log.state(|state| state.parent.is_some());
            TurnBudget::new(self, &environment.loaded.settings, subagent).allows_request(cancel).await
        })
    }

    fn subagents(&self) -> Option<Subagents> {
        self.subagents.clone()
    }

    fn emit(&self, body: Body) -> BoxFuture<'_, ()> {
        Box::pin(Turn::emit(self, body))
    }

    fn commit(&self, body: Body, durably: bool) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let committed = if durably { self.commit_durably(body).await } else { Turn::commit(self, body).await };
            committed.map(drop)
        })
    }

    fn ask(&self, question: TurnQuestion) -> BoxFuture<'_, (Option<PermissionId>, PermissionAnswer)> {
        Box::pin(Turn::ask(self, question))
    }

    fn unanswered(&self, timeout: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.answer_deadline(timeout).passed())
    }

    fn is_unanswered(&self) -> bool {
        Turn::is_unanswered(self)
    }
}
