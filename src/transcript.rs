//! The transcript of a session: a fold from events to the blocks that a user interface shows. It
//! prints nothing and does not escape text for a terminal.

mod block;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::content::{
    ALLOW_PROJECT, Cost, PLAN, Part, PermissionOption, PermissionOptionKind, REVIEW, Role, ToolContent, ToolKind, ToolStatus,
    Usage, joined, plain_text,
};
use crate::event::{
    Actor, Body, Event, Notice, PermissionDecision, PermissionOutcome, PermissionRequest, QueuedMessage, Severity, StepEnd,
    StepStart, ToolEnd, ToolStart, ToolUpdate, TurnFailure, UsageUpdate, ignored,
};
use crate::id::{MessageId, PermissionId, ToolCallId};

pub use block::{
    AttachedText, CallPermission, Denial, PermissionQuestion, ToolEndBlock, ToolOutcome, TranscriptBlock, TurnEndReason,
};

/// The state that is folded from events. Events must be added in order, starting at any point of
/// the log. The text of a message appears once, even if it arrives both in deltas and as a whole.
#[derive(Debug, Default)]
pub struct Transcript {
    /// Number of bytes received of each incomplete message.
    received: HashMap<MessageId, usize>,
    /// When the first piece of each incomplete message arrived, in milliseconds.
    message_began_ms: HashMap<MessageId, u64>,
    /// Titles of the running tool calls.
    titles: HashMap<ToolCallId, String>,
    /// Kinds of the running tool calls, and when they started or were allowed, in milliseconds.
    began: HashMap<ToolCallId, (ToolKind, u64)>,
    /// Answers that allowed running tool calls.
    permissions: HashMap<ToolCallId, CallPermission>,
    /// The files that the running tool calls named at their start.
    paths: HashMap<ToolCallId, Vec<PathBuf>>,
    /// Running tool calls whose content is shown by other blocks.
    shown: HashSet<ToolCallId>,
    /// Changes that permission requests of the turn showed.
    proposed: HashMap<ToolCallId, Vec<ToolContent>>,
    /// Names of the options of the open permission requests that hold for the whole session.
    lasting: HashMap<PermissionId, Vec<PermissionOption>>,
    /// Running tool calls that were denied.
    denied: HashSet<ToolCallId>,
    /// Usage and cost of the running turn.
    usage: Option<Usage>,
    cost: Option<Cost>,
    /// When the running turn started, in milliseconds since the Unix epoch.
    started_ms: Option<u64>,
    /// Estimated size of the conversation before the running compaction, in tokens.
    compacted_from: Option<u64>,
}

