//! Runs the hooks of a session and applies their effects to tool calls and model requests. Each run
//! is recorded as an event.

use std::sync::Arc;

use serde_json::Value;

use super::call_host::{CallHost, CallOutcome};
use crate::config::FailurePolicy;
use crate::content::{Part, ToolContent, ToolLabel, ToolStatus, plain_text, shortened};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, ChangedCall, HOOK_FAILED, HookEvent, Notice, Severity};
use crate::hooks::{Hook, HookCompaction, HookEffect, HookRequest, HookRun, HookTool, well_formed};
use crate::id::ToolCallId;
use crate::model::Messages;
use crate::options::OptionValue;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::toolkit::{AnyTool, PreparedCall, ToolContext, ToolError, ToolOutput};

/// Maximum size of the note about a changed input in the result of a tool call, in bytes.
const HOOK_INPUT_BYTES_MAX: usize = 1 << 10;
/// Maximum size of a message of a hook to the model, in bytes. A longer message is truncated.
const HOOK_MESSAGE_BYTES_MAX: usize = 16 << 10;
/// Maximum number of messages of one run of a hook. The others are dropped.
const HOOK_MESSAGES_MAX: usize = 8;

/// Code of the notice about a message of a hook to the model.
const MESSAGE: &str = "hook_message";
/// The events of hooks that run after a call, in order.
const AFTER_CALL: [HookEvent; 2] = [HookEvent::ToolExecuteAfter, HookEvent::ToolResultValidate];

/// Creates a request to the hooks of `event`, without a subject.
fn request(event: HookEvent, host: &dyn CallHost, environment: &SessionEnvironment) -> HookRequest {
    let origin = host.origin();
    HookRequest {
        hook_event: event,
        session_id: origin.session,
        turn_id: origin.turn,
        cwd: environment.workspace.cwd.clone(),
        mode: OptionValue::Known(host.permissions(environment.loaded.settings.permissions.default).0),
        model: origin.model.or_else(|| environment.loaded.settings.model.clone()),
        tool: None,
        system: None,
        messages: None,
        compaction: None,
    }
}

/// Creates the notice that passes a message of a hook to the model.
pub(crate) fn message_notice(message: String) -> Body {
    Body::Notice(Notice {
        description: Some(message.clone()),
        code: Some(MESSAGE.into()),
        note: Some("a message of a hook follows".into()),
        quoted: Some(message),
        ..Notice::new(Severity::Info, "A hook added a message for the model")
    })
}

/// Emits a notice about the first failure of a hook in the session that has no effect.
async fn report_ignored_failure(host: &dyn CallHost, environment: &SessionEnvironment, run: &HookRun) {
    let Some((title, description)) = run.ignored_failure().filter(|_| !host.cancel().is_cancelled()) else { return };
    if host.has_reported(&title) || !environment.hooks.claim_report(&title) {
        return;
    }
    host.emit(Body::notice_about(HOOK_FAILED, Severity::Warning, title, description)).await;
}

pub(in crate::runtime) struct CallHooks<'a> {
    host: &'a dyn CallHost,
    environment: &'a SessionEnvironment,
    tool: HookTool,
    /// The tool that prepares the call, if it is not the one that has this name in the table.
    target: Option<Arc<dyn AnyTool>>,
    /// True if nuncio makes the call, not the model.
    automatic: bool,
    /// True if a hook changed the input.
    changed: bool,
}

