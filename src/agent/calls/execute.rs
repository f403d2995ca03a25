//! The path of every tool call: parse the input, announce the call, check permissions, request a
//! decision if rules ask, run the tool, record the result.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tracing::Instrument;

use super::call_host::{CallHost, CallOutcome, CallResult, ServedCall};
use super::hooks::CallHooks;
use super::permission;
use super::permission_check::Check;
use crate::agent::check_confinement;
use crate::agent::environment::SessionEnvironment;
use crate::agent::input::nested_instructions;
use crate::agent::turn::repetition::EndedCall;
use crate::config::AccessKind;
use crate::content::{Part, ProviderState, ToolCategory, ToolContent, ToolKind, ToolLabel, ToolStatus};
use crate::error::Result;
use crate::event::{Body, ToolChange};
use crate::id::ToolCallId;
use crate::json;
use crate::session::turn::panic_message;
use crate::toolkit::{self, CallRequests, PreparedCall, ToolContext, ToolError, ToolOutput, ToolProperties, change_scan};

/// A tool call as the model wrote it, with its id in this session. `input` is JSON.
pub(crate) struct ToolUse {
    pub id: ToolCallId,
    pub name: String,
    pub input: String,
    pub state: Option<ProviderState>,
}

/// The party that makes a call.
#[derive(Clone, Copy, PartialEq)]
enum Automatic {
    /// The model makes the call.
    No,
    Yes,
    /// nuncio makes the call, but the model may have written its commands.
    Asks,
}

impl Automatic {
    fn is_automatic(self) -> bool {
        self != Automatic::No
    }
}

/// An announced call: the prepared tool, or the error that the input caused.
pub(crate) struct ToolCall {
    id: ToolCallId,
    label: ToolLabel,
    /// Hash of the name and the input.
    hasher: DefaultHasher,
    automatic: Automatic,
    context: ToolContext,
    environment: Arc<SessionEnvironment>,
    prepared: Result<PreparedCall, ToolError>,
}

impl ToolCall {
    /// Parses the input once, so that the checked call is the one that runs, and emits
    /// `tool.started`.
    pub(crate) async fn announce(host: &dyn CallHost, environment: &Arc<SessionEnvironment>, tool_use: ToolUse) -> ToolCall {
        Self::announced(host, environment, tool_use, Automatic::No).await
    }

    /// Announces a call that nuncio makes by itself. Its commands run confined, and it is allowed
    /// unless a rule denies it. With `asks`, permission is decided as for a call of the model.
    pub(in crate::agent) async fn announce_automatic(
        host: &dyn CallHost,
        environment: &Arc<SessionEnvironment>,
        tool_use: ToolUse,
        asks: bool,
    ) -> ToolCall {
        Self::announced(host, environment, tool_use, if asks { Automatic::Asks } else { Automatic::Yes }).await
    }

    async fn announced(
        host: &dyn CallHost,
        environment: &Arc<SessionEnvironment>,
        tool_use: ToolUse,
        automatic: Automatic,
    ) -> ToolCall {
        let ToolUse { id, name, input, state } = tool_use;
        let mut context = environment.tool_context();
        context.call_id = id.clone();
        context.cancel = host.cancel().child_token();
        context.progress = host.progress(&id);
        context.client = host.client();
        context.subagents = host.subagents();
        let (input, input_text, prepared) = match parse(&input) {
            Ok(value) => {
                let serialized = value.to_string();
                let differs = value.is_object() && serialized != input;
                let prepared = environment.prepare_call(&name, value.clone(), &context, automatic.is_automatic());
                (value, differs.then_some(input), prepared)
            }
            Err(error) => (Value::String(input), None, Err(error)),
        };
        let (title, kind, category, locations) = match &prepared {
            Ok(call) => (call.title.clone(), call.kind, call.access.category(), call.locations.clone()),
            Err(_) => (name.clone(), ToolKind::Other, ToolCategory::Other, Vec::new()),
        };
        let mut hasher = DefaultHasher::new();
        (&name, input.to_string()).hash(&mut hasher);
        let category = Some(category);
        let label = ToolLabel { name: name.clone(), title: title.clone(), category };
        let (tool_call_id, provider_state) = (id.clone(), state);
        let body = Body::ToolStarted {
            tool_call_id,
            name,
            title,
            kind,
            category,
            input,
            input_text,
            locations,
            provider_state,
            automatic: automatic.is_automatic(),
        };
        host.emit(body).await;
        ToolCall { id, label, hasher, automatic, context, environment: environment.clone(), prepared }
    }

