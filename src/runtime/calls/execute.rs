//! The path of every tool call: parse the input, announce the call, check permissions, request a
//! decision if rules require it, run the tool, record the result.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tracing::Instrument;

use super::call_host::{CallHost, CallOutcome, CallResult, ServedCall};
use super::hooks::CallHooks;
use super::order;
use super::permission::{self, Check};
use crate::config::AccessKind;
use crate::content::{Part, ProviderState, ToolCategory, ToolContent, ToolKind, ToolLabel, ToolStatus};
use crate::error::Result;
use crate::event::{Body, ToolEnd, ToolStart, ToolUpdate};
use crate::id::ToolCallId;
use crate::json;
use crate::model::ToolSpec;
use crate::runtime::calls::nested_instructions;
use crate::runtime::environment::check_confinement;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::runtime::services::recorded_results;
use crate::session::turn::asking_turn::NOT_RUN;
use crate::session::turn::panic_message;
use crate::toolkit::{self, CallRequests, PreparedCall, ToolContext, ToolError, ToolOutput, change_scan};

/// A tool call as the model wrote it, with its id in this session. `input` is JSON.
pub(crate) struct ToolUse {
    pub id: ToolCallId,
    pub name: String,
    pub input: String,
    pub state: Option<ProviderState>,
}

#[derive(Clone, Copy, PartialEq)]
pub(in crate::runtime) enum CallMaker {
    Model,
    /// The commands of the call run confined, and it is allowed unless a rule denies it.
    Nuncio,
    /// The model may have written the commands: they run confined, and permission is decided as for
    /// a call of the model.
    NuncioForModel,
}

pub(crate) struct EndedCall {
    pub name: String,
    /// The recorded `tool.completed`.
    pub completed: Body,
    /// Hash of the name, the input and the result.
    pub fingerprint: u64,
    /// True if the call reports on work that still runs.
    pub polls: bool,
    /// Messages of hooks for the next model request.
    pub messages: Vec<String>,
}

/// An announced call: the prepared tool, or the error that the input caused.
pub(crate) struct ToolCall {
    id: ToolCallId,
    label: ToolLabel,
    /// Hash of the name and the input.
    hasher: DefaultHasher,
    maker: CallMaker,
    context: ToolContext,
    environment: Arc<SessionEnvironment>,
    prepared: Result<PreparedCall, ToolError>,
}

impl ToolCall {
    /// Parses the input once, so that the checked call is the one that runs, and emits
    /// `tool.started`.
    pub(crate) async fn announce(host: &dyn CallHost, environment: &Arc<SessionEnvironment>, tool_use: ToolUse) -> ToolCall {
        Self::announce_by(CallMaker::Model, host, environment, tool_use).await
    }

    pub(in crate::runtime) async fn announce_by(
        maker: CallMaker,
        host: &dyn CallHost,
        environment: &Arc<SessionEnvironment>,
        tool_use: ToolUse,
    ) -> ToolCall {
        let automatic = maker != CallMaker::Model;
        let ToolUse { id, name, input, state } = tool_use;
        let mut context = environment.tool_context();
        context.call_id = id.clone();
        context.cancel = host.cancel().child_token();
        context.progress = host.progress(&id);
        context.client = host.client();
        context.subagents = host.subagents();
        let (input, input_text, prepared) = match parse(&input, || environment.tool_spec(&name, automatic)) {
            Ok(value) => {
                let serialized = value.to_string();
                let differs = value.is_object() && serialized != input;
                let prepared = environment.prepare_call(&name, value.clone(), &context, automatic);
                (value, differs.then_some(input), prepared)
            }
            Err(error) => (Value::String(input), None, Err(error)),
        };
        let (title, kind, category, locations) = match &prepared {
            Ok(call) => (call.title.clone(), call.kind, call.access.category(), call.locations.clone()),
            Err(_) => (name.clone(), ToolKind::Other, ToolCategory::Other, Vec::new()),
        };
        let mut hasher = DefaultHasher::new();
        (&name, serde_json::to_string(&input).unwrap_or_default()).hash(&mut hasher);
        let label = ToolLabel { name, title, category: Some(category) };
        let started = ToolStart::new(id.clone(), label.clone(), kind, input);
        let started = ToolStart { input_text, locations, provider_state: state, automatic, ..started };
        host.emit(Body::ToolStarted(started)).await;
        ToolCall { id, label, hasher, maker, context, environment: environment.clone(), prepared }
    }

    /// Returns whether the call edits files or runs a command, which may edit files.
    pub(in crate::runtime) fn may_edit(&self) -> bool {
        let edits = |call: &PreparedCall| matches!(call.access.kind, AccessKind::Write | AccessKind::Exec);
        self.prepared.as_ref().is_ok_and(edits)
    }