impl<'a> CallHooks<'a> {
    pub(in crate::runtime) fn new(
        host: &'a dyn CallHost,
        environment: &'a SessionEnvironment,
        id: ToolCallId,
        call: &mut PreparedCall,
        automatic: bool,
    ) -> CallHooks<'a> {
        let (target, input) = (call.target.take(), std::mem::take(&mut call.input));
        let tool = HookTool { tool_call_id: id, name: call.name.clone(), input, status: None, output: None, parts: None };
        CallHooks { host, environment, tool, target, automatic, changed: false }
    }

    /// Prepares the call with another input.
    fn prepare(&self, input: Value, context: &ToolContext) -> Result<PreparedCall, ToolError> {
        match &self.target {
            Some(tool) => tool.clone().prepare(input, context),
            None => self.environment.prepare_call(&self.tool.name, input, context, self.automatic),
        }
    }

    async fn run(&self, event: HookEvent, hook: &Arc<dyn Hook>) -> HookRun {
        let request = HookRequest { tool: Some(self.tool.clone()), ..request(event, self.host, self.environment) };
        HookRun::new(&**hook, &request, self.host.cancel()).await
    }

    async fn record(&self, run: &HookRun, changed: Option<ChangedCall>) {
        self.host.emit(run.completed(Some(self.tool.tool_call_id.clone()), changed)).await;
        report_ignored_failure(self.host, self.environment, run).await;
    }

    /// Runs the hooks of `tool.execute.before`. Returns the call with its final input, of which
    /// `label` receives the title, or how the call ends if a hook blocks it.
    pub(in crate::runtime) async fn before(
        &mut self,
        mut call: PreparedCall,
        label: &mut ToolLabel,
        context: &ToolContext,
    ) -> Result<PreparedCall, CallOutcome> {
        let event = HookEvent::ToolExecuteBefore;
        for hook in self.environment.hooks.matching(event, &self.tool.name.clone()) {
            let mut run = self.run(event, hook).await;
            let mut changed = None;
            match run.effect() {
                HookEffect::Input(input) if input == self.tool.input => run.replace(Ok(HookEffect::Unchanged)),
                HookEffect::Input(input) => match self.prepare(input, context) {
                    Ok(mut prepared) => {
                        let input = std::mem::take(&mut prepared.input);
                        (call, self.tool.input, self.changed) = (prepared, input.clone(), true);
                        (label.title, label.category) = (call.title.clone(), Some(call.access.category()));
                        let (title, locations) = (call.title.clone(), call.locations.clone());
                        changed = Some(ChangedCall { title, input, locations });
                    }
                    Err(ToolError(error)) => run.replace(Err(format!("the new input is invalid: {error}"))),
                },
                _ => {}
            }
            self.record(&run, changed).await;
            if self.host.cancel().is_cancelled() {
                return Err(CallOutcome::Cancelled);
            }
            if let HookEffect::Block(reason) = run.effect() {
                return Err(CallOutcome::Denied(format!("blocked by {reason}")));
            }
        }
        Ok(call)
    }

    pub(in crate::runtime) fn follow_call(&self) -> bool {
        let follows = |event: &HookEvent| self.environment.hooks.matching(*event, &self.tool.name).next().is_some();
        AFTER_CALL.iter().any(follows)
    }

    /// Runs the hooks of `tool.execute.after` and `tool.result.validate`. Returns the result for
    /// the model, and messages for the next model request. After a cancel, the hooks that have not
    /// run count as failed.
    pub(in crate::runtime) async fn after(
        mut self,
        mut result: Result<ToolOutput, ToolError>,
    ) -> (Result<ToolOutput, ToolError>, Vec<String>) {
        let (mut messages, name) = (Vec::new(), self.tool.name.clone());
        for event in AFTER_CALL {
            for hook in self.environment.hooks.matching(event, &name) {
                if self.host.cancel().is_cancelled() {
                    if event == HookEvent::ToolExecuteAfter && hook.on_failure() == FailurePolicy::Closed {
                        result = Err(withheld(format!("hook {}, which the cancel prevented from running", hook.name())));
                    }
                    continue;
                }
                self.set_result(&result);
                let run = self.run(event, hook).await;
                self.record(&run, None).await;
                let message = |text: String| shortened(format!("[hook {}] {text}", hook.name()), HOOK_MESSAGE_BYTES_MAX);
                match run.effect() {
                    HookEffect::Output(parts) => replace_output(&mut result, parts),
                    HookEffect::Messages(texts) => {
                        messages.extend(texts.into_iter().take(HOOK_MESSAGES_MAX).map(message));
                    }
                    HookEffect::Block(reason) if event == HookEvent::ToolExecuteAfter => {
                        result = Err(withheld(reason));
                    }
                    HookEffect::Block(reason) => messages.push(shortened(format!("[{reason}]"), HOOK_MESSAGE_BYTES_MAX)),
                    _ => {}
                }
            }
            if event == HookEvent::ToolExecuteAfter && self.changed {
                self.note_input(&mut result);
            }
        }
        (result, messages)
    }

    fn set_result(&mut self, result: &Result<ToolOutput, ToolError>) {
        let status = if result.is_ok() { ToolStatus::Completed } else { ToolStatus::Failed };
        self.tool.status = Some(status);
        match result {
            Ok(output) => self.tool.set_output(&output.parts),
            Err(ToolError(message)) => self.tool.set_output(&[Part::text(message)]),
        }
    }

    /// Adds a note about the changed input to the result, because the model sent another input.
    fn note_input(&self, result: &mut Result<ToolOutput, ToolError>) {
        let (note, input) = ("a hook changed the input of this call to the following", self.tool.input.to_string());
        let input = shortened(input, HOOK_INPUT_BYTES_MAX);
        match result {
            Ok(output) => output.parts.extend([Part::note(note), Part::text(input)]),
            Err(ToolError(message)) => *message = format!("{message}\n[{note}]\n{input}"),
        }
    }
}

