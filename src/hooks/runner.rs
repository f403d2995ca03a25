//! Runs hooks: selects those of an event, and bounds the time of each run.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::command::CommandHook;
use super::hook::{Hook, HookEffect, HookError};
use super::request::HookRequest;
use crate::config::FailurePolicy;
use crate::content::shortened;
use crate::event::{Body, ChangedCall, HookEvent, HookOutcome};
use crate::id::ToolCallId;
use crate::limits;

/// How long a hook may take to end after its timeout or a cancellation. Then its result is not
/// awaited.
const HOOK_END: Duration = Duration::from_secs(5);

/// The hooks of a session, in the order in which they run.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    hooks: Arc<[Arc<dyn Hook>]>,
    /// Titles of the reported failures.
    reports: Arc<Mutex<HashSet<String>>>,
}

impl Hooks {
    /// Creates the hooks of a session: the commands of the settings, then the hooks of the
    /// embedder.
    pub(crate) fn new(commands: impl Iterator<Item = CommandHook>, registered: &[Arc<dyn Hook>]) -> Hooks {
        let command = |command| -> Arc<dyn Hook> { Arc::new(command) };
        let hooks = commands.map(command).chain(registered.iter().cloned()).collect();
        Hooks { hooks, reports: Arc::default() }
    }

    /// Returns whether the caller is the first that reports a failure with this title.
    pub(crate) fn claim_report(&self, title: &str) -> bool {
        self.reports.lock().insert(title.into())
    }

    /// Returns the hooks of `event` that match `subject`: the name of a tool, or the id of a model.
    pub(crate) fn matching(&self, event: HookEvent, subject: &str) -> impl Iterator<Item = &Arc<dyn Hook>> {
        self.hooks.iter().filter(move |hook| hook.event() == event && hook.matches(subject))
    }
}

/// A run of a hook that has ended.
pub(crate) struct HookRun {
    event: HookEvent,
    hook: String,
    duration: Duration,
    on_failure: FailurePolicy,
    timed_out: bool,
    result: Result<HookEffect, HookError>,
}

impl HookRun {
    /// Runs a hook until it ends, until its timeout or until `cancel`. A panic is a failure.
    pub(crate) async fn new(hook: &dyn Hook, request: &HookRequest, cancel: &CancellationToken) -> HookRun {
        let (started, event, stop) = (Instant::now(), hook.event(), cancel.child_token());
        let mut running = Box::pin(AssertUnwindSafe(hook.run(request, &stop)).catch_unwind());
        let mut timed_out = false;
        let result = tokio::select! {
            biased;
            result = &mut running => result.unwrap_or_else(|_| Err(HookError("internal error: the hook panicked".into()))),
            () = stop.cancelled() => {
                let _ = timeout(HOOK_END, &mut running).await;
                Err(HookError("cancelled".into()))
            }
            () = sleep(hook.timeout()) => {
                timed_out = true;
                stop.cancel();
                let _ = timeout(HOOK_END, &mut running).await;
                let hint = hook.timeout_hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                Err(HookError(format!("no answer in {} ms{hint}", hook.timeout().as_millis())))
            }
        };
        drop(running);
        let result = result.and_then(|effect| match effect.belongs_to(event) {
            true => Ok(effect),
            false => Err(HookError("the answer has an effect of another event".into())),
        });
        let result = result.map(|effect| match effect {
            HookEffect::Block(reason) => HookEffect::Block(shortened(reason, limits::HOOK_ERROR_BYTES_MAX)),
            effect => effect,
        });
        let (hook, on_failure) = (hook.name().to_owned(), hook.on_failure());
        HookRun { event, hook, duration: started.elapsed(), on_failure, timed_out, result }
    }

    /// Returns the effect of the run. The hook's policy decides whether a failure blocks or has no
    /// effect.
    pub(crate) fn effect(&self) -> HookEffect {
        match (&self.result, self.on_failure) {
            (Ok(HookEffect::Block(reason)), _) => HookEffect::Block(format!("hook {}: {reason}", self.hook)),
            (Ok(effect), _) => effect.clone(),
            (Err(error), FailurePolicy::Closed) => HookEffect::Block(format!("hook {}, which failed: {error}", self.hook)),
            (Err(_), FailurePolicy::Open) => HookEffect::Unchanged,
        }
    }

    /// Returns whether the hook failed, timed out or was cancelled.
    pub(crate) fn has_failed(&self) -> bool {
        self.result.is_err()
    }

    /// Returns the title and the description of a notice about a failure that has no effect.
    pub(crate) fn ignored_failure(&self) -> Option<(String, String)> {
        let error = self.result.as_ref().err().filter(|_| self.on_failure == FailurePolicy::Open)?;
        let event = serde_json::json!(self.event);
        let title = format!("A hook of {} failed without an effect: {}", event.as_str().unwrap_or_default(), self.hook);
        Some((title, format!("{error} (later failures of this hook are not reported in this session)")))
    }

    /// Replaces the result: the effect has no effect or cannot be applied.
    pub(crate) fn replace(&mut self, result: Result<HookEffect, String>) {
        self.result = result.map_err(HookError);
    }

    /// Creates the event that records the run. `changed` is the tool call with its new input.
    pub(crate) fn completed(&self, tool_call_id: Option<ToolCallId>, changed: Option<ChangedCall>) -> Body {
        let outcome = match &self.result {
            Ok(HookEffect::Unchanged) => HookOutcome::Unchanged,
            Ok(HookEffect::Block(_)) => HookOutcome::Blocked,
            Ok(HookEffect::Messages(messages)) if messages.is_empty() => HookOutcome::Unchanged,
            Ok(HookEffect::Messages(_)) => HookOutcome::Messages,
            Ok(_) => HookOutcome::Changed,
            Err(_) if self.timed_out => HookOutcome::TimedOut,
            Err(_) => HookOutcome::Failed,
        };
        let reason = match &self.result {
            Ok(HookEffect::Block(reason)) => Some(reason.clone()),
            _ => None,
        };
        Body::HookCompleted {
            event: self.event,
            hook: self.hook.clone(),
            tool_call_id,
            outcome,
            duration_ms: self.duration.as_millis() as u64,
            reason,
            error: self.result.as_ref().err().map(ToString::to_string),
            changed,
        }
    }
}