    /// Returns whether the call edits files or runs a command, which may edit files.
    pub(in crate::agent) fn may_edit(&self) -> bool {
        let edits = |call: &PreparedCall| matches!(call.access.kind, AccessKind::Write | AccessKind::Exec);
        self.prepared.as_ref().is_ok_and(edits)
    }

    /// Runs the call and records its result.
    pub(crate) async fn finish(self, host: &dyn CallHost) -> Result<EndedCall> {
        let (id, mut hasher) = (self.id.clone(), self.hasher.clone());
        let CallResult { outcome, label, messages } = self.run(host).await?;
        let name = label.name.clone();
        let polls = matches!(&outcome, CallOutcome::Completed(output) if output.polls);
        let body = completed(id, label, outcome);
        if let Body::ToolCompleted { status, output, .. } = &body {
            (*status == ToolStatus::Failed, json!(output).to_string()).hash(&mut hasher);
        }
        host.commit(body, false).await?;
        Ok(EndedCall { name, fingerprint: hasher.finish(), polls, messages })
    }

    /// Runs the call, records its `tool.completed`, and returns it with the messages of hooks.
    pub(crate) async fn finish_recorded(self, host: &dyn CallHost) -> Result<(Body, Vec<String>)> {
        let id = self.id.clone();
        let CallResult { outcome, label, messages } = self.run(host).await?;
        let body = completed(id, label, outcome);
        host.commit(body.clone(), false).await?;
        Ok((body, messages))
    }

    /// Runs the call between its hooks. Returns an error only if the log cannot be written.
    pub(crate) async fn run(mut self, host: &dyn CallHost) -> Result<CallResult> {
        let mut label = self.label.clone();
        let ended = |outcome, label| Ok(CallResult { outcome, label, messages: Vec::new() });
        let mut prepared = match std::mem::replace(&mut self.prepared, Err(ToolError::cancelled())) {
            Ok(prepared) => prepared,
            Err(ToolError(message)) => return ended(CallOutcome::InvalidInput(message), label),
        };
        let environment = self.environment.clone();
        let mut hooks = CallHooks::new(host, &environment, self.id.clone(), &mut prepared, self.automatic.is_automatic());
        let prepared = match hooks.before(prepared, &mut label, &self.context).await {
            Ok(prepared) => prepared,
            Err(outcome) => return ended(outcome, label),
        };
        self.label = label.clone();
        let hooked = hooks.follow_call().then(|| self.context.clone());
        match self.run_prepared(prepared, host).await? {
            Ok(result) => {
                if let Some(context) = &hooked {
                    change_scan::before_program(context).await;
                }
                let (result, messages) = hooks.after(result).await;
                if let Some(context) = &hooked {
                    change_scan::after_program(context).await;
                }
                Ok(CallResult { outcome: result.into(), label, messages })
            }
            Err(outcome) => ended(outcome, label),
        }
    }

    /// Checks permissions, and runs the tool if they allow it; else returns how the call ends.
    async fn run_prepared(
        self,
        prepared: PreparedCall,
        host: &dyn CallHost,
    ) -> Result<Result<Result<ToolOutput, ToolError>, CallOutcome>> {
        let ToolCall { id, label, automatic, mut context, environment, .. } = self;
        let default = environment.loaded.settings.permissions.default;
        let (mode, remembered) = host.permissions(default);
        // Use the sandbox for the mode at the time of the check, even if the mode changes before
        // approval.
        context.sandbox = environment.sandbox(mode);
        if automatic.is_automatic()
            && let Err(why) = check_confinement::apply(&mut context, &environment)
        {
            return Ok(Err(CallOutcome::Failed(why)));
        }
        let rules = environment.rules(&remembered);
        context.unasked = environment.writes_unasked(mode, &rules);
        context.start = context.shell.start(&context.workspace);
        let check = Check {
            host,
            id: &id,
            label: &label,
            automatic: automatic == Automatic::Yes,
            context: &context,
            prepared: &prepared,
            mode,
            rules: &rules,
            default,
            timeout: Duration::from_secs(environment.loaded.settings.permissions.timeout_s),
        };
        if let Some(refused) = check.decide().await {
            return Ok(Err(refused));
        }
        if host.cancel().is_cancelled() {
            return Ok(Err(CallOutcome::Cancelled));
        }
        let running = running(&id);
        match prepared.access.kind {
            AccessKind::Read => host.emit(running).await,
            // The log records the start durably before the tool can have an effect.
            AccessKind::Write | AccessKind::Exec | AccessKind::Network | AccessKind::Mcp => host.commit(running, true).await?,
        }
        // The turn may have been cancelled while the log was written.
        if host.cancel().is_cancelled() {
            return Ok(Err(CallOutcome::Cancelled));
        }
        // An answer to another request may have added rules since the check.
        let rules = environment.rules(&host.permissions(default).1);
        context.path_filter = permission::path_filter(&rules, &prepared, &context);
        context.redirect_policy = permission::redirect_policy(&rules, mode, default, &prepared);
        let properties = prepared.properties;
        let runs_commands = matches!(prepared.access.kind, AccessKind::Exec | AccessKind::Mcp);
        if runs_commands {
            change_scan::before_command(&context).await;
        }
        let touched = prepared.resolved.iter().filter(|path| path.inside).map(|path| path.real.clone()).collect();
        let mut result = run(prepared, &mut context, host, &environment).await;
        if runs_commands {
            change_scan::after_program(&context).await;
        }
        if let Ok(output) = &mut result {
            for step in AFTER_RUN {
                step(output, Ran { host, context: &context, properties }).await;
            }
            nested_instructions::add(output, host, &environment, touched).await;
        }
        Ok(Ok(result))
    }
}

