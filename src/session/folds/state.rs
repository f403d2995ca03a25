//! The state of a session: a fold over its events, without side effects.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::budget::BudgetState;
use super::open_items::{OpenAgentProcess, OpenCheck, OpenMessage, OpenPermission, OpenTool, interrupted_step};
use super::queued_messages::QueuedMessages;
use super::shown_files::ShownFiles;
use super::signed_event::{SignedEvent, parse_rules};
use super::turns::TurnRecords;
use crate::config::Rule;
use crate::content::{Cost, Part, PlanEntry, Role};
use crate::context::history::History;
use crate::event::{
    Actor, Body, ChangedCall, ChildEnd, ChildLabel, ChildStatus, CompactionOutcome, DELEGATION, Event, HOOK_FAILED, MessageExtra,
    Notice, PermissionDecision, PermissionOutcome, SessionChange, SessionParent, StepEnd, StepStart, ToolEnd, ToolUpdate,
    UsageUpdate, ignored,
};
use crate::id::{MessageId, PermissionId, ToolCallId, TurnId};
use crate::options::{Mode, OptionValue};
use crate::permission::git_acts::GitActs;
use crate::session::message::IncomingMessage;

/// Number of resolved permission requests per session whose outcome a late answer receives.
const PERMISSIONS_RESOLVED_KEPT: usize = 16;

/// The state of a session after the events that were added to it.
#[derive(Clone, Debug, Default)]
pub struct SessionState {
    pub cwd: PathBuf,
    /// The settings, apart from `cwd` and `budget`.
    pub settings: SessionChange,
    /// The mode, which may be a mode of a hosted agent.
    pub mode: OptionValue<Mode>,
    /// The tool call of another session that created this session.
    pub parent: Option<Box<SessionParent>>,
    /// Milliseconds since the Unix epoch.
    pub created_ms: u64,
    pub updated_ms: u64,
    pub deleted: bool,
    /// The running turn.
    pub turn: Option<TurnId>,
    pub turns: TurnRecords,
    /// Queued messages, oldest first.
    pub queue: QueuedMessages,
    /// The running model request.
    pub open_step: Option<StepEnd>,
    /// Incomplete messages, with their text so far.
    pub open_messages: Vec<OpenMessage>,
    /// Tool calls without a result.
    pub open_tools: Vec<OpenTool>,
    pub open_permissions: Vec<OpenPermission>,
    /// The running checks of the turn.
    pub open_check: Option<OpenCheck>,
    /// The running subagents of the session.
    pub open_children: Vec<ChildLabel>,
    /// The process of the hosted agent that the session uses.
    pub agent_process: Option<OpenAgentProcess>,
    /// The permission requests that were resolved last, newest first.
    pub resolved_permissions: VecDeque<ResolvedPermission>,
    pub plan: Vec<PlanEntry>,
    /// The titles of the notices about hooks whose failures have no effect.
    pub failed_hooks: BTreeSet<String>,
    /// Permission rules created by `always` answers, oldest first.
    pub rules: Vec<Rule>,
    pub context_tokens: u64,
    /// True while a compaction runs.
    pub compacting: bool,
    pub budget: BudgetState,
    pub history: History,
    /// The files whose whole content the model knows.
    pub(crate) shown_files: Arc<ShownFiles>,
    /// The acts of git that the user's messages ask for.
    pub asked_git_acts: GitActs,
    /// Digests of the parts of the conversation that a provider refused.
    pub refused: Arc<HashSet<String>>,
    /// The last event that changed what the session may do.
    pub(in crate::session) signed: SignedEvent,
}

/// A permission request that has ended, and who ended it.
#[derive(Clone, Debug)]
pub struct ResolvedPermission {
    pub id: PermissionId,
    pub outcome: PermissionOutcome,
    pub by: Actor,
}

impl SessionState {
    /// Adds an event. Events must be added in the order of the log.
    pub fn apply(&mut self, event: &Event) {
        self.apply_to_fields(event);
        self.queue.apply(event);
        self.budget.apply(event);
        self.turns.apply(event);
        self.history.apply(event);
        ShownFiles::apply(&mut self.shown_files, event);
        self.heed(event);
    }

    /// Copies the parts of which the summary of the session consists.
    pub(in crate::session) fn activity(&self) -> SessionState {
        SessionState {
            settings: SessionChange {
                agent: self.settings.agent.clone(),
                origin: self.settings.origin.clone(),
                ..SessionChange::default()
            },
            turns: self.turns.newest(),
            open_tools: self.open_tools.clone(),
            open_permissions: self.open_permissions.clone(),
            ..SessionState::default()
        }
    }