/// The hooks of a call that nuncio does not run: that of a hosted agent.
pub(crate) struct ForeignCallHooks<'a> {
    pub host: &'a dyn CallHost,
    pub environment: &'a SessionEnvironment,
}

impl ForeignCallHooks<'_> {
    fn hooks(&self, tool: HookTool) -> CallHooks<'_> {
        CallHooks { host: self.host, environment: self.environment, tool, target: None, automatic: false, changed: false }
    }

    /// Runs the hooks of `tool.execute.before`. Returns why they block the call, if they do. A hook
    /// that changes the input fails, because the agent keeps its input.
    pub(crate) async fn before(&self, tool: HookTool) -> Option<String> {
        let (event, hooks) = (HookEvent::ToolExecuteBefore, self.hooks(tool));
        for hook in self.environment.hooks.matching(event, &hooks.tool.name) {
            let mut run = hooks.run(event, hook).await;
            if matches!(run.effect(), HookEffect::Input(input) if input != hooks.tool.input) {
                run.replace(Err("the input of a hosted agent's call cannot be changed".into()));
            }
            hooks.record(&run, None).await;
            if let HookEffect::Block(reason) = run.effect() {
                return Some(format!("blocked by {reason}"));
            }
        }
        None
    }

    /// Runs the hooks that follow a call. The agent has the result already, so they do not change
    /// it.
    pub(crate) async fn after(&self, tool: HookTool, is_completed: bool, output: String) {
        let result = if is_completed { Ok(ToolOutput::text(output, Value::Null)) } else { Err(ToolError(output)) };
        let _unused = self.hooks(tool).after(result).await;
    }
}

/// Creates the result of a call whose output the model must not receive.
fn withheld(by: String) -> ToolError {
    ToolError(format!("the call ran, but its result is withheld by {by}"))
}

/// Replaces the text for the model and the text that clients show. Diffs, terminals and details
/// remain.
fn replace_output(result: &mut Result<ToolOutput, ToolError>, parts: Vec<Part>) {
    match result {
        Ok(output) => {
            // A hook passes notes on, and writes none.
            let own = |part: Part| if output.parts.contains(&part) { part } else { part.untagged() };
            let parts: Vec<Part> = parts.into_iter().map(own).collect();
            output.content.retain(|content| !matches!(content, ToolContent::Content { .. }));
            output.content.extend(parts.iter().map(|part| ToolContent::Content { content: part.clone() }));
            output.parts = parts;
        }
        Err(ToolError(message)) => *message = plain_text(&parts),
    }
}

