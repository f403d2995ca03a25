//! The log of a session, read for a recording: its requests with their answers, its calls, and what
//! clients did.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::recording::{Act, Action, Answer, Moment};
use crate::cli::sessions::session_requests::{RebuiltRequest, rebuilt_request};
use crate::cli::sessions::stored::each_event;
use crate::content::{
    Part, PermissionOptionKind, Role, StepOutcome, StopReason, ToolCategory, ToolContent, ToolStatus, Usage, plain_text,
};
use crate::error::{Error, Result};
use crate::event::{
    Actor, Body, Event, PermissionDecision, PermissionOutcome, PermissionRequest, QueuedMessage, SessionChange, StepEnd, StepStart,
    ToolEnd, ToolStart, ToolUpdate, TurnFailure, UsageUpdate,
};
use crate::id::{MessageId, SessionId, ToolCallId};
use crate::model::{Messages, Request};
use crate::options::{Mode, OptionValue};
use crate::session::{SessionState, Sessions};

/// The start of the error of a step whose answer was empty: nuncio asks again with a note.
const EMPTY: &str = "The model's answer is empty";

/// The log of a session.
#[derive(Default)]
pub(super) struct SessionRecord {
    pub events: Vec<Event>,
    pub change: SessionChange,
    pub mode: Mode,
    pub cwd: String,
    pub steps: Vec<StepRecord>,
    pub calls: Vec<CallRecord>,
    pub ends: Vec<Value>,
    pub actions: Vec<Action>,
    pub answers: Vec<Answer>,
    pub windows: BTreeMap<String, u64>,
    /// Why the session cannot be repeated.
    pub problems: Vec<String>,
    progress: Progress,
}

/// A model request and its answer.
pub(super) struct StepRecord {
    pub model: String,
    pub request: Option<Request>,
    pub outcome: Option<StepOutcome>,
    /// The step of the script.
    pub answer: Value,
    started: StartedStep,
}

/// The facts from which a request is rebuilt.
#[derive(Default)]
struct StartedStep {
    record: Option<String>,
    conversation: Messages,
    refused: Arc<HashSet<String>>,
}

/// A call of the model.
pub(super) struct CallRecord {
    pub id: ToolCallId,
    /// Its id in the recording.
    pub name: String,
    pub tool: String,
    pub category: Option<ToolCategory>,
    pub input: Value,
    /// True if it was allowed and began to run.
    pub ran: bool,
    pub status: Option<ToolStatus>,
    pub output: Vec<Part>,
    pub content: Vec<ToolContent>,
    pub details: Option<Value>,
    pub permission: Value,
    pub cancelled: bool,
}

/// The state of the fold.
#[derive(Default)]
struct Progress {
    running: bool,
    steps_of_turn: usize,
    open: bool,
    compacting: bool,
    queued: HashSet<MessageId>,
    by_id: HashMap<ToolCallId, usize>,
    /// The calls that were cancelled in this turn.
    cancelled: Vec<usize>,
    asked: HashMap<String, Option<usize>>,
}

impl SessionRecord {
    pub(super) async fn read(sessions: &Sessions, id: &SessionId) -> Result<SessionRecord> {
        let (mut record, mut state) = (SessionRecord::default(), SessionState::default());
        each_event(sessions, id, |event| {
            record.add(event, &state);
            state.apply(event);
            record.events.push(event.clone());
            Ok(())
        })
        .await?;
        if let Some(agent) = state.settings.agent {
            let message = format!("{agent} works in session {id}: only sessions of nuncio's own agent can be recorded");
            return Err(Error::invalid_params(message));
        }
        if state.parent.is_some() {
            return Err(Error::invalid_params(format!("session {id} belongs to a subagent: record the session above it")));
        }
        if state.turn.is_some() {
            return Err(Error::invalid_params(format!("a turn of session {id} is running")).hint("export it when it has ended"));
        }
        record.steps.retain(|step| step.outcome != Some(StepOutcome::Retried));
        for (index, step) in record.steps.iter_mut().enumerate() {
            let StartedStep { record: digest, conversation, refused } = std::mem::take(&mut step.started);
            match rebuilt_request(sessions, id, digest.as_deref(), &conversation, refused).await? {
                RebuiltRequest::Known(known) => step.request = Some(known.1),
                RebuiltRequest::Unknown(why) => return Err(Error::invalid_params(format!("request {}: {why}", index + 1))),
            }
        }
        Ok(record)
    }

    /// Returns the time of the first and of the last event.
    pub(super) fn period(&self) -> (u64, u64) {
        let ends = [self.events.first(), self.events.last()].map(|event| event.map_or(0, |event| event.at_ms));
        (ends[0], ends[1])
    }

