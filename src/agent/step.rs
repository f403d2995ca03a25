//! One request to a model: its stream becomes events, its calls come back.

use futures_util::StreamExt;
use tracing::Instrument;

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

/// A piece of an answer. A message was shown as it came; that it is whole is for the log when the answer is.
pub enum Piece {
    Message(Body),
    Call(Called),
}

/// What came, in its order.
pub struct Answer {
    pub pieces: Vec<Piece>,
    pub stop: StopReason,
}

impl Answer {
    pub fn has_calls(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Call(_)))
    }
}

/// Asks, and shows what comes. When the turn is cancelled, what came so far is kept, without calls.
pub async fn ask(turn: &Turn, model: &dyn Model, request: Request) -> Result<Answer> {
    let span = tracing::info_span!("model", model = model.id());
    answer(turn, model, request).instrument(span).await
}

async fn answer(turn: &Turn, model: &dyn Model, request: Request) -> Result<Answer> {
    let mut stream = model.stream(request);
    let mut writing = Writing { turn, open: None, pieces: Vec::new() };
    loop {
        let chunk = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => None,
            chunk = stream.next() => Some(chunk),
        };
        let Some(chunk) = chunk else {
            drop(stream);
            writing.keep().await;
            return Ok(Answer { pieces: Vec::new(), stop: StopReason::Cancelled });
        };
        match chunk {
            Some(Ok(Chunk::Text(text))) => writing.add(Role::Assistant, text).await,
            Some(Ok(Chunk::Thinking(text))) => writing.add(Role::Thought, text).await,
            Some(Ok(Chunk::BlockEnd { thinking, state })) => {
                writing.end(if thinking { Role::Thought } else { Role::Assistant }, state)
            }
            Some(Ok(Chunk::ToolCall { id, name, input, state })) => writing.call(&id, name, input, state),
            Some(Ok(Chunk::Truncated { bound })) => {
                let description = format!("it was cut at {bound}; none of its tool calls runs");
                turn.emit(Body::notice(Severity::Warning, "The model's answer is too long", description)).await;
            }
            Some(Ok(Chunk::Usage(usage))) => told_usage(turn, model, usage).await,
            Some(Ok(Chunk::Retry { attempt, delay, reason })) => {
                writing.discard().await;
                let description = format!("attempt {attempt} in {:.1} s", delay.as_secs_f64());
                turn.emit(Body::notice(Severity::Warning, format!("Asking again: {reason}"), description)).await;
            }
            Some(Ok(Chunk::Stop(stop))) => {
                writing.close(None);
                return Ok(Answer { pieces: writing.pieces, stop });
            }
            Some(Err(error)) => {
                writing.keep().await;
                return Err(model_error(error));
            }
            None => {
                writing.keep().await;
                return Err(Error::new(Kind::ModelError, format!("{}: the answer broke off", model.id())));
            }
        }
    }
}

async fn told_usage(turn: &Turn, model: &dyn Model, usage: Usage) {
    let context_tokens = usage.input_tokens + usage.output_tokens;
    turn.emit(Body::UsageUpdated { model: model.id().into(), usage, context_tokens, context_window: model.context_window() }).await;
}

/// An answer that is being written.
struct Writing<'a> {
    turn: &'a Turn,
    open: Option<Open>,
    pieces: Vec<Piece>,
}

/// The message that is being written.
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
        self.close_other(role);
        let open = self.open.get_or_insert_with(|| Open { id: MessageId::new(), role, text: String::new() });
        let delta = Body::MessageDelta { message_id: open.id.clone(), role, offset: open.text.len() as u64, text: text.clone() };
        open.text.push_str(&text);
        self.turn.emit(delta).await;
    }

    /// Ends the block of that role; one that never had text is still kept when the provider wants its state back.
    fn end(&mut self, role: Role, state: Option<ProviderState>) {
        self.close_other(role);
        if self.open.is_none() && state.is_some() {
            self.open = Some(Open { id: MessageId::new(), role, text: String::new() });
        }
        self.close(state);
    }

    fn call(&mut self, given: &str, name: String, input: String, state: Option<ProviderState>) {
        self.close(None);
        let taken = self.pieces.iter().any(|piece| matches!(piece, Piece::Call(call) if call.id.as_str() == given));
        let id = if taken { ToolCallId::new() } else { call_id(self.turn, given) };
        self.pieces.push(Piece::Call(Called { id, name, input, state }));
    }

    fn close_other(&mut self, role: Role) {
        if self.open.as_ref().is_some_and(|open| open.role != role) {
            self.close(None);
        }
    }

    fn close(&mut self, provider_state: Option<ProviderState>) {
        if let Some(Open { id, role, text }) = self.open.take() {
            let parts = vec![Part::text(text)];
            self.pieces.push(Piece::Message(Body::MessageCompleted {
                message_id: id,
                role,
                parts,
                discarded: false,
                provider_state,
            }));
        }
    }

    /// The answer ends here, whole or not: what was said was said. Calls of an answer that is not whole are dropped.
    async fn keep(&mut self) {
        self.close(None);
        for piece in self.pieces.drain(..) {
            if let Piece::Message(body) = piece {
                self.turn.emit(body).await;
            }
        }
    }

    /// The answer will be asked for again: what was shown of it counts for nothing.
    async fn discard(&mut self) {
        self.close(None);
        for piece in self.pieces.drain(..) {
            if let Piece::Message(Body::MessageCompleted { message_id, role, parts, .. }) = piece {
                self.turn.emit(Body::MessageCompleted { message_id, role, parts, discarded: true, provider_state: None }).await;
            }
        }
    }
}
