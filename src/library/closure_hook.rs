//! Hooks that are closures of the embedding program.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::config::FailurePolicy;
use crate::event::HookEvent;
use crate::hooks::{Hook, HookEffect, HookError, HookRequest, HookTool};

/// How long a closure may take for a tool call.
const CLOSURE_WAIT: Duration = Duration::from_secs(60);

type RunClosure = Box<dyn Fn(HookTool) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// A closure that runs at an event of all tool calls. Its error blocks the call or its result.
pub(super) struct ClosureHook {
    event: HookEvent,
    name: &'static str,
    run: RunClosure,
}

impl ClosureHook {
    pub(super) fn new<F: Future<Output = Result<(), String>> + Send + 'static>(
        event: HookEvent,
        name: &'static str,
        run: impl Fn(HookTool) -> F + Send + Sync + 'static,
    ) -> ClosureHook {
        ClosureHook { event, name, run: Box::new(move |tool| Box::pin(run(tool))) }
    }
}

impl Hook for ClosureHook {
    fn event(&self) -> HookEvent {
        self.event
    }

    fn name(&self) -> &str {
        self.name
    }

    fn matches(&self, _: &str) -> bool {
        true
    }

    fn timeout(&self) -> Duration {
        CLOSURE_WAIT
    }

    fn on_failure(&self) -> FailurePolicy {
        FailurePolicy::Closed
    }

    fn run<'a>(&'a self, request: &'a HookRequest, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<HookEffect, HookError>> {
        Box::pin(async {
            let Some(tool) = &request.tool else { return Err(HookError("the event has no tool call".into())) };
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(HookError("cancelled".into())),
                allowed = (self.run)(tool.clone()) => Ok(match allowed {
                    Ok(()) => HookEffect::Unchanged,
                    Err(reason) => HookEffect::Block(reason),
                }),
            }
        })
    }
}