    fn add(&mut self, event: &Event, state: &SessionState) {
        match &event.body {
            Body::SessionCreated { cwd, mode, change, .. } => {
                self.cwd = cwd.to_string_lossy().into_owned();
                self.change = change.clone();
                self.mode = mode.clone().known().unwrap_or_default();
            }
            Body::TurnStarted { retries, .. } => {
                (self.progress.running, self.progress.steps_of_turn) = (true, 0);
                self.progress.cancelled.clear();
                if retries.is_some() {
                    self.problems.push("a prompt was retried".into());
                }
            }
            Body::TurnCompleted { stop_reason } => self.end_turn(json!({ "end": "completed", "stopReason": stop_reason })),
            Body::TurnFailed(TurnFailure { code, .. }) => self.end_turn(json!({ "end": "failed", "code": code })),
            Body::TurnCancelled { cause } => {
                if cause.is_none() {
                    self.cancel();
                }
                self.end_turn(json!({ "end": "cancelled", "cause": cause }));
            }
            Body::TurnInterrupted {} => {
                self.problems.push("the process of a turn ended".into());
                self.end_turn(json!({ "end": "interrupted" }));
            }
            Body::StepStarted(StepStart { model, request, .. }) => {
                self.progress.steps_of_turn += 1;
                self.progress.open = true;
                let (conversation, refused) = (state.history.messages(), state.refused.clone());
                let started = StartedStep { record: request.clone(), conversation, refused };
                self.steps.push(StepRecord { model: model.clone(), request: None, outcome: None, answer: json!({}), started });
            }
            Body::StepCompleted(StepEnd { outcome, error, .. }) => self.end_step(*outcome, error.as_deref()),
            Body::UsageUpdated(UsageUpdate { model, usage, context_window, aside: false, .. }) => {
                self.add_usage(model, *usage, *context_window)
            }
            Body::CompactionStarted { .. } => self.progress.compacting = true,
            Body::CompactionCompleted { summary, .. } => {
                self.progress.compacting = false;
                if let (Some(step), Some(summary)) = (self.steps.last_mut(), summary) {
                    step.answer["text"] = summary.clone().into();
                }
            }
            Body::ModeChanged { mode } => {
                if let OptionValue::Known(mode) = mode {
                    self.act(Act::Mode { mode: *mode });
                }
            }
            Body::SessionUpdated { change } => self.change_settings(change),
            Body::MessagesReplaced { .. } => self.problems.push("its messages were replaced".into()),
            Body::MessageEdited { .. } | Body::MessageRemoved { .. } => {
                self.problems.push("a queued message was changed or removed".into());
            }
            body => self.add_part(body),
        }
    }