    /// Returns whether neighbouring calls may run at the same time. A call that fails because of
    /// its input has no effect.
    pub(crate) fn is_concurrent(&self) -> bool {
        self.prepared.as_ref().map_or(true, order::is_concurrent)
    }

    /// Runs the call and records its result. The large future of [`ToolCall::run`] is on the heap,
    /// so that those that contain this one are moved quickly.
    pub(crate) async fn finish(self, host: &dyn CallHost) -> Result<EndedCall> {
        let (id, mut hasher) = (self.id.clone(), self.hasher.clone());
        let CallResult { outcome, label, messages } = Box::pin(self.run(host)).await?;
        let name = label.name.clone();
        let polls = matches!(&outcome, CallOutcome::Completed(output) if output.polls);
        let completed = completed(id, label, outcome, host.is_unanswered());
        if let Body::ToolCompleted(ToolEnd { status, output, .. }) = &completed {
            (*status == ToolStatus::Failed, serde_json::to_string(output).unwrap_or_default()).hash(&mut hasher);
        }
        host.commit(completed.clone(), false).await?;
        Ok(EndedCall { name, completed, fingerprint: hasher.finish(), polls, messages })
    }

    /// Runs the call between its hooks. Returns an error only if the log cannot be written.
    pub(crate) async fn run(mut self, host: &dyn CallHost) -> Result<CallResult> {
        let (outcome, messages) = self.run_between_hooks(host).await?;
        Ok(CallResult { outcome, label: self.label, messages })
    }

    async fn run_between_hooks(&mut self, host: &dyn CallHost) -> Result<(CallOutcome, Vec<String>)> {
        let mut prepared = match std::mem::replace(&mut self.prepared, Err(ToolError::cancelled())) {
            Ok(prepared) => prepared,
            Err(ToolError(message)) => return Ok((CallOutcome::InvalidInput(message), Vec::new())),
        };
        let environment = self.environment.clone();
        let automatic = self.maker != CallMaker::Model;
        let mut hooks = CallHooks::new(host, &environment, self.id.clone(), &mut prepared, automatic);
        let prepared = match hooks.before(prepared, &mut self.label, &self.context).await {
            Ok(prepared) => prepared,
            Err(outcome) => return Ok((outcome, Vec::new())),
        };
        if let Some(outcome) = self.begin(&prepared, host).await? {
            return Ok((outcome, Vec::new()));
        }
        let result = self.execute(prepared, host).await;
        let hooked = hooks.follow_call();
        if hooked {
            change_scan::before_program(&self.context).await;
        }
        let (result, messages) = hooks.after(result).await;
        if hooked {
            change_scan::after_program(&self.context).await;
        }
        Ok((result.into(), messages))
    }

    /// Checks permissions, and records the start of an allowed call. Returns how a refused call
    /// ends.
    async fn begin(&mut self, prepared: &PreparedCall, host: &dyn CallHost) -> Result<Option<CallOutcome>> {
        let (environment, context) = (&self.environment, &mut self.context);
        let default = environment.loaded.settings.permissions.default;
        let (mode, remembered) = host.permissions(default);
        // Use the sandbox for the mode at the time of the check, even if the mode changes before
        // approval.
        context.sandbox = environment.sandbox(mode);
        if self.maker != CallMaker::Model
            && let Err(why) = check_confinement::apply(context, environment)
        {
            return Ok(Some(CallOutcome::Failed(why)));
        }
        let rules = environment.rules(&remembered);
        context.unasked = environment.writes_unasked(mode, &rules);
        context.known_files = host.known_files();
        context.may_read = permission::may_read(&rules, mode, default, &permission::request(prepared, context));
        context.start = context.shell.start(&context.workspace);
        let call = ServedCall { host, id: &self.id, environment, context, timeout: environment.answer_timeout() };
        let check = Check {
            call: &call,
            label: &self.label,
            automatic: self.maker == CallMaker::Nuncio,
            prepared,
            mode,
            unconfined: environment.is_unconfined(mode),
            rules: &rules,
            default,
        };
        match check.decide().await {
            Ok(review) => context.review = review.map(Arc::new),
            Err(refused) => return Ok(Some(refused)),
        }
        if host.cancel().is_cancelled() {
            return Ok(Some(CallOutcome::Cancelled));
        }
        let running = running(&self.id);
        match prepared.access.kind {
            AccessKind::Read => host.emit(running).await,
            // The log records the start durably before the tool can have an effect.
            AccessKind::Write | AccessKind::Exec | AccessKind::Network | AccessKind::Mcp => host.commit(running, true).await?,
        }
        // The turn may have been cancelled while the log was written.
        if host.cancel().is_cancelled() {
            return Ok(Some(CallOutcome::Cancelled));
        }
        // An answer to another request may have added rules since the check.
        let rules = environment.rules(&host.permissions(default).1);
        context.path_filter = permission::path_filter(&rules, prepared, context);
        context.redirect_policy = permission::redirect_policy(&rules, mode, default, prepared);
        Ok(None)
    }