/// Creates the event which reports that a call starts to run.
fn running(tool_call_id: &ToolCallId) -> Body {
    let (tool_call_id, status) = (tool_call_id.clone(), Some(ToolStatus::InProgress));
    Body::ToolUpdated { tool_call_id, status, content: None, change: ToolChange::default() }
}

/// Parses the arguments. Some models send an empty string for a call without arguments.
fn parse(input: &str) -> Result<Value, ToolError> {
    if input.trim().is_empty() {
        return Ok(json!({}));
    }
    json::from_str(input).map_err(|error| ToolError::new(format!("the arguments are not valid JSON: {error}")))
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
    let timeout = Duration::from_secs(environment.loaded.settings.permissions.timeout_s);
    let served = ServedCall { host, id: &context.call_id, environment, context, timeout };
    let name = prepared.name.clone();
    let span = tracing::info_span!("tool", tool = name, call = %context.call_id);
    let ran = AssertUnwindSafe(prepared.run(context)).catch_unwind().instrument(span);
    let ran = served.serve(ran, received).await;
    ran.unwrap_or_else(|panic| Err(ToolError::new(format!("internal error: tool {name} panicked: {}", panic_message(&*panic)))))
}

/// A finished tool run, as input for the steps in [`AFTER_RUN`].
struct Ran<'a> {
    host: &'a dyn CallHost,
    context: &'a ToolContext,
    properties: ToolProperties,
}

type Step = for<'a> fn(&'a mut ToolOutput, Ran<'a>) -> BoxFuture<'a, ()>;

/// The steps after a successful run, in order.
const AFTER_RUN: &[Step] = &[note_hidden_results, add_diagnostics, publish_plan];

fn note_hidden_results<'a>(output: &'a mut ToolOutput, ran: Ran<'a>) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        if ran.context.path_filter.is_some() {
            output.parts.push(Part::text("[results hidden by permission rules are omitted]"));
        }
    })
}

fn add_diagnostics<'a>(output: &'a mut ToolOutput, ran: Ran<'a>) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        if ran.properties.edits_files {
            toolkit::after_edit(output, ran.context).await;
        }
    })
}

fn publish_plan<'a>(output: &'a mut ToolOutput, ran: Ran<'a>) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        if let Some(entries) = output.plan.take() {
            ran.host.emit(Body::PlanUpdated { entries }).await;
        }
    })
}

/// Creates the event that records the result of a call.
fn completed(tool_call_id: ToolCallId, label: ToolLabel, outcome: CallOutcome) -> Body {
    let tool = Some(label);
    let failed = |tool_call_id, tool, message: String| Body::ToolCompleted {
        tool_call_id,
        tool,
        status: ToolStatus::Failed,
        output: vec![Part::text(&message)],
        content: vec![ToolContent::text(message)],
        locations: Vec::new(),
        details: None,
        effect: None,
    };
    match outcome {
        CallOutcome::Completed(ToolOutput { parts, content, locations, details, .. }) => Body::ToolCompleted {
            tool_call_id,
            tool,
            status: ToolStatus::Completed,
            output: parts,
            content,
            locations,
            details: Some(details).filter(|details| !details.is_null()),
            effect: None,
        },
        CallOutcome::Failed(message) | CallOutcome::InvalidInput(message) | CallOutcome::Denied(message) => {
            failed(tool_call_id, tool, message)
        }
        CallOutcome::Cancelled => failed(tool_call_id, tool, ToolError::cancelled().0),
    }
}
