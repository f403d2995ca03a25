//! Converts what a hosted agent reports during a turn to events of the session. Messages and tool
//! calls are inserted or updated by their ids, because agents update calls that they did not
//! announce.

use std::collections::HashMap;

use serde_json::Value;
use tokio::sync::Notify;

use super::call::{Call, CallUpdate};
use super::turn_environment::TurnEnvironment;
use super::turn_size::{BoundedTurn, TurnBytes, bounded, truncate};
use crate::content::{CallDetails, Cost, Part, PlanEntry, Role, ToolContent, ToolKind, ToolStatus, Usage};
use crate::event::{Body, MessageExtra, Severity, ToolChange, ToolEnd, ToolStart, ToolUpdate, UsageUpdate};
use crate::id::{MessageId, ToolCallId};
use crate::limits;
use crate::session::Turn;

/// A message that the agent is writing.
struct Text {
    id: MessageId,
    /// The id that the agent gave.
    given: Option<String>,
    role: Role,
    text: String,
}

/// Records what the agent does in a turn.
pub(super) struct TurnEvents<'a> {
    recorded: BoundedTurn<'a>,
    /// Receives a notification for each report of usage.
    usage_reports: &'a Notify,
    /// The usage of each request is recorded, not only that of the turn.
    pub counts_requests: bool,
    environment: &'a TurnEnvironment<'a>,
    text: Option<Text>,
    calls: HashMap<String, Call>,
    /// Ids of the calls, in the order of their first report.
    order: Vec<String>,
    /// True if something was recorded.
    active: bool,
    /// The prompt compacts the conversation: the agent need not answer.
    pub compacts: bool,
}

