//! The model requests of a turn: converts the stream of an answer to events and returns the tool
//! calls.

use std::sync::Arc;

use futures_util::StreamExt;
use tracing::Instrument;

use super::answer::{AnswerBuilder, ModelAnswer};
use super::fallback::Fallback;
use crate::config::Price;
use crate::content::{BudgetLimit, Cost, Part, Role, StepOutcome, StopReason, Usage};
use crate::context::request_record::{RequestMessages, request_messages};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Notice, Severity, StepEnd, StepStart, UsageUpdate};
use crate::model::{Chunk, Message, Messages, Model, Request, RequestForm};
use crate::runtime::services::model_error;
use crate::session::Turn;
use crate::session::clock::now_ms;

/// Title of the notice about an answer without text and calls.
pub(in crate::agent) const EMPTY: &str = "The model's answer is empty";
/// The note to the model in the second request after an empty answer.
const EMPTY_NOTE: &str = "Your last answer was empty. Continue with the task: call a tool, or write an answer.";
/// Error of the step of an answer that was truncated because it repeats itself.
pub(in crate::agent) const REPEATED: &str = "the answer repeats itself";

/// The model requests of a turn, numbered from 1. Each is recorded with its start and its end.
pub(crate) struct Steps<'a> {
    turn: &'a Turn,
    model: Arc<dyn Model>,
    pub(super) fallback: Fallback<'a>,
    /// The number of the last request.
    number: u32,
    /// The price of the model, if it is known.
    price: Option<Price>,
    /// A limit of cost that a client gave.
    cost_limit: Option<BudgetLimit>,
    /// The usage of the last request, if it was reported.
    usage: Option<Usage>,
    /// The cost of the last request, if it is known.
    cost: Option<Cost>,
    /// The usage of the running attempt, not contained in `usage`.
    usage_so_far: Option<Usage>,
    /// True if the messages of the answer are not recorded.
    silent: bool,
    /// True while the model of a role answers, which no fallback replaces.
    pub(crate) is_role: bool,
    /// The running request.
    sent: Option<SentRequest>,
}

/// A request whose step has started.
struct SentRequest {
    request: Request,
    form: Option<Arc<RequestForm>>,
    messages: RequestMessages,
}