    /// Runs an allowed call, and completes its result.
    async fn execute(&mut self, prepared: PreparedCall, host: &dyn CallHost) -> Result<ToolOutput, ToolError> {
        if let Some(recorded) = self.environment.services.recorded() {
            match recorded.get(self.id.as_str()) {
                Some(recorded) => return recorded.result(&self.context.cancel).await,
                None => recorded_results::check(&prepared)?,
            }
        }
        let runs_commands = matches!(prepared.access.kind, AccessKind::Exec | AccessKind::Mcp);
        if runs_commands {
            change_scan::before_command(&self.context).await;
        }
        let edits_files = prepared.properties.edits_files;
        let touched = prepared.resolved.iter().filter(|path| path.inside).map(|path| path.real.clone()).collect();
        let result = run(prepared, &mut self.context, host, &self.environment).await;
        if runs_commands {
            change_scan::after_program(&self.context).await;
        }
        let mut output = result?;
        if self.context.path_filter.is_some() {
            output.parts.push(Part::note("results hidden by permission rules are omitted"));
        }
        if edits_files {
            toolkit::after_edit(&mut output, &self.context).await;
        }
        if let Some(entries) = output.plan.take() {
            host.emit(Body::PlanUpdated { entries }).await;
        }
        nested_instructions::add(&mut output, host, &self.environment, touched).await;
        Ok(output)
    }
}

/// Creates the event which reports that a call starts to run.
fn running(tool_call_id: &ToolCallId) -> Body {
    Body::ToolUpdated(ToolUpdate::status(tool_call_id.clone(), ToolStatus::InProgress))
}

/// Parses the arguments. Some models send an empty string for a call without arguments. Malformed
/// arguments are repaired if the result fits the tool's schema.
fn parse(input: &str, spec: impl FnOnce() -> Option<ToolSpec>) -> Result<Value, ToolError> {
    if input.trim().is_empty() {
        return Ok(json!({}));
    }
    let repaired = || json::repaired(input).filter(|value| spec().is_some_and(|spec| toolkit::fits(&spec, value)));
    json::from_str(input)
        .or_else(|error| repaired().ok_or(error))
        .map_err(|error| ToolError::new(format!("the arguments are not valid JSON: {error}")))
}

/// Runs an allowed call, and serves its requests to the user and to the model. A panic in the tool
/// becomes an error of the call.
async fn run(
    prepared: PreparedCall,
    context: &mut ToolContext,
    host: &dyn CallHost,
    environment: &SessionEnvironment,
) -> Result<ToolOutput, ToolError> {
    let (requests, received) = CallRequests::new(host.origin().session);
    context.requests = Some(requests);
    let context = &*context;
    let served = ServedCall { host, id: &context.call_id, environment, context, timeout: environment.answer_timeout() };
    let name = prepared.name.clone();
    let span = tracing::info_span!("tool", tool = name, call = %context.call_id);
    let ran = AssertUnwindSafe(prepared.run(context)).catch_unwind().instrument(span);
    let ran = served.serve(ran, received).await;
    ran.unwrap_or_else(|panic| Err(ToolError::new(format!("internal error: tool {name} panicked: {}", panic_message(&*panic)))))
}

/// Creates the event that records the result of a call.
fn completed(tool_call_id: ToolCallId, label: ToolLabel, outcome: CallOutcome, unanswered: bool) -> Body {
    let tool = Some(label);
    let failed = |tool_call_id, tool, message: String| {
        Body::ToolCompleted(ToolEnd {
            tool_call_id,
            tool,
            status: ToolStatus::Failed,
            output: vec![Part::text(&message)],
            content: vec![ToolContent::text(message)],
            locations: Vec::new(),
            details: None,
            effect: None,
        })
    };
    match outcome {
        CallOutcome::Completed(ToolOutput { parts, content, locations, details, .. }) => Body::ToolCompleted(ToolEnd {
            tool_call_id,
            tool,
            status: ToolStatus::Completed,
            output: parts,
            content,
            locations,
            details: Some(details).filter(|details| !details.is_null()),
            effect: None,
        }),
        CallOutcome::Failed(message) | CallOutcome::InvalidInput(message) | CallOutcome::Denied(message) => {
            failed(tool_call_id, tool, message)
        }
        CallOutcome::Cancelled if unanswered => failed(tool_call_id, tool, NOT_RUN.into()),
        CallOutcome::Cancelled => failed(tool_call_id, tool, ToolError::cancelled().0),
    }
}
