//! Keeps the conversation of a turn within the model's context window. Before each request, old
//! tool outputs are pruned; if that is not enough, the conversation is replaced by a summary.

use std::sync::Arc;
use std::time::Duration;

use super::answer::ModelAnswer;
use super::request::{request, tools_bytes};
use super::step::Steps;
use crate::config::ContextSettings;
use crate::content::{Part, StepOutcome, StopReason};
use crate::context::excerpt::excerpt;
use crate::context::history::History;
use crate::context::summary;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, CompactionOutcome, CompactionReason, PrunedOutput, Severity};
use crate::hooks::HookCompaction;
use crate::model::{Cause, Message, Model, Request};
use crate::runtime::calls::hooks::RequestHooks;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::runtime::services::{failed_request, model_error};
use crate::session::Turn;
use crate::task;
use crate::toolkit::artifact;

/// A compaction must replace at least one of this number of the conversation's parts.
const COMPACTION_SHARE_MIN: usize = 4;
/// The part of the context window that is reserved for the summary: one of this number. A
/// conversation at the default threshold must fit into the rest, so that the request for its
/// summary is read from the provider's cache.
const COMPACTION_RESERVE_SHARE: u64 = 10;
/// Maximum number of requests for one summary.
const COMPACTION_REQUESTS_MAX: u32 = 3;
/// The pause before the second request for a summary; it doubles with each further one.
const COMPACTION_PAUSE: Duration = Duration::from_millis(250);
/// The context window counts as full if one of this number of its parts is left.
const WINDOW_FULL_SHARE: u64 = 20;
/// The excerpt that replaces a failed summary has one of this number of parts of the conversation's
/// room.
const EXCERPT_SHARE: usize = 4;
/// Number of incomplete or empty summaries after which a compaction fails.
const UNUSABLE_SUMMARIES_MAX: u32 = 2;
/// Maximum length of a summary; a longer one is truncated.
const SUMMARY_BYTES_MAX: usize = 64 << 10;

/// The context window during one turn.
pub(in crate::agent) struct ContextWindow<'a> {
    turn: &'a Turn,
    environment: &'a SessionEnvironment,
    /// The system prompt of the requests.
    system: Arc<str>,
    /// True if a compaction at the threshold failed: the turn continues without another one until
    /// the window is almost full.
    failed: bool,
    /// The size of the requests without messages.
    overhead: usize,
}

/// The sizes that a compaction changes.
pub(in crate::agent) struct CompactionResult {
    pub tokens_before: u64,
    pub tokens_after: u64,
}