    /// Adds an event to the fields that are not folds of their own.
    pub(in crate::session) fn apply_to_fields(&mut self, event: &Event) {
        if event.body.updates_session() {
            self.updated_ms = event.at_ms;
        }
        self.signed.apply(event);
        match &event.body {
            Body::SessionCreated { cwd, mode, change, parent, .. } => {
                (self.created_ms, self.cwd, self.mode) = (event.at_ms, cwd.clone(), mode.clone());
                self.change(change);
                self.parent = parent.clone().map(Box::new);
                self.rules = parse_rules(parent.as_ref().map_or(&[], |parent| &parent.rules));
            }
            Body::SessionUpdated { change } => self.change(change),
            Body::SessionGranted { mode, change, parent, rules, .. } => {
                self.forget_grants();
                self.mode = mode.clone();
                self.change(change);
                self.parent = parent.clone();
                self.rules = parse_rules(rules);
            }
            Body::SessionDeleted {} => self.deleted = true,
            Body::TurnStarted { .. } => self.turn = event.turn_id.clone(),
            Body::TurnCompleted { .. } | Body::TurnFailed { .. } | Body::TurnCancelled { .. } | Body::TurnInterrupted {} => {
                (self.turn, self.open_step) = (None, None);
            }
            Body::StepStarted(StepStart { step, model, .. }) => self.open_step = Some(interrupted_step(*step, model)),
            Body::StepCompleted { .. } => self.open_step = None,
            Body::MessageDelta { message_id, role, text, .. } => self.delta(message_id, *role, text),
            Body::MessageCompleted { message_id, .. } => self.open_messages.retain(|open| open.id != *message_id),
            Body::ToolStarted(call) => self.open_tools.push(OpenTool::new(call)),
            Body::ToolUpdated(ToolUpdate { tool_call_id: id, status, change, .. }) => {
                if let Some(open) = self.open_tools.iter_mut().find(|open| open.has_id(id)) {
                    open.update(*status, change, event.at_ms);
                }
            }
            Body::HookCompleted { tool_call_id: Some(id), changed: Some(changed), .. } => self.change_call(id, changed),
            Body::ToolCompleted(ToolEnd { tool_call_id, .. }) => self.open_tools.retain(|open| !open.has_id(tool_call_id)),
            Body::PermissionRequested(request) => self.open_permissions.push(OpenPermission::new(request, event.seq)),
            Body::PermissionUpdated { permission_id, deadline_ms } => {
                let open = self.open_permissions.iter_mut().find(|open| open.has_id(permission_id));
                open.into_iter().for_each(|open| open.request.deadline_ms = *deadline_ms);
            }
            Body::PermissionResolved(PermissionDecision { permission_id: Some(id), outcome, rule, by, .. }) => {
                self.resolved(id, *outcome, rule.as_ref(), by)
            }
            Body::PermissionForgotten { rule, .. } => self.forget(rule),
            Body::PlanUpdated { entries } => self.plan = entries.clone(),
            Body::UsageUpdated(update) => self.add_usage(update),
            Body::CompactionStarted { .. } => self.compacting = true,
            Body::CompactionCompleted { context_tokens, .. } => {
                self.compacting = false;
                self.context_tokens = context_tokens.unwrap_or(self.context_tokens);
            }
            Body::VerifyStarted { tool_call_id, round, .. } => {
                self.open_check = Some(OpenCheck { tool_call_id: tool_call_id.clone(), round: *round });
            }
            Body::VerifyCompleted { .. } => self.open_check = None,
            Body::ChildStarted { child, .. } => self.open_children.push(child.clone()),
            Body::ChildCompleted { child, .. } => {
                self.open_children.retain(|open| open.child_session_id != child.child_session_id);
            }
            Body::AgentStarted { .. } | Body::AgentEnded { .. } => OpenAgentProcess::apply(&mut self.agent_process, &event.body),
            Body::RequestRepaired { parts } => Arc::make_mut(&mut self.refused).extend(parts.iter().cloned()),
            Body::ModeChanged { mode } => self.mode = mode.clone(),
            Body::Notice(Notice { title, code: Some(code), .. }) if code == HOOK_FAILED => {
                self.failed_hooks.insert(title.clone());
            }
            Body::SessionClosed {}
            | Body::ToolInput { .. }
            | Body::PermissionResolved(PermissionDecision { permission_id: None, .. })
            | Body::HookCompleted { .. }
            | Body::ContextPruned { .. }
            | Body::Notice { .. }
            | Body::Unknown(_)
            | ignored!(Replacement | Queue | Budget) => {}
        }
    }

    /// Closes a permission request and adds the rule of an "always" answer. A rule that this
    /// version cannot parse is ignored.
    fn resolved(&mut self, id: &PermissionId, outcome: PermissionOutcome, rule: Option<&Value>, by: &Actor) {
        self.open_permissions.retain(|open| !open.has_id(id));
        self.resolved_permissions.truncate(PERMISSIONS_RESOLVED_KEPT - 1);
        self.resolved_permissions.push_front(ResolvedPermission { id: id.clone(), outcome, by: by.clone() });
        if matches!(outcome, PermissionOutcome::AllowAlways | PermissionOutcome::RejectAlways) {
            // A rule of the user's settings applies from there.
            let rule = rule.and_then(|rule| Rule::deserialize(rule).ok());
            self.rules.extend(rule.filter(|rule| !rule.is_exact()));
        }
    }