impl<'a> TurnEvents<'a> {
    pub(super) fn new(turn: &'a Turn, usage_reports: &'a Notify, environment: &'a TurnEnvironment<'a>) -> TurnEvents<'a> {
        let (recorded, calls, order) = (BoundedTurn::new(turn), HashMap::new(), Vec::new());
        TurnEvents {
            recorded,
            usage_reports,
            counts_requests: false,
            environment,
            text: None,
            calls,
            order,
            active: false,
            compacts: false,
        }
    }

    /// Returns whether the agent did what the prompt requires: it reported something, or the prompt
    /// needs no answer.
    pub(super) fn is_answered(&self) -> bool {
        self.active || self.compacts
    }

    /// Returns the turn whose events are recorded.
    pub(super) fn turn(&self) -> &'a Turn {
        self.recorded.turn
    }

    /// Returns the size of the recorded events, to which other events of the turn are added.
    pub(super) fn bytes(&self) -> TurnBytes {
        self.recorded.bytes.clone()
    }

    /// Adds text to the message with this role and id, or starts it.
    pub(super) async fn text(&mut self, role: Role, given: Option<&str>, text: &str) {
        let continues = |open: &Text| open.role == role && (given.is_none() || open.given.as_deref() == given);
        if !self.text.as_ref().is_some_and(continues) {
            self.end_text().await;
        }
        let text = self.recorded.fitting(text);
        if text.is_empty() {
            return;
        }
        self.active = true;
        let open = self.text.get_or_insert_with(|| Text {
            id: MessageId::new(),
            given: given.map(String::from),
            role,
            text: String::new(),
        });
        let offset = open.text.len() as u64;
        open.text.push_str(text);
        let is_long = open.text.len() >= limits::AGENT_MESSAGE_BYTES_MAX;
        let delta = Body::MessageDelta { message_id: open.id.clone(), role, offset, text: text.into() };
        self.recorded.emit(delta).await;
        if is_long {
            self.end_text().await;
        }
    }

    /// Records a part of a message that is not text.
    pub(super) async fn part(&mut self, role: Role, part: Part) {
        if self.recorded.is_exceeded() {
            return;
        }
        self.end_text().await;
        self.active = true;
        self.message(MessageId::new(), role, part).await;
    }

    /// Ends the message that the agent is writing.
    pub(super) async fn end_text(&mut self) {
        if let Some(Text { id, role, text, .. }) = self.text.take() {
            self.message(id, role, Part::text(text)).await;
        }
    }

    async fn message(&self, message_id: MessageId, role: Role, part: Part) {
        let (parts, extra) = (vec![part], MessageExtra::default());
        let message = Body::MessageCompleted { message_id, role, parts, discarded: false, provider_state: None, extra };
        self.recorded.emit(message).await;
    }

    /// Returns the call with an id if it has not ended.
    pub(super) fn open_call(&self, given: &str) -> Option<&Call> {
        self.calls.get(given).filter(|call| !call.ended)
    }

    pub(super) fn find_open_call(&self, fits: impl Fn(&Call) -> bool) -> Option<&Call> {
        self.calls.values().find(|call| !call.ended && fits(call))
    }

    /// Records the update of a call. A call with an unknown id is announced first.
    pub(super) async fn call(&mut self, given: &str, update: CallUpdate) {
        if self.recorded.is_exceeded() {
            return;
        }
        self.active = true;
        let Some(call) = self.calls.get_mut(given) else {
            self.end_text().await;
            return self.announce(given, update).await;
        };
        if call.ended {
            return;
        }
        let CallUpdate { change, status, content, output, more_output } = update;
        call.has_kind |= change.kind.is_some();
        let ToolChange { title, kind, input, locations } = change;
        let change = ToolChange {
            title: title.filter(|title| !title.is_empty() && *title != call.title),
            kind: kind.filter(|kind| *kind != call.details.kind),
            input: input.filter(|input| *input != call.details.input),
            locations: locations.filter(|locations| *locations != call.details.locations),
        };
        let content = content.map(bounded).filter(|content| *content != call.details.content);
        let ToolChange { title, kind, input, locations } = change.clone();
        call.title = title.unwrap_or_else(|| std::mem::take(&mut call.title));
        call.details.kind = kind.unwrap_or(call.details.kind);
        call.details.input = input.unwrap_or_else(|| call.details.input.take());
        call.details.locations = locations.unwrap_or_else(|| std::mem::take(&mut call.details.locations));
        call.output = output.or(call.output.take());
        if let Some(more) = more_output {
            let output = call.output.get_or_insert_default();
            // A longer output is truncated at the end of the call.
            output.push_str(if output.len() > limits::AGENT_OUTPUT_BYTES_MAX { "" } else { &more });
        }
        if let Some(content) = &content {
            call.details.content.clone_from(content);
        }
        let starts = status == Some(ToolStatus::InProgress) && !std::mem::replace(&mut call.running, true);
        let ends = matches!(status, Some(ToolStatus::Completed | ToolStatus::Failed));
        let content = content.filter(|content| ends || self.recorded.records_unfinished(content));
        if starts || !change.is_empty() || (content.is_some() && !ends) {
            let status = starts.then_some(ToolStatus::InProgress);
            let update = Body::ToolUpdated(ToolUpdate { tool_call_id: call.id.clone(), status, content, change });
            self.recorded.emit(update).await;
        }
        if let Some(status) = status.filter(|_| ends) {
            self.end_call(given, status, None).await;
        }
    }

    async fn announce(&mut self, given: &str, update: CallUpdate) {
        let taken = given.is_empty() || self.turn().log.state(|state| state.history.has_call(given));
        let id = if taken { ToolCallId::new() } else { given.into() };
        let ToolChange { title, kind, input, locations } = update.change;
        let call = Call {
            id: id.clone(),
            title: title.filter(|title| !title.is_empty()).unwrap_or_else(|| "tool call".into()),
            details: CallDetails {
                kind: kind.unwrap_or(ToolKind::Other),
                input: input.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
                locations: locations.unwrap_or_default(),
                content: Vec::new(),
            },
            has_kind: kind.is_some(),
            output: None,
            running: false,
            ended: false,
        };
        let started = ToolStart::new(id, call.label(), call.details.kind, call.details.input.clone());
        let started = ToolStart { locations: call.details.locations.clone(), ..started };
        self.recorded.emit(Body::ToolStarted(started)).await;
        self.calls.insert(given.into(), call);
        self.order.push(given.into());
        Box::pin(self.call(given, CallUpdate { change: ToolChange::default(), ..update })).await;
    }

    /// Ends a call. `problem` is the result of a call whose end the agent did not report.
    pub(super) async fn end_call(&mut self, given: &str, status: ToolStatus, problem: Option<&str>) {
        let Some(call) = self.calls.get_mut(given).filter(|call| !call.ended) else { return };
        call.ended = true;
        call.decode_result();
        let shown = call.details.content.iter().filter_map(|content| match content {
            ToolContent::Content { content } => Some(content.as_text().into_owned()),
            ToolContent::Diff { .. } | ToolContent::Terminal { .. } => None,
        });
        let shown: Vec<String> = shown.collect();
        let mut text = match (&call.output, shown.is_empty()) {
            (Some(output), true) => output.clone(),
            _ => shown.join("\n"),
        };
        truncate(&mut text, limits::AGENT_OUTPUT_BYTES_MAX);
        if shown.is_empty() && !text.is_empty() {
            call.details.content.push(ToolContent::text(&text));
        }
        if let Some(problem) = problem {
            call.details.content.push(ToolContent::text(problem));
            text = if text.is_empty() { problem.into() } else { format!("{text}\n{problem}") };
        }
        let tool = call.hook_tool();
        let completed = Body::ToolCompleted(ToolEnd {
            tool_call_id: call.id.clone(),
            tool: Some(call.label()),
            status,
            output: vec![Part::text(&text)],
            content: std::mem::take(&mut call.details.content),
            locations: call.details.locations.clone(),
            details: None,
            effect: problem.map(|_| "unknown".into()),
        });
        // The id is kept, so that later updates of the call are ignored.
        if call.details.kind == ToolKind::Edit {
            self.environment.announced.lock().extend(call.paths());
        }
        (call.details.input, call.output) = (Value::Null, None);
        let ran_denied = status == ToolStatus::Completed && self.environment.denied.lock().contains(&call.id);
        let title = call.title.clone();
        self.recorded.emit(completed).await;
        if ran_denied {
            self.notice(Severity::Warning, "The agent reports that it ran a denied call", title).await;
        }
        if problem.is_none() {
            self.environment.after_call(tool, status, text).await;
        }
    }

    /// Records the plan of the agent.
    pub(super) async fn plan(&mut self, mut entries: Vec<PlanEntry>) {
        if self.recorded.is_exceeded() {
            return;
        }
        entries.truncate(limits::AGENT_ITEMS_MAX);
        self.active = true;
        self.recorded.emit(Body::PlanUpdated { entries }).await;
    }

    /// Records usage. `cost` is the cost since the last report.
    pub(super) async fn usage(&self, model: String, usage: Usage, cost: Option<Cost>, context: (u64, u64)) {
        let (context_tokens, context_window) = context;
        self.recorded
            .commit(Body::UsageUpdated(UsageUpdate { model, usage, cost, context_tokens, context_window, aside: false }))
            .await;
        self.usage_reports.notify_one();
    }

    /// Records a notice of the agent.
    pub(super) async fn notice(&self, severity: Severity, title: impl Into<String>, description: impl Into<String>) {
        self.recorded.emit(Body::notice(severity, title, description)).await;
    }

    /// Reports that the agent has compacted the conversation, if it did not report that itself.
    pub(super) async fn report_compaction(&self) {
        if self.compacts && !self.active {
            self.notice(Severity::Info, "The agent has replaced its conversation by a summary", "").await;
        }
    }

    /// Ends the open message, and the open calls with an unknown effect.
    pub(super) async fn close(&mut self, why: &str) {
        self.end_text().await;
        for given in std::mem::take(&mut self.order) {
            self.end_call(&given, ToolStatus::Failed, Some(why)).await;
        }
    }
}
