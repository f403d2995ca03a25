//! Items of a session that have not ended: a model request, messages, tool calls, permission
//! requests, checks.

use crate::content::{Part, REVIEW, Role, StepOutcome, ToolContent, ToolStatus};
use crate::event::{AgentEndReason, Body, Notice, PermissionRequest, Severity, StepEnd, ToolChange, ToolEnd, ToolStart};
use crate::id::{MessageId, PermissionId, Seq, ToolCallId};

const REVIEW_INTERRUPTED: &str = "the process that asked for the review has ended: the files stay as they were written";

/// Creates the end of a model request whose process dies before it.
pub(super) fn interrupted_step(step: u32, model: &str) -> StepEnd {
    let (usage, cost, error, retry_at_ms, request) = Default::default();
    StepEnd { step, model: model.into(), outcome: StepOutcome::Interrupted, usage, cost, error, retry_at_ms, request }
}

/// An incomplete message, with its text so far.
#[derive(Clone, Debug)]
pub struct OpenMessage {
    pub id: MessageId,
    pub role: Role,
    pub text: String,
}

/// A tool call without a result.
#[derive(Clone, Debug)]
pub struct OpenTool {
    /// The call as it is now, without what only requests need: its text and the provider's data.
    pub call: ToolStart,
    /// When the call started to run, in milliseconds since the Unix epoch.
    pub running_ms: Option<u64>,
}

impl OpenTool {
    pub(super) fn new(call: &ToolStart) -> OpenTool {
        let ToolStart { tool_call_id, name, title, kind, category, input, locations, automatic, .. } = call;
        let call = ToolStart {
            tool_call_id: tool_call_id.clone(),
            name: name.clone(),
            title: title.clone(),
            kind: *kind,
            category: *category,
            input: input.clone(),
            input_text: None,
            locations: locations.clone(),
            provider_state: None,
            automatic: *automatic,
        };
        OpenTool { call, running_ms: None }
    }

    /// Returns whether this is the call `id`.
    pub(crate) fn has_id(&self, id: &ToolCallId) -> bool {
        self.call.tool_call_id == *id
    }

    pub(in crate::session) fn update(&mut self, status: Option<ToolStatus>, change: &ToolChange, at_ms: u64) {
        if status == Some(ToolStatus::InProgress) {
            // A permission request of a subagent interrupts the call, which then continues.
            self.running_ms.get_or_insert(at_ms);
        }
        let ToolChange { title, kind, input, locations } = change.clone();
        let call = &mut self.call;
        call.title = title.unwrap_or_else(|| std::mem::take(&mut call.title));
        call.kind = kind.unwrap_or(call.kind);
        call.input = input.unwrap_or_else(|| call.input.take());
        call.locations = locations.unwrap_or_else(|| std::mem::take(&mut call.locations));
    }

    /// Creates the events that end the call after the process that ran it died.
    pub(in crate::session) fn interrupted(&self) -> Vec<Body> {
        let review = self.call.automatic && self.call.name == REVIEW;
        let (message, effect) = match review {
            true => (REVIEW_INTERRUPTED, None),
            false => ("interrupted: the process that ran this call has ended; its effect is unknown", Some("unknown".to_owned())),
        };
        let mut bodies = vec![Body::ToolCompleted(ToolEnd {
            tool_call_id: self.call.tool_call_id.clone(),
            tool: Some(self.call.label()),
            status: ToolStatus::Failed,
            output: vec![Part::text(message)],
            content: vec![ToolContent::text(message)],
            locations: Vec::new(),
            details: None,
            effect,
        })];
        if review {
            let (severity, title) = (Severity::Warning, "The review was interrupted".to_owned());
            let (description, code) = (Some(REVIEW_INTERRUPTED.to_owned()), Some(REVIEW.to_owned()));
            bodies.push(Body::Notice(Notice { description, code, ..Notice::new(severity, title) }));
        }
        bodies
    }
}

/// A run of the project's checks that has not ended.
#[derive(Clone, Debug)]
pub struct OpenCheck {
    pub tool_call_id: ToolCallId,
    /// The number of the run in its turn.
    pub round: u32,
}

impl OpenCheck {
    /// Creates the event that ends the run after the process that ran it died.
    pub(in crate::session) fn interrupted(&self) -> Body {
        let OpenCheck { tool_call_id, round } = self.clone();
        let error = Some("interrupted: the process that ran the checks has ended".to_owned());
        Body::VerifyCompleted { tool_call_id, round, passed: false, commands: Vec::new(), error }
    }
}

/// The process of a hosted agent that has not ended.
#[derive(Clone, Debug)]
pub struct OpenAgentProcess {
    /// The name of the agent.
    pub agent: String,
    pub pid: u32,
}

impl OpenAgentProcess {
    /// Updates the process that a session uses.
    pub(in crate::session) fn apply(process: &mut Option<OpenAgentProcess>, body: &Body) {
        match body {
            Body::AgentStarted { agent, pid, .. } => *process = Some(OpenAgentProcess { agent: agent.clone(), pid: *pid }),
            Body::AgentEnded { pid, .. } => drop(process.take_if(|open| open.pid == *pid)),
            _ => {}
        }
    }

    /// Creates the event for the end of the process, after the nuncio process that had started it
    /// died.
    pub(in crate::session) fn interrupted(self) -> Body {
        let OpenAgentProcess { agent, pid } = self;
        Body::AgentEnded { agent, pid, reason: AgentEndReason::Interrupted, exit_code: None, error: None }
    }
}

/// A permission request without an answer.
#[derive(Clone, Debug)]
pub struct OpenPermission {
    /// The request, with its deadline as it is now.
    pub request: PermissionRequest,
    /// The seq of the request's `permission.requested` event.
    pub seq: Seq,
}

impl OpenPermission {
    pub(super) fn new(request: &PermissionRequest, seq: Seq) -> OpenPermission {
        OpenPermission { request: request.clone(), seq }
    }

    /// Returns whether this is the request `id`.
    pub(crate) fn has_id(&self, id: &PermissionId) -> bool {
        self.request.permission_id == *id
    }
}
