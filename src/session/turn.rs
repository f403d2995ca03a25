//! A turn: the work between one prompt and its stop. It runs on a task of its own and always comes to an end in the log.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::broker::Answer;
use super::now_ms;
use super::open::Session;
use crate::content::{Part, PermissionOption, Role, StopReason, ToolContent};
use crate::error::{Error, Result};
use crate::event::{Body, PermissionOutcome, SessionChange, Severity};
use crate::id::{MessageId, PermissionId, Seq, ToolCallId, TurnId};
use crate::limits;

/// A running turn, as its agent sees it.
pub struct Turn {
    pub id: TurnId,
    pub session: Arc<Session>,
    pub cancel: CancellationToken,
}

/// How a turn ended. `seq` is its last event: an answer to the prompt comes after it.
#[derive(Clone, Debug)]
pub struct TurnEnd {
    pub result: Result<StopReason>,
    pub seq: Seq,
}

/// A running turn, as others see it.
#[derive(Clone)]
pub struct TurnHandle {
    pub id: TurnId,
    cancel: CancellationToken,
    end: watch::Receiver<Option<TurnEnd>>,
}

impl TurnHandle {
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    pub async fn end(&mut self) -> TurnEnd {
        match self.end.wait_for(Option::is_some).await.map(|end| end.clone()) {
            Ok(Some(end)) => end,
            _ => TurnEnd { result: Err(Error::internal("the turn's task is gone")), seq: 0 },
        }
    }
}

impl Session {
    /// Starts a turn with the user's message; `by` names the client. The claim is made before the first `.await`, so that whoever asks first has it:
    /// another prompt meets `session_busy`, a cancel meets this turn.
    pub fn start_turn(self: &Arc<Self>, prompt: Vec<Part>, by: &str) -> Result<TurnHandle> {
        let id = TurnId::new();
        let cancel = self.shutdown.child_token();
        let (done, end) = watch::channel(None);
        let handle = TurnHandle { id: id.clone(), cancel: cancel.clone(), end };
        let place = self.running.enter()?;
        self.claim(handle.clone())?;
        let turn = Turn { id, session: self.clone(), cancel };
        let by = by.to_string();
        self.tasks.spawn(async move {
            let end = turn.run(prompt, by).await;
            drop(place);
            done.send_replace(Some(end));
        });
        Ok(handle)
    }
}

impl Turn {
    async fn run(self, prompt: Vec<Part>, by: String) -> TurnEnd {
        if let Err(error) = self.session.own().await {
            self.session.release_claim(&self.id);
            return TurnEnd { result: Err(error), seq: 0 };
        }
        let result = match self.open(prompt, by).await {
            Ok(_) => match AssertUnwindSafe(self.session.agent.run(&self)).catch_unwind().await {
                Ok(result) => result,
                Err(panic) => self.clear_up(panic_message(&*panic)).await,
            },
            Err(error) => Err(error),
        };
        self.close(result).await
    }

    /// The prompt is on the disk before anything follows from it.
    async fn open(&self, prompt: Vec<Part>, by: String) -> Result<Seq> {
        self.emit(Body::TurnStarted { by: Some(by) }).await;
        let untitled = self.session.log.state(|state| state.title.is_none());
        if let Some(title) = title_of(&prompt).filter(|_| untitled) {
            self.emit(Body::SessionUpdated { change: SessionChange { title: Some(title), ..Default::default() } }).await;
        }
        let message_id = MessageId::new();
        self.commit(Body::MessageCompleted { message_id, role: Role::User, parts: prompt, discarded: false, provider_state: None })
            .await
    }

    /// After a panic: ends what the agent left open.
    async fn clear_up(&self, panic: &str) -> Result<StopReason> {
        let error = Error::internal(format!("the agent panicked: {panic}"));
        // Behind it, the state holds all that was appended before.
        self.commit(Body::notice(Severity::Error, "The agent broke", error.message.clone())).await?;
        for body in self.session.log.state(|state| state.closing()) {
            if !body.ends_turn() {
                self.emit(body).await;
            }
        }
        Err(error)
    }