impl Transcript {
    /// Adds an event and returns the changes.
    pub fn apply<'a>(&mut self, event: &'a Event) -> Vec<TranscriptBlock<'a>> {
        let block = match &event.body {
            Body::MessageDelta { message_id, role, offset, text } => {
                self.message_began_ms.entry(message_id.clone()).or_insert(event.at_ms);
                self.delta(message_id, *role, *offset as usize, text)
            }
            Body::MessageCompleted { role: Role::Custom, parts, extra, .. } => {
                let text = parts.iter().find_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None });
                let title = extra.custom_type.as_deref().unwrap_or("custom");
                Some(TranscriptBlock::Notice { severity: Severity::Info, title, description: text })
            }
            Body::MessageCompleted { message_id, role, parts, discarded, .. } => {
                return self.message(message_id, *role, parts, *discarded, event.at_ms);
            }
            Body::ToolInput { name, bytes, path } => {
                Some(TranscriptBlock::ToolInput { name, bytes: *bytes, path: path.as_deref() })
            }
            Body::ToolStarted(ToolStart { tool_call_id, name, title, kind, locations, .. }) => {
                self.paths.insert(tool_call_id.clone(), locations.iter().map(|location| location.path.clone()).collect());
                self.began.insert(tool_call_id.clone(), (*kind, event.at_ms));
                self.tool_started(tool_call_id, name, title, *kind)
            }
            Body::ToolCompleted(end) => Some(self.tool_completed(end, event.at_ms)),
            Body::PermissionRequested(PermissionRequest {
                permission_id, tool_call_id, tool, content, options, review, ..
            }) => {
                let is_done = tool.as_ref().is_some_and(|tool| tool.name == REVIEW);
                let has_parts = review.is_some() && !is_done;
                self.asked(permission_id, tool_call_id, content, options, has_parts);
                // The title of a call of a subagent names the subagent.
                let title = tool.as_ref().map(|tool| &tool.title).or_else(|| self.titles.get(tool_call_id)).cloned();
                let (id, call) = (permission_id, tool_call_id);
                Some(TranscriptBlock::Question(PermissionQuestion { id, call, title, content, options, review, is_done }))
            }
            body @ Body::PermissionResolved { .. } => self.decided(body, event.at_ms),
            Body::PlanUpdated { entries } => Some(TranscriptBlock::Plan(entries)),
            body if body.is_context() => None,
            Body::Notice(Notice { severity, title, description, .. }) => {
                Some(TranscriptBlock::Notice { severity: *severity, title, description: description.as_deref() })
            }
            Body::ToolUpdated(ToolUpdate { tool_call_id: id, content, change, .. }) => {
                self.tool_updated(id, change.title.as_deref(), content.as_deref())
            }
            Body::HookCompleted { tool_call_id: Some(id), changed: Some(changed), .. } => {
                if let Some(title) = self.titles.get_mut(id) {
                    title.clone_from(&changed.title);
                }
                None
            }
            body => self.work(body, event.at_ms),
        };
        block.into_iter().collect()
    }

    /// Adds an event about the work of the session besides its messages and calls.
    fn work<'a>(&mut self, body: &'a Body, at_ms: u64) -> Option<TranscriptBlock<'a>> {
        match body {
            Body::UsageUpdated(UsageUpdate { usage, cost, context_tokens, context_window, aside, .. }) => {
                self.add(Some(*usage), *cost);
                let (context_tokens, context_window) = (*context_tokens, *context_window);
                (!aside).then(|| TranscriptBlock::Usage { turn: self.usage.unwrap_or_default(), context_tokens, context_window })
            }
            Body::TurnStarted { .. } => {
                (self.usage, self.cost, self.started_ms) = (None, None, Some(at_ms));
                Some(TranscriptBlock::TurnStart)
            }
            body @ (Body::TurnCompleted { .. }
            | Body::TurnFailed { .. }
            | Body::TurnCancelled { .. }
            | Body::TurnInterrupted {}) => Some(self.turn_end(turn_end_reason(body), at_ms)),
            Body::StepStarted(StepStart { model, .. }) => Some(TranscriptBlock::Request { model }),
            Body::StepCompleted(StepEnd { retry_at_ms, .. }) => retry_at_ms.map(|at_ms| TranscriptBlock::Retry { at_ms }),
            Body::CompactionStarted { context_tokens, .. } => {
                self.compacted_from = Some(*context_tokens);
                Some(TranscriptBlock::CompactionStart)
            }
            Body::CompactionCompleted { outcome, context_tokens, error, .. } => {
                let (before, error) = (self.compacted_from.take(), error.as_deref());
                Some(TranscriptBlock::CompactionEnd { outcome: *outcome, before, after: *context_tokens, error })
            }
            Body::ChildStarted { child, .. } => Some(TranscriptBlock::SubagentStart(child)),
            Body::ChildCompleted { child, end } => {
                self.add(end.usage, end.cost);
                Some(TranscriptBlock::SubagentEnd(child, end))
            }
            Body::VerifyCompleted { round, passed, .. } => Some(TranscriptBlock::Checks { round: *round, passed: *passed }),
            Body::MessageQueued(QueuedMessage { message_id: id, parts, delivery, .. }) => {
                Some(TranscriptBlock::Queued { id, text: plain_text(parts), delivery: *delivery })
            }
            Body::MessageEdited { message_id: id, parts, delivery, .. } => {
                Some(TranscriptBlock::QueuedChange { id, text: parts.as_deref().map(plain_text), delivery: *delivery })
            }
            Body::MessageRemoved { message_id: id, .. } => Some(TranscriptBlock::Unqueued { id }),
            Body::ModeChanged { mode } => Some(TranscriptBlock::ModeChange(mode)),
            Body::VerifyStarted { .. } | Body::Unknown(_) => None,
            ignored!(Session | Message | Replacement | Tool | Permission | Plan | Pruning) => None,
            ignored!(Agent | Hook | Budget | Notice) => None,
        }
    }

    /// Returns the new part of a piece of message text. A piece after a gap is ignored, because the
    /// completed message contains its text.
    fn fresh<'a>(&mut self, id: &MessageId, offset: usize, text: &'a str) -> Option<&'a str> {
        let received = self.received.entry(id.clone()).or_default();
        let fresh = text.get(received.checked_sub(offset)?..).filter(|fresh| !fresh.is_empty())?;
        *received = offset + text.len();
        Some(fresh)
    }

    fn delta<'a>(&mut self, id: &'a MessageId, role: Role, offset: usize, text: &'a str) -> Option<TranscriptBlock<'a>> {
        let thought = is_thought(role)?;
        Some(TranscriptBlock::MessageText { id, thought, text: self.fresh(id, offset, text)?.into() })
    }

    fn message<'a>(
        &mut self,
        id: &'a MessageId,
        role: Role,
        parts: &[Part],
        discarded: bool,
        at_ms: u64,
    ) -> Vec<TranscriptBlock<'a>> {
        let Some(thought) = is_thought(role) else {
            return (role == Role::User).then(|| user_message(parts)).into_iter().collect();
        };
        let text = plain_text(parts);
        let fresh = self.fresh(id, 0, &text).map(|fresh| fresh.to_string());
        self.received.remove(id);
        let duration = self.message_began_ms.remove(id).map(|began| Duration::from_millis(at_ms.saturating_sub(began)));
        let rest = fresh.map(|text| TranscriptBlock::MessageText { id, thought, text: text.into() });
        rest.into_iter().chain([TranscriptBlock::MessageEnd { id, thought, text, discarded, duration }]).collect()
    }

    /// Handles the decision on a call: an answer, or the result of a rule or the mode.
    fn decided<'a>(&mut self, body: &'a Body, at_ms: u64) -> Option<TranscriptBlock<'a>> {
        let Body::PermissionResolved(PermissionDecision { permission_id, tool_call_id, tool, outcome, by, reason, rule }) = body
        else {
            return None;
        };
        let choice = permission_id.as_ref().and_then(|id| self.lasting_choice(id, *outcome, rule.as_ref()));
        let title = tool.as_ref().map(|tool| &tool.title).or_else(|| self.titles.get(tool_call_id)).cloned();
        let title = title.unwrap_or_default();
        if outcome.allows() {
            self.began.entry(tool_call_id.clone()).and_modify(|(_, began)| *began = at_ms);
            if permission_id.is_some() {
                let permission = CallPermission { by: by.clone(), choice: choice.clone() };
                self.permissions.insert(tool_call_id.clone(), permission);
            }
            return choice.map(|choice| TranscriptBlock::Granted { call: tool_call_id, title, choice });
        }
        let cancelled = *outcome == PermissionOutcome::Cancelled;
        if !cancelled {
            self.denied.insert(tool_call_id.clone());
        }
        let decided = || match by {
            Actor::Rule => "by a rule in the settings".into(),
            Actor::Mode => "by the mode of the session".into(),
            Actor::Terminal => "by you".into(),
            by => format!("by {by}").into(),
        };
        let mut reason = reason.as_deref().map_or_else(decided, Cow::from);
        if let Some(choice) = choice {
            reason = format!("{reason} ({choice})").into();
        }
        let paths = self.paths.get(tool_call_id).cloned().unwrap_or_default();
        let category = tool.as_ref().and_then(|tool| tool.category);
        Some(TranscriptBlock::Denied(Denial { id: tool_call_id, title, cancelled, reason, by, paths, category }))
    }

    /// Records what a permission request showed and offered. `has_parts`: the answer may decide
    /// about parts of the changes.
    fn asked(
        &mut self,
        id: &PermissionId,
        call: &ToolCallId,
        content: &[ToolContent],
        options: &[PermissionOption],
        has_parts: bool,
    ) {
        let is_diff = |content: &&ToolContent| matches!(content, ToolContent::Diff { .. });
        let diffs: Vec<ToolContent> = content.iter().filter(is_diff).cloned().collect();
        if has_parts {
            self.proposed.insert(call.clone(), diffs);
        } else if !diffs.is_empty() {
            self.shown.insert(call.clone());
        }
        let lasts = |option: &&PermissionOption| {
            matches!(option.kind, PermissionOptionKind::AllowAlways | PermissionOptionKind::RejectAlways)
        };
        let lasting = options.iter().filter(lasts).cloned().collect();
        self.lasting.insert(id.clone(), lasting);
    }

    /// Returns the name of the chosen option if it holds for the whole session or longer.
    fn lasting_choice(&mut self, id: &PermissionId, outcome: PermissionOutcome, rule: Option<&Value>) -> Option<String> {
        let lasting = self.lasting.remove(id)?;
        let in_settings = rule.is_some_and(|rule| !rule["directory"].is_null());
        let kind = match outcome {
            PermissionOutcome::AllowAlways => PermissionOptionKind::AllowAlways,
            PermissionOutcome::RejectAlways => PermissionOptionKind::RejectAlways,
            PermissionOutcome::AllowOnce
            | PermissionOutcome::RejectOnce
            | PermissionOutcome::Denied
            | PermissionOutcome::Cancelled => return None,
        };
        let is_chosen = |option: &PermissionOption| option.kind == kind && (option.option_id == ALLOW_PROJECT) == in_settings;
        lasting.into_iter().find(is_chosen).map(|option| option.name)
    }

    fn tool_started<'a>(&mut self, id: &'a ToolCallId, name: &str, title: &'a str, kind: ToolKind) -> Option<TranscriptBlock<'a>> {
        if name == PLAN {
            self.shown.insert(id.clone());
            return None;
        }
        self.titles.insert(id.clone(), title.into());
        Some(TranscriptBlock::ToolStart { id, title, kind })
    }

    fn tool_completed<'a>(&mut self, end: &'a ToolEnd, at_ms: u64) -> TranscriptBlock<'a> {
        let ToolEnd { tool_call_id: id, status, content: whole, details, .. } = end;
        let (status, code) = (*status, details.as_ref().and_then(|details| details["exitCode"].as_i64()));
        let title = self.titles.remove(id).unwrap_or_default();
        self.paths.remove(id);
        let began = self.began.remove(id);
        let duration = began.map(|(_, began)| Duration::from_millis(at_ms.saturating_sub(began)));
        let (kind, permission, details) = (began.map(|(kind, _)| kind), self.permissions.remove(id), details.as_ref());
        let outcome = match (status, code) {
            (ToolStatus::Failed, _) => ToolOutcome::Failed,
            (_, Some(code)) => ToolOutcome::Exited(code),
            _ => ToolOutcome::Completed,
        };
        let is_completed = status == ToolStatus::Completed;
        let (proposed, is_denied) = (self.proposed.remove(id).unwrap_or_default(), self.denied.remove(id));
        let has_all = is_completed && proposed.iter().all(|change| whole.contains(change));
        let content: Vec<&ToolContent> = whole.iter().filter(|content| !(has_all && proposed.contains(content))).collect();
        let is_shown = self.shown.remove(id);
        let already_shown = match status {
            ToolStatus::Completed => is_shown || (has_all && content.is_empty() && !proposed.is_empty()),
            _ => is_denied,
        };
        let proposed = if has_all || !is_completed { Vec::new() } else { proposed };
        TranscriptBlock::ToolEnd(ToolEndBlock {
            id,
            title,
            outcome,
            kind,
            details,
            duration,
            permission,
            is_denied,
            whole,
            content,
            proposed,
            already_shown,
        })
    }

    /// Updates the title of a call. Returns its content so far if that changed, unless other blocks
    /// show it.
    fn tool_updated<'a>(
        &mut self,
        id: &'a ToolCallId,
        title: Option<&str>,
        content: Option<&'a [ToolContent]>,
    ) -> Option<TranscriptBlock<'a>> {
        let known = self.titles.get_mut(id)?;
        if let Some(title) = title {
            title.clone_into(known);
        }
        Some(TranscriptBlock::ToolProgress { id, title: known.clone(), content: content? })
    }

    /// Adds what a model request or a subagent used.
    fn add(&mut self, usage: Option<Usage>, cost: Option<Cost>) {
        if let Some(usage) = usage {
            *self.usage.get_or_insert_default() += usage;
        }
        self.cost = Cost::sum(self.cost, cost);
    }

    fn turn_end<'a>(&mut self, reason: TurnEndReason<'a>, at_ms: u64) -> TranscriptBlock<'a> {
        self.proposed.clear();
        self.lasting.clear();
        let duration = self.started_ms.take().map(|started| Duration::from_millis(at_ms.saturating_sub(started)));
        TranscriptBlock::TurnEnd { reason, usage: self.usage.take(), cost: self.cost.take(), duration }
    }
}

/// Returns how a turn ended, from the event that ends it.
fn turn_end_reason(body: &Body) -> TurnEndReason<'_> {
    match body {
        Body::TurnCompleted { stop_reason } => TurnEndReason::Stopped(*stop_reason),
        Body::TurnFailed(TurnFailure { message, hint, .. }) => TurnEndReason::Failed { message, hint: hint.as_deref() },
        Body::TurnCancelled { cause: Some(_) } => TurnEndReason::Unanswered,
        Body::TurnCancelled { cause: None } => TurnEndReason::Cancelled,
        _ => TurnEndReason::Interrupted,
    }
}

/// Returns whether a message from the model is a thought, or `None` for a message to the model.
fn is_thought(role: Role) -> Option<bool> {
    match role {
        Role::Assistant => Some(false),
        Role::Thought => Some(true),
        Role::User | Role::System | Role::Custom => None,
    }
}

fn user_message(parts: &[Part]) -> TranscriptBlock<'static> {
    let (mut texts, mut attached) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Resource { uri, text, .. } => attached.push(AttachedText { uri: uri.clone(), lines: text.lines().count() }),
            part => texts.push(part.as_text()),
        }
    }
    TranscriptBlock::UserMessage { text: joined(texts).into_owned(), attached }
}
