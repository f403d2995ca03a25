//! Items of a session that have not ended: a model request, messages, tool calls, permission
//! requests, checks.

use serde_json::Value;

use crate::content::{
    Cost, Location, Part, PermissionOption, REVIEW, ReviewOffer, Role, ToolContent, ToolKind, ToolLabel, ToolStatus, Usage,
};
use crate::event::{AgentEndReason, Body, Event, Notice, PermissionRequest, Severity, ToolChange, ToolEnd, ToolStart};
use crate::id::{MessageId, PermissionId, Seq, ToolCallId};

const REVIEW_INTERRUPTED: &str = "the process that asked for the review has ended: the files stay as they were written";

/// A model request that has not ended, with the usage reported so far.
#[derive(Clone, Debug)]
pub struct OpenStep {
    /// The number of the request in its turn.
    pub step: u32,
    pub model: String,
    pub usage: Option<Usage>,
    pub cost: Option<Cost>,
}

impl OpenStep {
    pub(in crate::session) fn new(step: u32, model: &str) -> OpenStep {
        OpenStep { step, model: model.into(), usage: None, cost: None }
    }
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
    pub id: ToolCallId,
    pub label: ToolLabel,
    pub kind: ToolKind,
    pub input: Value,
    pub locations: Vec<Location>,
    /// True if nuncio made the call, not the model.
    pub automatic: bool,
    /// When the call started to run, in milliseconds since the Unix epoch.
    pub running_ms: Option<u64>,
}

impl OpenTool {
    /// Creates the open call from its `tool.started`; `None` for other events.
    pub(in crate::session) fn from_body(body: &Body) -> Option<OpenTool> {
        let Body::ToolStarted(ToolStart { tool_call_id, name, title, kind, category, input, locations, automatic, .. }) = body
        else {
            return None;
        };
        Some(OpenTool {
            id: tool_call_id.clone(),
            label: ToolLabel { name: name.clone(), title: title.clone(), category: *category },
            kind: *kind,
            input: input.clone(),
            locations: locations.clone(),
            automatic: *automatic,
            running_ms: None,
        })
    }

    pub(in crate::session) fn update(&mut self, status: Option<ToolStatus>, change: &ToolChange, at_ms: u64) {
        if status == Some(ToolStatus::InProgress) {
            // A permission request of a subagent interrupts the call, which then continues.
            self.running_ms.get_or_insert(at_ms);
        }
        let ToolChange { title, kind, input, locations } = change.clone();
        self.label.title = title.unwrap_or_else(|| std::mem::take(&mut self.label.title));
        self.kind = kind.unwrap_or(self.kind);
        self.input = input.unwrap_or_else(|| self.input.take());
        self.locations = locations.unwrap_or_else(|| std::mem::take(&mut self.locations));
    }

    /// Creates the events that end the call after the process that ran it died.
    pub(in crate::session) fn interrupted(&self) -> Vec<Body> {
        let review = self.automatic && self.label.name == REVIEW;
        let (message, effect) = match review {
            true => (REVIEW_INTERRUPTED, None),
            false => ("interrupted: the process that ran this call has ended; its effect is unknown", Some("unknown".to_owned())),
        };
        let mut bodies = vec![Body::ToolCompleted(ToolEnd {
            tool_call_id: self.id.clone(),
            tool: Some(self.label.clone()),
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
            bodies.push(Body::Notice(Notice { severity, title, description, code, note: None, quoted: None, details: None }));
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
    pub id: PermissionId,
    pub tool_call_id: ToolCallId,
    /// The call that needs the permission, which may be a call of a subagent, or a question without
    /// a call.
    pub label: Option<ToolLabel>,
    pub content: Vec<ToolContent>,
    pub options: Vec<PermissionOption>,
    /// None while the request waits for a person.
    pub deadline_ms: Option<u64>,
    pub review: Option<ReviewOffer>,
    /// The seq of the request's `permission.requested` event.
    pub seq: Seq,
}

impl OpenPermission {
    /// Creates the open request from its `permission.requested`; `None` for other events.
    pub(in crate::session) fn from_event(event: &Event) -> Option<OpenPermission> {
        let Body::PermissionRequested(PermissionRequest {
            permission_id,
            tool_call_id,
            tool,
            content,
            options,
            deadline_ms,
            review,
        }) = &event.body
        else {
            return None;
        };
        Some(OpenPermission {
            id: permission_id.clone(),
            tool_call_id: tool_call_id.clone(),
            label: tool.clone(),
            content: content.clone(),
            options: options.clone(),
            deadline_ms: *deadline_ms,
            review: review.clone(),
            seq: event.seq,
        })
    }
}
