//! Retries failed requests. Tool calls are held back until the answer is complete.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};

use super::answer::{Chunk, ChunkStream, Model};
use super::error::{ModelError, Retry};
use super::request::Request;
use super::wire::{interrupted, jittered};
use crate::limits::{MODEL_ATTEMPTS_MAX, MODEL_BACKOFF, MODEL_BACKOFF_MAX, MODEL_LOCAL_ATTEMPTS_MAX};

/// A model with retries. Text and thinking are forwarded immediately, and [`Chunk::Retry`] discards
/// them. From the first tool call on, all chunks are held back until the answer is complete, so
/// that no call of an incomplete answer runs.
pub(crate) struct Retrying<M> {
    model: Arc<M>,
}

impl<M: Model> Retrying<M> {
    /// Adds retries to `model`.
    pub(crate) fn new(model: M) -> Self {
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
    /// Number of the current or next attempt, from 1.
    number: u32,
    state: State,
}

enum State {
    /// The next attempt starts after this delay.
    Starting(Duration),
    /// An answer is being read. The queue holds its chunks from the first tool call on.
    Reading(ChunkStream, VecDeque<Chunk>),
    /// The answer is complete, or the last attempt failed. The queue holds the remaining chunks.
    Done(VecDeque<Chunk>),
}

impl<M: Model> Attempts<M> {
    async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        loop {
            match &mut self.state {
                State::Starting(delay) => {
                    if !delay.is_zero() {
                        tokio::time::sleep(*delay).await;
                    }
                    self.state = State::Reading(self.model.stream(self.request.clone()), VecDeque::new());
                }
                State::Reading(stream, held) => match stream.next().await {
                    Some(Ok(chunk @ Chunk::Stop(_))) => {
                        held.push_back(chunk);
                        self.state = State::Done(std::mem::take(held));
                    }
                    Some(Ok(chunk)) => match held.is_empty() && !matches!(chunk, Chunk::ToolCall { .. } | Chunk::Usage(_)) {
                        true => return Some(Ok(chunk)),
                        false => held.push_back(chunk),
                    },
                    Some(Err(error)) => return Some(self.handle_failure(error)),
                    None => return Some(self.handle_failure(interrupted("the connection ended"))),
                },
                State::Done(held) => return held.pop_front().map(Ok),
            }
        }
    }

    /// Schedules a retry after a failed attempt, or returns the error if no attempt is
    /// left.
    fn handle_failure(&mut self, error: ModelError) -> Result<Chunk, ModelError> {
        let attempts_max = match error.retry {
            Retry::Never => 1,
            Retry::Briefly => MODEL_LOCAL_ATTEMPTS_MAX,
            Retry::Backoff | Retry::After(_) => MODEL_ATTEMPTS_MAX,
        };
        if self.number >= attempts_max {
            self.state = State::Done(VecDeque::new());
            let message = match self.number {
                1 => error.message,
                number => format!("{} (after {number} attempts)", error.message),
            };
            return Err(ModelError { message, ..error });
        }
        let delay = match error.retry {
            Retry::After(delay) => jittered(delay.min(MODEL_BACKOFF_MAX)),
            Retry::Never | Retry::Backoff | Retry::Briefly => {
                jittered((MODEL_BACKOFF * 2u32.pow(self.number - 1)).min(MODEL_BACKOFF_MAX))
            }
        };
        self.number += 1;
        self.state = State::Starting(delay);
        Ok(Chunk::Retry { attempt: self.number, delay, reason: error.message })
    }
}
