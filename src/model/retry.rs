//! Asks again where that helps, and lets nothing out that cannot be taken back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::wire::{cut, jittered};
use super::{Again, Chunk, ChunkStream, Model, ModelError, Request};
use crate::limits::{MODEL_ATTEMPTS_MAX, MODEL_BACKOFF, MODEL_BACKOFF_MAX, MODEL_LOCAL_ATTEMPTS_MAX};

/// A model whose failures are retried. Text and thinking go out as they come, and [`Chunk::Retry`] voids them; from the first tool call
/// on everything is held back until the answer is whole, so that no call of a broken answer is ever run.
pub struct Retrying<M> {
    model: Arc<M>,
}

impl<M: Model> Retrying<M> {
    pub fn new(model: M) -> Self {
        Self { model: Arc::new(model) }
    }
}

impl<M: Model> Model for Retrying<M> {
    fn id(&self) -> &str {
        self.model.id()
    }

    fn context_window(&self) -> u64 {
        self.model.context_window()
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let attempts = Attempts { model: self.model.clone(), request, number: 1, state: State::Starting(Duration::ZERO) };
        stream::unfold(attempts, |mut attempts| async { attempts.next().await.map(|item| (item, attempts)) }).boxed()
    }
}

struct Attempts<M> {
    model: Arc<M>,
    request: Request,
    /// Of the attempt that runs or is about to, from 1.
    number: u32,
    state: State,
}

enum State {
    /// The next attempt begins after this pause.
    Starting(Duration),
    /// An answer is being read; what is held back of it.
    Reading(ChunkStream, VecDeque<Chunk>),
    /// The answer is whole; what is left to hand on.
    Whole(VecDeque<Chunk>),
}

impl<M: Model> Attempts<M> {
    async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        loop {
            match &mut self.state {
                State::Starting(pause) => {
                    if !pause.is_zero() {
                        tokio::time::sleep(*pause).await;
                    }
                    self.state = State::Reading(self.model.stream(self.request.clone()), VecDeque::new());
                }
                State::Reading(stream, held) => match stream.next().await {
                    Some(Ok(chunk @ Chunk::Stop(_))) => {
                        held.push_back(chunk);
                        self.state = State::Whole(std::mem::take(held));
                    }
                    Some(Ok(chunk)) => match held.is_empty() && !matches!(chunk, Chunk::ToolCall { .. } | Chunk::Usage(_)) {
                        true => return Some(Ok(chunk)),
                        false => held.push_back(chunk),
                    },
                    Some(Err(error)) => return Some(self.after(error)),
                    None => return Some(self.after(cut("the connection ended"))),
                },
                State::Whole(held) => return held.pop_front().map(Ok),
            }
        }
    }

    /// What follows a failed attempt: a retry, or the end.
    fn after(&mut self, error: ModelError) -> Result<Chunk, ModelError> {
        let attempts_max = match error.again {
            Again::Never => 1,
            Again::Briefly => MODEL_LOCAL_ATTEMPTS_MAX,
            Again::Backoff | Again::After(_) => MODEL_ATTEMPTS_MAX,
        };
        if self.number >= attempts_max {
            self.state = State::Whole(VecDeque::new());
            let message = match self.number {
                1 => error.message,
                number => format!("{} (after {number} attempts)", error.message),
            };
            return Err(ModelError { message, ..error });
        }
        let delay = match error.again {
            Again::After(delay) => jittered(delay.min(MODEL_BACKOFF_MAX)),
            Again::Never | Again::Backoff | Again::Briefly => {
                jittered((MODEL_BACKOFF * 2u32.pow(self.number - 1)).min(MODEL_BACKOFF_MAX))
            }
        };
        self.number += 1;
        self.state = State::Starting(delay);
        Ok(Chunk::Retry { attempt: self.number, delay, reason: error.message })
    }
}
