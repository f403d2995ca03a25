//! Retries failed requests. Tool calls are held back until the answer is complete.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::answer::{Chunk, ChunkStream, Model};
use super::error::{ModelError, Retry};
use super::media::Media;
use super::request::Request;
use super::request_form::RequestForm;
use super::wire::{interrupted, jittered};

/// Maximum number of attempts per model request.
const MODEL_ATTEMPTS_MAX: u32 = 8;
/// Maximum number of attempts per model request if a local address refuses the connection and has
/// not answered before.
const MODEL_LOCAL_ATTEMPTS_MAX: u32 = 3;
/// Pause after the first failed attempt at a model request. The pause doubles with each attempt.
const MODEL_BACKOFF: Duration = Duration::from_millis(100);
/// Maximum pause between two attempts.
const MODEL_BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Maximum pause between two attempts while the provider is overloaded or loads the model, unless
/// it requests a longer one.
const MODEL_WAIT_PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long a request waits for a server on this machine that refuses connections and has answered
/// before: the time of a restart.
const MODEL_RESTART: Duration = Duration::from_secs(15);
/// Maximum pause between two attempts to reach a server on this machine that refuses connections.
const MODEL_LOCAL_PAUSE_MAX: Duration = Duration::from_secs(1);

/// A model with retries. Text and thinking are forwarded immediately, and [`Chunk::Retry`] discards
/// them. From the first tool call on, all chunks are held back until the answer is complete, so
/// that no call of an incomplete answer runs. Usage is forwarded even if the attempt fails.
pub(crate) struct RetryModel<M> {
    shared: Arc<RetryState<M>>,
}

struct RetryState<M> {
    model: M,
    /// How long a request waits for an overloaded provider.
    wait: Duration,
    /// The model has sent a part of an answer.
    answered: AtomicBool,
}

impl<M: Model> RetryModel<M> {
    /// Adds retries to `model`. A request waits up to `wait` for an overloaded provider.
    pub(crate) fn new(model: M, wait: Duration) -> Self {
        Self { shared: Arc::new(RetryState { model, wait, answered: AtomicBool::new(false) }) }
    }
}

impl<M: Model> Model for RetryModel<M> {
    fn id(&self) -> &str {
        self.shared.model.id()
    }

    fn context_window(&self) -> u64 {
        self.shared.model.context_window()
    }

    fn supports_tools(&self) -> bool {
        self.shared.model.supports_tools()
    }

    fn media(&self) -> Media {
        self.shared.model.media()
    }

    fn prepare(&self) -> BoxFuture<'_, ()> {
        self.shared.model.prepare()
    }

    fn request_form(&self) -> Option<Arc<RequestForm>> {
        self.shared.model.request_form()
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let attempts = Attempts {
            shared: self.shared.clone(),
            request,
            number: 1,
            failures: Failures::default(),
            state: State::Starting(Duration::ZERO),
            out: VecDeque::new(),
        };
        stream::unfold(attempts, |mut attempts| async { attempts.next().await.map(|item| (item, attempts)) }).boxed()
    }
}

struct Attempts<M> {
    shared: Arc<RetryState<M>>,
    request: Request,
    /// Number of the current or next attempt, from 1.
    number: u32,
    failures: Failures,
    state: State,
    /// Chunks to return before the next attempt or at the end.
    out: VecDeque<Result<Chunk, ModelError>>,
}

enum State {
    /// The next attempt starts after this delay.
    Starting(Duration),
    /// An answer is being read. The queue holds its chunks from the first tool call on.
    Reading(ChunkStream, VecDeque<Chunk>),
    /// The answer is complete, or the last attempt failed.
    Done,
}