    fn forget(&mut self, rule: &Value) {
        let forgotten = Rule::deserialize(rule).ok();
        self.rules.retain(|rule| Some(rule) != forgotten.as_ref());
        let inherited = self.parent.iter_mut().flat_map(|parent| Some(&mut parent.rules));
        inherited.for_each(|rules| rules.retain(|rule| Rule::deserialize(rule).ok() != forgotten));
    }

    fn change(&mut self, change: &SessionChange) {
        self.settings.apply(change.clone());
        self.cwd = self.settings.cwd.take().unwrap_or_else(|| std::mem::take(&mut self.cwd));
        self.settings.budget = None;
    }

    /// Returns the further directories of the session.
    pub(crate) fn additional_directories(&self) -> &[PathBuf] {
        self.settings.additional_directories.as_deref().unwrap_or_default()
    }

    fn change_call(&mut self, id: &ToolCallId, changed: &ChangedCall) {
        if let Some(open) = self.open_tools.iter_mut().find(|open| open.has_id(id)) {
            let ChangedCall { title, input, locations } = changed.clone();
            (open.call.title, open.call.input, open.call.locations) = (title, input, locations);
        }
    }

    /// Adds the acts of git that a user's message asks for. The prompts of a subagent, and of a
    /// session that another agent began, are of a model.
    fn heed(&mut self, event: &Event) {
        if let Body::MessageCompleted { role: Role::User, parts, extra, discarded: false, .. } = &event.body
            && self.parent.is_none()
            && self.settings.origin.as_deref() != Some(DELEGATION)
        {
            let texts = parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(text) } else { None });
            texts.chain(&extra.expansion).for_each(|text| self.asked_git_acts.heed(text));
        }
    }

    fn add_usage(&mut self, update: &UsageUpdate) {
        if update.aside {
            return;
        }
        self.context_tokens = update.context_tokens;
        if let Some(open) = &mut self.open_step {
            *open.usage.get_or_insert_default() += update.usage;
            open.cost = Cost::sum(open.cost, update.cost);
        }
    }

    fn delta(&mut self, id: &MessageId, role: Role, text: &str) {
        match self.open_messages.iter_mut().find(|open| open.id == *id) {
            Some(open) => open.text.push_str(text),
            None => self.open_messages.push(OpenMessage { id: id.clone(), role, text: text.into() }),
        }
    }

    /// Returns the queued messages that do not start a turn.
    pub(crate) fn silent(&self) -> impl Iterator<Item = &IncomingMessage> {
        self.queue.iter().filter(|queued| !queued.auto_run).map(|queued| &queued.message)
    }

    /// Returns the events that end all open messages, permission requests, subagents and tool
    /// calls, the checks, the model request and the turn, in this order. They are appended after
    /// the session's owner died or the agent panicked.
    pub(crate) fn closing(&self) -> Vec<Body> {
        let mut bodies = Vec::new();
        for open in &self.open_messages {
            bodies.push(Body::MessageCompleted {
                message_id: open.id.clone(),
                role: open.role,
                parts: vec![Part::text(&open.text)],
                discarded: false,
                provider_state: None,
                extra: MessageExtra::default(),
            });
        }
        for OpenPermission { request, .. } in &self.open_permissions {
            bodies.push(Body::PermissionResolved(PermissionDecision {
                permission_id: Some(request.permission_id.clone()),
                tool_call_id: request.tool_call_id.clone(),
                tool: request.tool.clone(),
                outcome: PermissionOutcome::Cancelled,
                reason: Some("the process that requested it has ended".into()),
                by: Actor::Interrupted,
                rule: None,
            }));
        }
        for child in &self.open_children {
            let end = ChildEnd {
                status: ChildStatus::Interrupted,
                stop_reason: None,
                usage: None,
                cost: None,
                requests: 0,
                unresolved: None,
                error: None,
            };
            bodies.push(Body::ChildCompleted { child: child.clone(), end });
        }
        bodies.extend(self.open_tools.iter().flat_map(OpenTool::interrupted));
        bodies.extend(self.open_check.iter().map(OpenCheck::interrupted));
        bodies.extend(self.open_step.clone().map(Body::StepCompleted));
        if self.compacting {
            bodies.push(Body::CompactionCompleted {
                outcome: CompactionOutcome::Interrupted,
                summary: None,
                context_tokens: None,
                error: None,
            });
        }
        if self.turn.is_some() {
            bodies.push(Body::TurnInterrupted {});
        }
        bodies
    }
}