impl<'a> Steps<'a> {
    /// Creates the steps of a turn without requests. Fails if the price of the model is unknown and
    /// a client gave the limit of cost `cost_limit`.
    pub(crate) async fn new(
        turn: &'a Turn,
        model: Arc<dyn Model>,
        fallback: Fallback<'a>,
        cost_limit: Option<BudgetLimit>,
    ) -> Result<Steps<'a>> {
        let price = fallback.price(model.id()).await;
        let (number, usage, cost, usage_so_far, silent, sent) = (0, None, None, None, false, None);
        let is_role = false;
        let steps = Steps { turn, model, fallback, number, price, cost_limit, usage, cost, usage_so_far, silent, is_role, sent };
        steps.check_price(steps.model.id(), steps.price.as_ref()).map(|()| steps)
    }

    /// Fails if a limit of cost could not stop the requests to a model.
    fn check_price(&self, model: &str, price: Option<&Price>) -> Result<()> {
        let Some(limit) = self.cost_limit.filter(|_| price.is_none()) else { return Ok(()) };
        let message = format!("{model}: its price is unknown, so {} cannot limit its cost", limit.name());
        let hint = format!(
            "set price = {{ input = …, output = … }} in [models.\"{model}\"], in US dollars per million tokens, or limit the tokens"
        );
        Err(Error::invalid_params(message).hint(hint))
    }

    /// Returns the model of the last request.
    pub(crate) fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// Sends the next requests to another model. Returns the one before, or an error if a limit of
    /// cost could not stop the requests.
    pub(crate) async fn use_model(&mut self, model: Arc<dyn Model>) -> Result<Arc<dyn Model>> {
        let price = self.fallback.price(model.id()).await;
        self.check_price(model.id(), price.as_ref())?;
        self.price = price;
        Ok(std::mem::replace(&mut self.model, model))
    }

    /// Sends a request without recording the messages of the answer, and ends the step.
    pub(crate) async fn ask_silently(&mut self, request: Request) -> Result<ModelAnswer> {
        self.silent = true;
        self.turn.children.reserve(&self.turn.log, &self.turn.id);
        self.start(&request).await;
        let answer = self.answer_with_fallback(&request).await;
        self.silent = false;
        let (outcome, error) = match &answer {
            Ok(answer) => (answer.outcome(), answer.repeated.map(|_| REPEATED.into())),
            Err(error) => (StepOutcome::Failed, Some(error.message.clone())),
        };
        self.end(outcome, error).await;
        answer
    }

    /// Sends a request and streams the answer as events. On cancellation, the text received so far
    /// is recorded and the calls are dropped. The caller ends the step of a returned answer after
    /// it has recorded the answer; the step of an error has ended. An answer without text and calls
    /// is discarded, and the request is sent once more with a note. A second one is an error.
    pub(crate) async fn ask(&mut self, mut request: Request) -> Result<ModelAnswer> {
        self.start(&request).await;
        let mut answer = self.answer_with_fallback(&request).await;
        if let Ok(empty) = answer.as_mut()
            && empty.is_empty()
        {
            AnswerBuilder::with_parts(self.turn, std::mem::take(&mut empty.parts)).discard().await;
            self.end(StepOutcome::Retried, Some(EMPTY.into())).await;
            self.turn.emit(Body::notice(Severity::Warning, EMPTY, "the request is sent once more")).await;
            // An equal request may have an equal answer.
            add_note(&mut request.messages, self.turn.log.state(|state| state.history.tag().text(EMPTY_NOTE)));
            self.start(&request).await;
            answer = self.answer_with_fallback(&request).await;
        }
        if let Err(error) = &answer {
            self.end(StepOutcome::Failed, Some(error.message.clone())).await;
        }
        answer
    }

    /// Sends the request to the model. If the model cannot answer, sends the request to the next
    /// model, which also receives the later requests of the turn.
    async fn answer_with_fallback(&mut self, request: &Request) -> Result<ModelAnswer> {
        loop {
            let span = tracing::info_span!("model", model = self.model.id());
            let error = match self.answer(request.clone()).instrument(span).await {
                Err(error) if !self.is_role && self.fallback.applies(&error) => error,
                answer => return answer,
            };
            let turn = self.turn;
            let next = tokio::select! {
                biased;
                () = turn.cancel.cancelled() => return Ok(ModelAnswer::cancelled()),
                next = self.next_model() => next,
            };
            let Some((model, price)) = next else { return Err(error) };
            self.end(StepOutcome::Retried, Some(error.message.clone())).await;
            self.turn.emit(Body::notice(Severity::Warning, format!("Using {}", model.id()), error.message)).await;
            (self.price, self.model) = (price, model);
            self.start(request).await;
        }
    }

    /// Opens the next model that can be used, and reports the models that cannot. Also returns its
    /// price.
    async fn next_model(&mut self) -> Option<(Arc<dyn Model>, Option<Price>)> {
        while let Some(opened) = self.fallback.next().await {
            let price = match &opened {
                Ok(model) => self.fallback.price(model.id()).await,
                Err(_) => None,
            };
            match opened.and_then(|model| self.check_price(model.id(), price.as_ref()).map(|()| model)) {
                Ok(model) => return Some((model, price)),
                Err(error) => {
                    self.turn.emit(Body::notice(Severity::Warning, "A fallback model cannot be used", error.message)).await;
                }
            }
        }
        None
    }

    async fn start(&mut self, request: &Request) {
        self.number += 1;
        (self.usage, self.cost, self.usage_so_far) = (None, None, None);
        let (log, form) = (&self.turn.log, self.model.request_form());
        let messages = log.state(|state| request_messages(&request.messages, &state.history.messages()));
        let digest = log.requests.add(request, form.clone(), &messages).await;
        self.sent = Some(SentRequest { request: request.clone(), form, messages });
        let (step, model) = (self.number, self.model.id().into());
        self.turn.emit(Body::StepStarted(StepStart { step, model, request: Some(digest) })).await;
    }

    /// Records the end of a request. `error` is the reason for a failure or a retry.
    pub(crate) async fn end(&mut self, outcome: StepOutcome, error: Option<String>) {
        self.complete(outcome, error, None).await;
    }

    async fn complete(&mut self, outcome: StepOutcome, error: Option<String>, retry_at_ms: Option<u64>) {
        let (step, model, usage, cost) = (self.number, self.model.id().into(), self.usage.take(), self.cost.take());
        let request = self.record_changed_form().await;
        self.turn.emit(Body::StepCompleted(StepEnd { step, model, outcome, usage, cost, error, retry_at_ms, request })).await;
    }

    /// Records the request again if it was sent in another form than its step began with.
    async fn record_changed_form(&mut self) -> Option<String> {
        let SentRequest { request, form, messages } = self.sent.take()?;
        let sent = self.model.request_form();
        match sent == form {
            true => None,
            false => Some(self.turn.log.requests.add(&request, sent, &messages).await),
        }
    }

    async fn answer(&mut self, request: Request) -> Result<ModelAnswer> {
        let (turn, model) = (self.turn, self.model.clone());
        let (mut stream, mut builder) = (model.stream(request.clone()), AnswerBuilder::new(turn, self.silent));
        loop {
            let chunk = tokio::select! {
                biased;
                () = turn.cancel.cancelled() => None,
                chunk = stream.next() => Some(chunk),
            };
            let Some(chunk) = chunk else {
                drop(stream);
                self.count_usage_so_far().await;
                builder.keep().await;
                return Ok(ModelAnswer::cancelled());
            };
            match chunk {
                Some(Ok(Chunk::Text(text))) => builder.add(Role::Assistant, text).await,
                Some(Ok(Chunk::Thinking(text))) => builder.add(Role::Thought, text).await,
                Some(Ok(Chunk::BlockEnd { thinking, state })) => {
                    builder.end(if thinking { Role::Thought } else { Role::Assistant }, state)
                }
                Some(Ok(Chunk::CallInput { name, bytes, path })) => builder.writing(name, bytes, path),
                Some(Ok(Chunk::ToolCall { id, name, input, state })) => builder.call(&id, name, input, state),
                Some(Ok(Chunk::Truncated { bound })) => {
                    let description = format!("truncated at {bound}; its tool calls are not run");
                    turn.emit(Body::notice(Severity::Warning, "The model's answer is too long", description)).await;
                }
                Some(Ok(Chunk::Notice { title, description, code })) => turn.emit(notice(title, description, code)).await,
                Some(Ok(Chunk::Refused { parts })) => turn.emit(Body::RequestRepaired { parts }).await,
                Some(Ok(Chunk::UsageSoFar(usage))) => self.usage_so_far = Some(usage),
                Some(Ok(Chunk::Usage(usage))) => {
                    self.usage_so_far = None;
                    self.add_usage(usage).await;
                }
                Some(Ok(Chunk::Retry { attempt, delay, left, reason })) => {
                    builder.discard().await;
                    let left = left.map_or(String::new(), |left| format!("; ends in {} s", left.as_secs()));
                    let description = format!("attempt {attempt} in {:.1} s{left}", delay.as_secs_f64());
                    let title = format!("Retrying the model request: {reason}");
                    let at = now_ms() + delay.as_millis() as u64;
                    self.complete(StepOutcome::Retried, Some(reason), Some(at)).await;
                    turn.emit(Body::notice(Severity::Warning, title, description)).await;
                    self.start(&request).await;
                }
                Some(Ok(Chunk::Stop(stop))) => {
                    // An answer that is truncated at a limit has no final usage.
                    self.count_usage_so_far().await;
                    builder.close(None);
                    return Ok(ModelAnswer { parts: builder.parts, stop, repeated: None });
                }
                Some(Err(error)) => {
                    let error = model_error(error);
                    match self.fallback.applies(&error) {
                        true => builder.discard().await,
                        false => builder.keep().await,
                    }
                    return Err(error);
                }
                None => {
                    builder.keep().await;
                    return Err(Error::new(Kind::ModelError, format!("{}: the answer was interrupted", model.id())));
                }
            }
            if let Some(repeated) = builder.cut_repeated_text() {
                drop(stream);
                self.count_usage_so_far().await;
                return Ok(ModelAnswer { parts: builder.parts, stop: StopReason::MaxTokens, repeated: Some(repeated) });
            }
        }
    }

    /// Counts the usage of an attempt that is not continued.
    async fn count_usage_so_far(&mut self) {
        if let Some(usage) = self.usage_so_far.take() {
            self.add_usage(usage).await;
        }
    }

    async fn add_usage(&mut self, usage: Usage) {
        *self.usage.get_or_insert_default() += usage;
        let cost = self.price.as_ref().map(|price| price.cost(&usage));
        self.cost = Cost::sum(self.cost, cost);
        let (model, context_window) = (self.model.id().into(), self.model.context_window());
        let context_tokens = usage.input_tokens + usage.output_tokens;
        self.turn.emit(Body::UsageUpdated(UsageUpdate { model, usage, cost, context_tokens, context_window, aside: false })).await;
    }
}

/// Creates the error for two answers without text and calls.
pub(in crate::agent) fn empty_twice(model: &str) -> Error {
    let message = format!("{model}: the model answered twice without text");
    Error::new(Kind::ModelError, message).hint("choose another model with --model")
}

/// Returns a notice of a model.
fn notice(title: String, description: String, code: Option<String>) -> Body {
    Body::Notice(Notice { description: Some(description), code, ..Notice::new(Severity::Info, title) })
}

/// Adds a note to the last message of the user, or after the last message.
fn add_note(messages: &mut Messages, note: String) {
    let messages = Arc::make_mut(messages);
    match messages.last_mut().map(Arc::make_mut) {
        Some(Message::User(parts)) => parts.push(Part::text(note)),
        _ => messages.push(Arc::new(Message::User(vec![Part::text(note)]))),
    }
}