impl<M: Model> Attempts<M> {
    async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        loop {
            if let Some(item) = self.out.pop_front() {
                return Some(item);
            }
            match &mut self.state {
                State::Starting(delay) => {
                    if !delay.is_zero() {
                        tokio::time::sleep(*delay).await;
                    }
                    self.state = State::Reading(self.shared.model.stream(self.request.clone()), VecDeque::new());
                }
                State::Reading(stream, held) => match stream.next().await {
                    Some(Ok(chunk)) => {
                        self.shared.answered.store(true, Ordering::Relaxed);
                        let stop = matches!(chunk, Chunk::Stop(_));
                        if !stop && held.is_empty() && !matches!(chunk, Chunk::ToolCall { .. } | Chunk::Usage(_)) {
                            return Some(Ok(chunk));
                        }
                        // The calls are returned together at the end.
                        if matches!(chunk, Chunk::CallInput { .. }) {
                            continue;
                        }
                        held.push_back(chunk);
                        if stop {
                            self.out.extend(held.drain(..).map(Ok));
                            self.state = State::Done;
                        }
                    }
                    Some(Err(error)) => self.handle_failure(error),
                    None => self.handle_failure(interrupted("the connection ended")),
                },
                State::Done => return None,
            }
        }
    }

    /// Schedules a retry after a failed attempt, or returns the error if no attempt is left. The
    /// usage of the failed attempt is returned first.
    fn handle_failure(&mut self, error: ModelError) {
        let state = std::mem::replace(&mut self.state, State::Done);
        if let State::Reading(_, held) = state {
            self.out.extend(held.into_iter().rfind(|chunk| matches!(chunk, Chunk::Usage(_))).map(Ok));
        }
        let answered = self.shared.answered.load(Ordering::Relaxed);
        let Some(Pause { delay, left }) = self.failures.pause(error.retry, self.shared.wait, answered) else {
            let requested = match error.retry {
                Retry::Wait(Some(pause)) if pause > self.shared.wait => {
                    format!("; the provider asks to wait {} s", pause.as_secs())
                }
                _ => String::new(),
            };
            let attempts = if self.number > 1 { format!(" (after {} attempts)", self.number) } else { String::new() };
            let message = format!("{}{requested}{attempts}", error.message);
            return self.out.push_back(Err(ModelError { message, ..error }));
        };
        let delay = jittered(delay);
        self.number += 1;
        self.state = State::Starting(delay);
        self.out.push_back(Ok(Chunk::Retry { attempt: self.number, delay, left, reason: error.message }));
    }
}

/// The pause before the next attempt. `left` is the time for which the request still waits, if the
/// time is limited and not the number of attempts.
struct Pause {
    delay: Duration,
    left: Option<Duration>,
}

/// The failures of one request by retry policy, so that each policy has its own limit.
#[derive(Default)]
struct Failures {
    once: u32,
    backoff: u32,
    refused: FailureCount,
    waiting: FailureCount,
}

/// Failures that are retried for a time.
#[derive(Default)]
struct FailureCount {
    count: u32,
    first: Option<Instant>,
}

impl FailureCount {
    /// Counts a failure. Returns the rest of `time`, which starts with the first failure.
    fn count(&mut self, time: Duration) -> Duration {
        self.count += 1;
        time.saturating_sub(self.first.get_or_insert_with(Instant::now).elapsed())
    }
}

impl Failures {
    /// Counts a failure. Returns `None` if no attempt is left.
    fn pause(&mut self, retry: Retry, wait: Duration, answered: bool) -> Option<Pause> {
        let limited =
            |delay: Duration, left: Duration| (!left.is_zero()).then(|| Pause { delay: delay.min(left), left: Some(left) });
        match retry {
            Retry::Never => None,
            Retry::Once => {
                self.once += 1;
                (self.once == 1).then_some(Pause { delay: MODEL_BACKOFF, left: None })
            }
            Retry::Backoff => {
                self.backoff += 1;
                let delay = backoff(self.backoff, MODEL_BACKOFF_MAX);
                (self.backoff < MODEL_ATTEMPTS_MAX).then_some(Pause { delay, left: None })
            }
            Retry::Refused => {
                let left = self.refused.count(MODEL_RESTART);
                let delay = backoff(self.refused.count, MODEL_LOCAL_PAUSE_MAX);
                match answered {
                    true => limited(delay, left),
                    false => (self.refused.count < MODEL_LOCAL_ATTEMPTS_MAX).then_some(Pause { delay, left: None }),
                }
            }
            Retry::Wait(requested) => {
                let left = self.waiting.count(wait);
                let requested = requested.unwrap_or_default();
                // Some providers request no pause.
                let delay = backoff(self.waiting.count, MODEL_WAIT_PAUSE_MAX).max(requested);
                if requested > left { None } else { limited(delay, left) }
            }
        }
    }
}

/// Returns the pause after the failure with this number, which starts at 1.
fn backoff(number: u32, max: Duration) -> Duration {
    MODEL_BACKOFF.saturating_mul(2u32.saturating_pow(number - 1)).min(max)
}