impl<'a> ContextWindow<'a> {
    /// Creates the context window of a turn whose requests to `model` begin with the prompt
    /// `system`.
    pub(in crate::agent) fn new(
        turn: &'a Turn,
        environment: &'a SessionEnvironment,
        system: Arc<str>,
        model: &dyn Model,
    ) -> ContextWindow<'a> {
        let overhead = system.len() + tools_bytes(model, environment);
        ContextWindow { turn, environment, system, failed: false, overhead }
    }

    /// Builds the next request from the current conversation.
    pub(in crate::agent) fn request(&self) -> Request {
        request(&self.turn.log, self.environment, &self.system)
    }

    /// Makes room for a request and sends it. If the provider rejects it as too large, compacts the
    /// conversation and sends the request once more.
    pub(in crate::agent) async fn ask(&mut self, steps: &mut Steps<'_>) -> Result<ModelAnswer> {
        let window = steps.model().context_window();
        self.prune(window).await?;
        let threshold = self.settings().compact_at_tokens(window);
        let is_due = threshold.is_some_and(|threshold| self.tokens() >= threshold);
        if is_due && (!self.failed || self.is_full(window)) && self.saves_enough() {
            let compacted = Box::pin(self.compact(steps, CompactionReason::Threshold, None)).await;
            if let Err(error) = compacted {
                self.failed = true;
                let title = "The conversation could not be compacted";
                self.turn.emit(Body::notice(Severity::Warning, title, error.message)).await;
            }
        }
        let sent = self.send(steps).await;
        if sent.as_ref().is_err_and(is_overflow) {
            self.report_window(steps, window).await;
        }
        match sent {
            Err(error) if is_overflow(&error) && self.saves_enough() => {
                let bytes = self.history(History::bytes);
                let compacted = Box::pin(self.compact(steps, CompactionReason::Overflow, Some(fitting(&error, bytes)))).await;
                match compacted {
                    Ok(_) => self.send(steps).await,
                    Err(failed) => {
                        let title = "The conversation could not be compacted";
                        self.turn.emit(Body::notice(Severity::Warning, title, failed.message)).await;
                        Err(error)
                    }
                }
            }
            answer => answer,
        }
    }

    /// Reports a context window that is smaller than `before`, because an error of the provider
    /// names it.
    async fn report_window(&self, steps: &Steps<'_>, before: u64) {
        let (id, window) = (steps.model().id(), steps.model().context_window());
        if window >= before {
            return;
        }
        let title = format!("The context window of {id} has {window} tokens");
        let description = format!(
            "the provider rejected a request and named this size; {before} was assumed. It is used from now on; to set it: \
             context_window = {window} in [models.\"{id}\"]"
        );
        self.turn.emit(Body::notice(Severity::Warning, title, description)).await;
    }

    /// Returns whether the next request needs almost the whole window.
    fn is_full(&self, window: u64) -> bool {
        window > 0 && self.tokens() >= window - window / WINDOW_FULL_SHARE
    }

    async fn send(&self, steps: &mut Steps<'_>) -> Result<ModelAnswer> {
        let mut request = self.request();
        request.messages = self.hooks(steps).messages(request.messages).await?;
        steps.ask(request).await
    }

    fn hooks<'s>(&'s self, steps: &'s Steps<'_>) -> RequestHooks<'s> {
        RequestHooks { host: self.turn, environment: self.environment, model: steps.model().id() }
    }

    pub(in crate::agent) fn environment(&self) -> &'a SessionEnvironment {
        self.environment
    }

    fn settings(&self) -> &'a ContextSettings {
        &self.environment.loaded.settings.context
    }

    fn history<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        self.turn.log.state(|state| read(&state.history))
    }

    /// Estimates the tokens of the next request.
    fn tokens(&self) -> u64 {
        self.history(|history| history.usage().tokens(self.overhead, history.bytes()))
    }

    /// Replaces old tool outputs by short texts, if that saves enough.
    async fn prune(&self, context_window: u64) -> Result<()> {
        let (minimum, protect) = self.settings().prune_tokens(context_window);
        let protected = |name: &str| self.settings().prune_protected_tools.iter().any(|tool| tool == name);
        let (outputs, ratio) = self.history(|history| {
            let ratio = history.usage().bytes_per_token(self.overhead);
            (history.prunable((protect as f64 * ratio) as usize, &protected), ratio)
        });
        let tokens = |bytes: usize| (bytes as f64 / ratio) as u64;
        if outputs.is_empty() || tokens(outputs.iter().map(|output| output.bytes).sum()) < minimum {
            return Ok(());
        }
        let artifacts = self.environment.workspace.artifacts.clone();
        let kept = task::blocking("writing pruned tool outputs", move || {
            let (mut pruned, mut bytes) = (Vec::new(), 0);
            for output in outputs {
                let text = output.text();
                let chars = text.chars().count() as u64;
                match artifact::keep_in(&artifacts, "output", "txt", text.as_bytes()) {
                    Ok(path) => {
                        bytes += output.bytes;
                        pruned.push(PrunedOutput { tool_call_id: output.tool_call_id, chars, artifact: Some(path) });
                    }
                    // The output remains in the conversation.
                    Err(error) => tracing::warn!(%error, "cannot write a tool output that was to be pruned"),
                }
            }
            (pruned, bytes)
        });
        let (outputs, bytes) = kept.await?;
        if outputs.is_empty() {
            return Ok(());
        }
        self.turn.commit(Body::ContextPruned { outputs, tokens: tokens(bytes) }).await.map(drop)
    }

    /// Returns whether the conversation has messages.
    pub(in crate::agent) fn has_messages(&self) -> bool {
        self.history(History::bytes) > 0
    }

    /// Returns whether a compaction would make the conversation considerably smaller: not if it
    /// consists of a summary and the prompts of the running turn.
    fn saves_enough(&self) -> bool {
        self.history(|history| {
            let (prompts, summary) = history.kept_bytes();
            let replaced = history.bytes().saturating_sub(prompts + summary);
            replaced > 0 && replaced >= history.bytes() / COMPACTION_SHARE_MIN
        })
    }

    /// Replaces the conversation by a summary that the model writes. `fitting` is the size of a
    /// conversation that the model accepts, in bytes, if the provider rejected the current one. If
    /// the compaction fails or is cancelled, the conversation is unchanged. Returns `None` if it
    /// was cancelled.
    pub(in crate::agent) async fn compact(
        &self,
        steps: &mut Steps<'_>,
        reason: CompactionReason,
        fitting: Option<usize>,
    ) -> Result<Option<CompactionResult>> {
        let request = self.request();
        let tokens_before = self.tokens();
        let focus = self.history(|history| history.focus().map(String::from));
        self.turn.commit(Body::CompactionStarted { reason, focus: focus.clone(), context_tokens: tokens_before }).await?;
        let (prompts, _) = self.history(History::kept_bytes);
        let ratio = self.history(|history| history.usage().bytes_per_token(self.overhead));
        let fitting = fitting.unwrap_or_else(|| match steps.model().context_window() {
            0 => usize::MAX,
            window => {
                let bytes = ((window - window / COMPACTION_RESERVE_SHARE) as f64 * ratio) as usize;
                bytes.saturating_sub(self.overhead)
            }
        });
        let messages = request.messages.clone();
        let mut summarized = self.summary_by_role(steps, &request, focus.as_deref(), tokens_before).await;
        if summarized.is_err() {
            summarized = self.summary(steps, request, focus.as_deref(), fitting).await;
        }
        let is_urgent = reason == CompactionReason::Overflow || self.is_full(steps.model().context_window());
        if let Err(error) = &summarized
            && is_urgent
            && reason != CompactionReason::Manual
        {
            let title = "The conversation is replaced by an excerpt: the model wrote no summary";
            self.turn.emit(Body::notice(Severity::Warning, title, error.message.clone())).await;
            let plan = self.turn.log.state(|state| state.plan.clone());
            let bytes_max = (fitting / EXCERPT_SHARE).min(SUMMARY_BYTES_MAX);
            summarized = Ok(Some(excerpt(&messages, &plan, bytes_max)));
        }
        let tokens_after = |summary: &str| self.history(|history| history.usage().tokens(self.overhead, prompts + summary.len()));
        let (outcome, error) = match &summarized {
            Ok(Some(_)) => (CompactionOutcome::Completed, None),
            Ok(None) => (CompactionOutcome::Cancelled, None),
            Err(error) => (CompactionOutcome::Failed, Some(error.message.clone())),
        };
        let summary = summarized.as_ref().ok().cloned().flatten();
        let context_tokens = summary.as_deref().map(tokens_after);
        self.turn.commit_durably(Body::CompactionCompleted { outcome, summary, context_tokens, error }).await?;
        if let (Some(after), false) = (context_tokens, reason == CompactionReason::Manual) {
            let description = format!("a summary replaces the earlier messages: about {tokens_before} → {after} tokens");
            self.turn.emit(Body::notice(Severity::Info, "The conversation was compacted", description)).await;
        }
        let result = context_tokens.map(|tokens_after| CompactionResult { tokens_before, tokens_after });
        summarized.map(|_| result)
    }

    /// Asks the model of the role `small` for the summary. Fails if none is set, if the
    /// conversation of `tokens` tokens does not fit its context window, or if it does not answer.
    async fn summary_by_role(
        &self,
        steps: &mut Steps<'_>,
        request: &Request,
        focus: Option<&str>,
        tokens: u64,
    ) -> Result<Option<String>> {
        let settings = &self.environment.loaded.settings;
        let small = settings.roles.small.as_deref().filter(|small| *small != steps.model().id()).ok_or_else(does_not_fit)?;
        let model = self.environment.services.models.open(small, settings).await.map_err(model_error)?;
        model.prepare().await;
        let window = model.context_window();
        if window > 0 && tokens > window - window / COMPACTION_RESERVE_SHARE {
            return Err(does_not_fit());
        }
        let before = steps.use_model(model).await?;
        steps.is_role = true;
        let summary = self.summary(steps, request.clone(), focus, usize::MAX).await;
        steps.is_role = false;
        steps.use_model(before).await?;
        if let Err(error) = &summary {
            tracing::warn!(model = small, %error, "the model of the role small wrote no summary");
        }
        summary
    }

    /// Asks the model for the summary. The request starts like the other requests of the session,
    /// so that the provider's cache applies, unless the conversation has to be shortened to
    /// `bytes_max`.
    async fn summary(
        &self,
        steps: &mut Steps<'_>,
        request: Request,
        focus: Option<&str>,
        mut bytes_max: usize,
    ) -> Result<Option<String>> {
        let compaction = HookCompaction { prompt: summary::prompt(focus), focus: focus.map(String::from) };
        let prompt = self.hooks(steps).compacting(compaction).await?;
        let conversation = self.hooks(steps).messages(request.messages.clone()).await?;
        let (mut unusable, mut pause) = (0, COMPACTION_PAUSE);
        let mut last = None;
        // The model of the session is asked after that of a role.
        let most = if steps.is_role { 1 } else { COMPACTION_REQUESTS_MAX };
        for number in 0..most {
            if number > 0 {
                tokio::select! {
                    biased;
                    () = self.turn.cancel.cancelled() => return Ok(None),
                    () = tokio::time::sleep(pause) => pause *= 2,
                }
            }
            let fitting = summary::fit(&conversation, bytes_max.saturating_sub(prompt.len()));
            let mut messages = fitting.ok_or_else(does_not_fit)?;
            messages.push(Message::User(vec![Part::text(&prompt)]).into());
            let error = match steps.ask_silently(Request { messages: Arc::new(messages), ..request.clone() }).await {
                Ok(answer) if answer.stop == StopReason::Cancelled => return Ok(None),
                Ok(answer) => match summary_of(&answer) {
                    Ok(summary) => return Ok(Some(summary)),
                    Err(error) => {
                        unusable += 1;
                        // The context window may have been too full for the answer.
                        if answer.stop == StopReason::MaxTokens && answer.repeated.is_none() {
                            bytes_max = bytes_max / 4 * 3;
                        }
                        error
                    }
                },
                Err(error) if is_overflow(&error) => {
                    bytes_max = bytes_max.min(self.history(History::bytes)) / 2;
                    error
                }
                Err(error) if is_lasting(&error) => return Err(error),
                Err(error) => error,
            };
            if unusable >= UNUSABLE_SUMMARIES_MAX {
                return Err(error);
            }
            last = Some(error);
        }
        Err(last.unwrap_or_else(|| Error::internal("no summary was requested")))
    }
}