pub(crate) struct RequestHooks<'a> {
    pub host: &'a dyn CallHost,
    pub environment: &'a SessionEnvironment,
    pub model: &'a str,
}

type Apply = fn(&mut HookRequest, HookEffect) -> Result<(), String>;

impl RequestHooks<'_> {
    /// Runs the hooks of `event` on the part of the request that `fill` sets. Returns it, and
    /// whether all hooks ran without a failure. An error fails the turn.
    async fn transform(&self, event: HookEvent, fill: impl FnOnce(&mut HookRequest), apply: Apply) -> Result<(HookRequest, bool)> {
        let RequestHooks { host, environment, model } = *self;
        let mut request = request(event, host, environment);
        request.model = Some(model.into());
        fill(&mut request);
        let mut complete = true;
        for hook in environment.hooks.matching(event, model) {
            let mut run = HookRun::new(&**hook, &request, host.cancel()).await;
            if let Err(error) = apply(&mut request, run.effect()) {
                run.replace(Err(error));
            }
            host.emit(run.completed(None, None)).await;
            report_ignored_failure(host, environment, &run).await;
            complete &= !run.has_failed();
            if host.cancel().is_cancelled() {
                return Ok((request, false));
            }
            if let HookEffect::Block(reason) = run.effect() {
                return Err(Error::new(Kind::Forbidden, format!("blocked by {reason}")));
            }
        }
        Ok((request, complete))
    }

    /// Runs the hooks of `prompt.system.transform`. Returns the system prompt to send, and whether
    /// all hooks ran without a failure.
    pub(crate) async fn system(&self, text: Arc<str>) -> Result<(Arc<str>, bool)> {
        let apply = |request: &mut HookRequest, effect| {
            if let HookEffect::System(system) = effect {
                request.system = Some(system);
            }
            Ok(())
        };
        let fill = |request: &mut HookRequest| request.system = Some(text.to_string());
        let (request, complete) = self.transform(HookEvent::PromptSystemTransform, fill, apply).await?;
        Ok((request.system.map_or(text, Into::into), complete))
    }

    /// Runs the hooks of `prompt.messages.transform`. Returns the messages to send.
    pub(crate) async fn messages(&self, messages: Messages) -> Result<Messages> {
        let apply = |request: &mut HookRequest, effect| {
            if let HookEffect::Conversation(messages) = effect {
                well_formed(&messages)?;
                request.messages = Some(Arc::new(messages.into_iter().map(Arc::new).collect()));
            }
            Ok(())
        };
        let fill = |request: &mut HookRequest| request.messages = Some(messages);
        let (request, _) = self.transform(HookEvent::PromptMessagesTransform, fill, apply).await?;
        Ok(request.messages.unwrap_or_default())
    }

    /// Runs the hooks of `session.compacting`. Returns the prompt for the summary. An error
    /// prevents the summary.
    pub(crate) async fn compacting(&self, compaction: HookCompaction) -> Result<String> {
        let apply = |request: &mut HookRequest, effect| {
            if let (Some(compaction), HookEffect::Compaction { prompt, instructions }) = (&mut request.compaction, effect) {
                let before = prompt.unwrap_or_else(|| std::mem::take(&mut compaction.prompt));
                compaction.prompt = match instructions {
                    Some(instructions) => format!("{}\n\n{instructions}", before.trim_end()),
                    None => before,
                };
            }
            Ok(())
        };
        let fill = |request: &mut HookRequest| request.compaction = Some(compaction);
        let (request, _) = self.transform(HookEvent::SessionCompacting, fill, apply).await?;
        Ok(request.compaction.map(|compaction| compaction.prompt).unwrap_or_default())
    }
}
