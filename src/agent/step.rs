//! One request to a model: its stream becomes events, its calls come back.

use futures_util::StreamExt;

use super::native::{call_id, model_error};
use crate::content::{Part, ProviderState, Role, StopReason, Usage};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Severity};
use crate::id::{MessageId, ToolCallId};
use crate::model::{Chunk, Model, Request};
use crate::session::Turn;

/// A call as the model wrote it, with its id in this session.
pub struct Called {
    pub id: ToolCallId,
    pub name: String,
    pub input: String,
    pub state: Option<ProviderState>,
}

pub struct Answer {
    pub calls: Vec<Called>,
    pub stop: StopReason,
}

/// Asks, and appends what comes. When the turn is cancelled, what came so far is closed and kept, and the answer has no calls.
pub async fn ask(turn: &Turn, model: &dyn Model, request: Request) -> Result<Answer> {
    let mut stream = model.stream(request);
    let mut writing = Writing { turn, open: None };
    let mut calls: Vec<Called> = Vec::new();
    loop {
        let chunk = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => None,
            chunk = stream.next() => Some(chunk),
        };
        let Some(chunk) = chunk else {
            drop(stream);
            writing.close(false, None).await;
            return Ok(Answer { calls: Vec::new(), stop: StopReason::Cancelled });
        };
        match chunk {
            Some(Ok(Chunk::Text(text))) => writing.add(Role::Assistant, text).await,
            Some(Ok(Chunk::Thinking(text))) => writing.add(Role::Thought, text).await,
            Some(Ok(Chunk::BlockEnd { thinking, state })) => {
                writing.end(if thinking { Role::Thought } else { Role::Assistant }, state).await
            }
            Some(Ok(Chunk::ToolCall { id, name, input, state })) => {
                writing.close(false, None).await;
                let id = match calls.iter().any(|call| call.id.as_str() == id) {
                    true => ToolCallId::new(),
                    false => call_id(turn, &id),
                };
                calls.push(Called { id, name, input, state });
            }
            Some(Ok(Chunk::Usage(usage))) => told_usage(turn, model, usage).await,
            Some(Ok(Chunk::Retry { attempt, delay, reason })) => {
                writing.close(true, None).await;
                calls.clear();
                let description = format!("attempt {attempt} in {:.1} s", delay.as_secs_f64());
                turn.emit(Body::notice(Severity::Warning, format!("Asking again: {reason}"), description)).await;
            }
            Some(Ok(Chunk::Stop(stop))) => {
                writing.close(false, None).await;
                return Ok(Answer { calls, stop });
            }
            Some(Err(error)) => {
                writing.close(false, None).await;
                return Err(model_error(error));
            }
            None => {
                writing.close(false, None).await;
                return Err(Error::new(Kind::ModelError, format!("{}: the answer broke off", model.id())));
            }
        }
    }
}

async fn told_usage(turn: &Turn, model: &dyn Model, usage: Usage) {
    let context_tokens = usage.input_tokens + usage.output_tokens;
    turn.emit(Body::UsageUpdated { model: model.id().into(), usage, context_tokens, context_window: model.context_window() }).await;
}

/// The message that is being written.
struct Writing<'a> {
    turn: &'a Turn,
    open: Option<Open>,
}

struct Open {
    id: MessageId,
    role: Role,
    text: String,
}

impl Writing<'_> {
    async fn add(&mut self, role: Role, text: String) {
        if text.is_empty() {
            return;
        }
        if self.open.as_ref().is_some_and(|open| open.role != role) {
            self.close(false, None).await;
        }
        let open = self.open.get_or_insert_with(|| Open { id: MessageId::new(), role, text: String::new() });
        let delta = Body::MessageDelta { message_id: open.id.clone(), role, offset: open.text.len() as u64, text: text.clone() };
        open.text.push_str(&text);
        self.turn.emit(delta).await;
    }

    /// Ends the block of that role; one that never had text is still kept when the provider wants its state back.
    async fn end(&mut self, role: Role, state: Option<ProviderState>) {
        if self.open.as_ref().is_some_and(|open| open.role != role) {
            self.close(false, None).await;
        }
        if self.open.is_none() && state.is_some() {
            self.open = Some(Open { id: MessageId::new(), role, text: String::new() });
        }
        self.close(false, state).await;
    }

    async fn close(&mut self, discarded: bool, provider_state: Option<ProviderState>) {
        if let Some(Open { id, role, text }) = self.open.take() {
            let parts = vec![Part::text(text)];
            self.turn.emit(Body::MessageCompleted { message_id: id, role, parts, discarded, provider_state }).await;
        }
    }
}