    /// Ends the turn. The claim goes when the end is in the queue: whatever the next turn appends comes after it.
    async fn close(self, result: Result<StopReason>) -> TurnEnd {
        let result = if self.cancel.is_cancelled() { Ok(StopReason::Cancelled) } else { result };
        let body = match &result {
            Ok(StopReason::Cancelled) => Body::TurnCancelled {},
            Ok(stop_reason) => Body::TurnCompleted { stop_reason: *stop_reason },
            Err(error) => {
                tracing::info!(session = %self.session.log.id, turn = %self.id, error = ?error, "turn failed");
                Body::TurnFailed { code: error.kind.row().code.into(), message: error.message.clone(), hint: error.hint.clone() }
            }
        };
        let appended = self.session.log.append(Some(self.id.clone()), body, true).await;
        self.session.release_claim(&self.id);
        let committed = match appended {
            Ok(committed) => committed.await.unwrap_or_else(|_| Err(Error::internal("the log's writer is gone"))),
            Err(error) => Err(error),
        };
        match committed {
            Ok(seq) => TurnEnd { result, seq },
            Err(error) => TurnEnd { result: Err(error), seq: 0 },
        }
    }

    pub async fn emit(&self, body: Body) {
        self.session.log.emit(Some(self.id.clone()), body).await;
    }

    pub async fn commit(&self, body: Body) -> Result<Seq> {
        self.session.log.commit(Some(self.id.clone()), body).await
    }

    /// For what precedes an effect.
    pub async fn commit_durably(&self, body: Body) -> Result<Seq> {
        self.session.log.commit_durably(Some(self.id.clone()), body).await
    }

    /// Asks whoever is there, and waits for the first answer, the deadline or a cancel: everything but an offered yes is a no.
    /// Returns the question's id, for its `permission.resolved`, which the caller appends with the rule that comes of it.
    pub async fn ask(
        &self,
        tool_call_id: ToolCallId,
        content: Vec<ToolContent>,
        options: Vec<PermissionOption>,
        timeout: Duration,
    ) -> (Option<PermissionId>, Answer) {
        let id = PermissionId::new();
        let broker = &self.session.broker;
        let Some(mut answered) = broker.ask(id.clone(), options.clone()) else {
            let reason = Some("nobody is there who could be asked".into());
            return (None, Answer { outcome: PermissionOutcome::Denied, by: "nobody".into(), reason });
        };
        let deadline_ms = now_ms() + timeout.as_millis() as u64;
        self.emit(Body::PermissionRequested { permission_id: id.clone(), tool_call_id, content, options, deadline_ms }).await;
        let answer = tokio::select! {
            biased;
            answer = &mut answered => answer.ok(),
            () = self.cancel.cancelled() => {
                broker.dismiss(&id, PermissionOutcome::Cancelled, "cancel", "the turn was cancelled");
                answered.await.ok()
            }
            () = tokio::time::sleep(timeout) => {
                broker.dismiss(&id, PermissionOutcome::Denied, "deadline", "nobody answered in time");
                answered.await.ok()
            }
        };
        let nobody = || Answer { outcome: PermissionOutcome::Denied, by: "disconnect".into(), reason: None };
        (Some(id), answer.unwrap_or_else(nobody))
    }
}

/// The first line of what was asked, cut at a word.
fn title_of(prompt: &[Part]) -> Option<String> {
    let text = prompt.iter().find_map(|part| match part {
        Part::Text { text } => text.lines().map(str::trim).find(|line| !line.is_empty()),
        _ => None,
    })?;
    if text.chars().count() <= limits::TITLE_CHARS_MAX {
        return Some(text.into());
    }
    let cut: String = text.chars().take(limits::TITLE_CHARS_MAX).collect();
    let end = cut.rfind(' ').filter(|end| *end > 0).unwrap_or(cut.len());
    Some(format!("{}…", &cut[..end]))
}

/// What a panic said.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
