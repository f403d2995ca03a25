//! The tool calls of a turn: of its model, and of programs that a hosted agent runs in it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::budget::TurnBudget;
use crate::error::Result;
use crate::id::PermissionId;
use crate::runtime::calls::call_host::CallHost;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::{PermissionAnswer, Turn, TurnQuestion};
use crate::toolkit::{KnownContent, KnownFiles, Subagents};

impl CallHost for Turn {
    fn turn(&self) -> Option<&Turn> {
        Some(self)
    }

    fn cancel(&self) -> &CancellationToken {
        &self.cancel
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

/// A program that a hosted agent runs in its turn, which can be cancelled without the turn.
pub(crate) struct CommandHost<'a> {
    pub turn: &'a Turn,
    pub cancel: CancellationToken,
}

impl CallHost for CommandHost<'_> {
    fn turn(&self) -> Option<&Turn> {
        Some(self.turn)
    }

    fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    fn ask(&self, question: TurnQuestion) -> BoxFuture<'_, (Option<PermissionId>, PermissionAnswer)> {
        Box::pin(self.turn.ask(question))
    }
}