/// Returns the text of a complete answer. Any other answer is not a summary.
fn summary_of(answer: &ModelAnswer) -> Result<String> {
    let mut text = answer.text();
    let wrong = match answer.stop {
        _ if answer.repeated.is_some() => "repeats itself",
        _ if answer.outcome() == StepOutcome::ToolCalls => "has tool calls",
        StopReason::Refusal => "was refused",
        StopReason::MaxTokens | StopReason::MaxTurnRequests | StopReason::Cancelled => "is cut off",
        StopReason::EndTurn if text.trim().is_empty() => "is empty",
        StopReason::EndTurn => {
            text.truncate(text.floor_char_boundary(SUMMARY_BYTES_MAX));
            return Ok(text);
        }
    };
    Err(Error::new(Kind::ModelError, format!("the model's summary {wrong}")))
}

fn does_not_fit() -> Error {
    Error::new(Kind::ModelError, "the conversation does not fit into a request for its summary")
}

/// Returns whether the same request would fail again.
fn is_lasting(error: &Error) -> bool {
    use Cause::{Authentication, BadRequest, ContentFilter, Quota, UnknownModel};
    failed_request(error)
        .is_some_and(|failed| matches!(failed.cause, Authentication | Quota | UnknownModel | BadRequest | ContentFilter))
}

fn is_overflow(error: &Error) -> bool {
    failed_request(error).is_some_and(|failed| matches!(failed.cause, Cause::ContextOverflow { .. }))
}

/// Estimates the size of a conversation that the model accepts, after it rejected a conversation of
/// `bytes`.
fn fitting(error: &Error, bytes: usize) -> usize {
    let share = match failed_request(error).map(|failed| failed.cause) {
        Some(Cause::ContextOverflow { request_tokens: Some(request), context_window: Some(window) }) if window < request => {
            window as f64 / request as f64
        }
        _ => 1.0,
    };
    (bytes as f64 * share.min(0.75) * 0.75) as usize
}