    /// Adds an event about a message, a call or a permission request.
    fn add_part(&mut self, body: &Body) {
        match body {
            Body::MessageQueued(QueuedMessage { message_id, parts, delivery, auto_run, role: Role::User, .. }) => {
                self.progress.queued.insert(message_id.clone());
                self.act(Act::Message { parts: parts.clone(), delivery: *delivery, auto_run: *auto_run });
            }
            Body::MessageCompleted { message_id, role: Role::User, parts, .. } if !self.progress.queued.remove(message_id) => {
                let act = Act::Prompt { parts: parts.clone() };
                self.actions.push(Action { at: Moment::Turns(self.ends.len()), act });
            }
            Body::MessageCompleted { role: Role::User, .. } => {}
            Body::MessageCompleted { role, parts, discarded: false, .. } if self.progress.open => {
                let name = if *role == Role::Thought { "thinking" } else { "text" };
                if let Some(step) = self.steps.last_mut() {
                    let text = step.answer[name].as_str().unwrap_or_default().to_owned() + &plain_text(parts);
                    step.answer[name] = text.into();
                }
            }
            Body::ToolStarted(ToolStart { tool_call_id, name, input, input_text, category, automatic: false, .. }) => {
                let call = format!("call_{}", self.calls.len() + 1);
                self.progress.by_id.insert(tool_call_id.clone(), self.calls.len());
                if let Some(step) = self.steps.last_mut() {
                    let mut written = json!({ "id": call, "name": name, "input": input });
                    let text = input_text.clone().or_else(|| input.as_str().map(str::to_owned));
                    text.into_iter().for_each(|text| written["input_text"] = text.into());
                    if !step.answer["tool_calls"].is_array() {
                        step.answer["tool_calls"] = json!([]);
                    }
                    step.answer["tool_calls"].as_array_mut().into_iter().for_each(|calls| calls.push(written.clone()));
                }
                self.calls.push(CallRecord::new(tool_call_id, call, name, *category, input));
            }
            Body::ToolUpdated(ToolUpdate { tool_call_id, status: Some(ToolStatus::InProgress), .. }) => {
                self.call(tool_call_id).into_iter().for_each(|call| call.ran = true);
            }
            Body::ToolCompleted(ToolEnd { tool_call_id, status, output, content, details, .. }) => {
                let Some(index) = self.progress.by_id.get(tool_call_id).copied() else { return };
                let call = &mut self.calls[index];
                (call.status, call.output, call.content) = (Some(*status), output.clone(), content.clone());
                call.details = details.clone();
                if *status == ToolStatus::Failed && plain_text(output).lines().any(|line| line.starts_with("cancelled")) {
                    self.progress.cancelled.push(index);
                }
            }
            Body::PermissionRequested(PermissionRequest { permission_id, tool_call_id, .. }) => {
                let index = self.progress.by_id.get(tool_call_id).copied();
                self.progress.asked.insert(permission_id.as_str().into(), index);
            }
            Body::PermissionResolved(PermissionDecision { permission_id, tool_call_id, outcome, reason, by, .. }) => {
                let asked = permission_id.as_ref().and_then(|id| self.progress.asked.remove(id.as_str()));
                let by = match by {
                    Actor::Rule | Actor::Mode | Actor::Deadline | Actor::Disconnect | Actor::Unasked | Actor::VerifyAuto => {
                        by.as_str()
                    }
                    _ => "client",
                };
                if let Some(call) = self.call(tool_call_id) {
                    call.permission = json!({ "outcome": outcome, "by": by });
                }
                if let (Some(index), Some(outcome)) = (asked, option_of(*outcome)) {
                    let call = index.map(|index| self.calls[index].name.clone());
                    self.answers.push(Answer { call, outcome, reason: reason.clone() });
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, id: &ToolCallId) -> Option<&mut CallRecord> {
        self.progress.by_id.get(id).map(|index| &mut self.calls[*index])
    }

    /// Adds what a client did now.
    fn act(&mut self, act: Act) {
        let answered = self.answered();
        let at = match (self.progress.running, self.progress.steps_of_turn) {
            (false, _) => Moment::Turns(self.ends.len()),
            (true, 0) => Moment::Step(answered + 1),
            (true, _) => Moment::Step(answered),
        };
        self.actions.push(Action { at, act });
    }

    /// Returns the number of steps so far that were not sent again.
    fn answered(&self) -> usize {
        self.steps.iter().filter(|step| step.outcome != Some(StepOutcome::Retried)).count()
    }

    /// Adds the cancellation of the turn that ends now: of its last step, or of its running call.
    fn cancel(&mut self) {
        let of_call = self.progress.cancelled.first().copied();
        let at = match (self.steps.last().and_then(|step| step.outcome), of_call) {
            (Some(StepOutcome::Cancelled), _) => Moment::Step(self.answered()),
            (_, Some(index)) => {
                self.progress.cancelled.iter().for_each(|index| self.calls[*index].cancelled = true);
                Moment::Call(self.calls[index].name.clone())
            }
            _ => return self.problems.push("a turn was cancelled between its requests and calls".into()),
        };
        self.actions.push(Action { at, act: Act::Cancel });
    }

    fn end_turn(&mut self, end: Value) {
        self.progress.running = false;
        self.ends.push(end);
    }

    fn end_step(&mut self, outcome: StepOutcome, error: Option<&str>) {
        self.progress.open = false;
        let Some(step) = self.steps.last_mut() else { return };
        // An empty answer is an answer: nuncio asks again with a note.
        let is_empty = outcome == StepOutcome::Retried && error == Some(EMPTY);
        step.outcome = Some(if is_empty { StepOutcome::EndTurn } else { outcome });
        match outcome {
            StepOutcome::MaxTokens => step.answer["stop"] = json!(StopReason::MaxTokens),
            StepOutcome::Refusal => step.answer["stop"] = json!(StopReason::Refusal),
            StepOutcome::Failed => step.answer = json!({ "error": { "status": 400 } }),
            _ => {}
        }
    }

    fn add_usage(&mut self, model: &str, usage: Usage, window: u64) {
        self.windows.insert(model.into(), window);
        if let Some(step) = self.steps.last_mut().filter(|_| self.progress.open) {
            let before: Usage = serde_json::from_value(step.answer["usage"].take()).unwrap_or_default();
            let mut sum = before;
            sum += usage;
            step.answer["usage"] = json!(sum);
        }
    }

    fn change_settings(&mut self, change: &SessionChange) {
        if let Some(model) = &change.model {
            self.act(Act::Model { model: model.clone() });
        }
        if let Some(level) = &change.thinking {
            self.act(Act::Thinking { level: level.to_string() });
        }
        if change.system_prompt.is_some()
            || change.tools.is_some()
            || change.cwd.is_some()
            || change.additional_directories.is_some()
        {
            self.problems.push("its system prompt, tools or directories were changed".into());
        }
    }
}

impl CallRecord {
    fn new(id: &ToolCallId, name: String, tool: &str, category: Option<ToolCategory>, input: &Value) -> CallRecord {
        CallRecord {
            id: id.clone(),
            name,
            tool: tool.into(),
            category,
            input: input.clone(),
            ran: false,
            status: None,
            output: Vec::new(),
            content: Vec::new(),
            details: None,
            permission: Value::Null,
            cancelled: false,
        }
    }
}

/// Returns the option that a client chose.
fn option_of(outcome: PermissionOutcome) -> Option<PermissionOptionKind> {
    match outcome {
        PermissionOutcome::AllowOnce => Some(PermissionOptionKind::AllowOnce),
        PermissionOutcome::AllowAlways => Some(PermissionOptionKind::AllowAlways),
        PermissionOutcome::RejectOnce => Some(PermissionOptionKind::RejectOnce),
        PermissionOutcome::RejectAlways => Some(PermissionOptionKind::RejectAlways),
        PermissionOutcome::Denied | PermissionOutcome::Cancelled => None,
    }
}
