//! Tool calls of a turn: parse the input, announce the call, check permissions, request a decision
//! if rules ask, run the tool, record the result.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tracing::Instrument;

use super::gate;
use super::native::{Desk, NativeAgents};
use super::step::ToolUse;
use crate::config::{AccessKind, Policy, Rule};
use crate::content::{Part, PlanEntry, ToolContent, ToolKind, ToolStatus};
use crate::error::Result;
use crate::event::{Body, PermissionOutcome};
use crate::id::ToolCallId;
use crate::options::Mode;
use crate::permission::rules::{self, PermissionRequest, Rules};
use crate::session::Turn;
use crate::session::turn::panic_message;
use crate::tools::{self, Output, Prepared, ToolContext, ToolError};

/// An announced call: the prepared tool, or the error that the input caused.
pub struct ToolCall {
    id: ToolCallId,
    context: ToolContext,
    desk: Arc<Desk>,
    prepared: Result<Prepared, ToolError>,
}

/// The result of a permission check.
enum Verdict {
    Allowed,
    Denied(String),
    /// The call would fail, so no permission was requested.
    WouldFail(ToolError),
    Cancelled,
}

impl ToolCall {
    /// Parses the input once, so that the checked call is the one that runs, and emits
    /// `tool.started`.
    pub async fn announce(turn: &Turn, shared: &NativeAgents, desk: &Arc<Desk>, tool_use: ToolUse) -> ToolCall {
        let ToolUse { id, name, input, state } = tool_use;
        let mut context = desk.tool_context(shared);
        context.call_id = id.clone();
        context.cancel = turn.cancel.child_token();
        context.progress = live_output(turn, &id);
        context.client = turn.session.lending.hands();
        let (input, prepared) = match parse(&input) {
            Ok(input) => (input.clone(), shared.tools().prepare(&name, input, &context)),
            Err(error) => (Value::String(input), Err(error)),
        };
        let (title, kind, locations) = match &prepared {
            Ok(prepared) => (prepared.title.clone(), prepared.kind, prepared.locations.clone()),
            Err(_) => (name.clone(), ToolKind::Other, Vec::new()),
        };
        let tool_call_id = id.clone();
        turn.emit(Body::ToolStarted { tool_call_id, name, title, kind, input, locations, provider_state: state }).await;
        ToolCall { id, context, desk: desk.clone(), prepared }
    }

    /// Checks permissions, runs the tool if allowed, and records the result. Returns an error only
    /// if the log cannot be written; a tool failure is a recorded result.
    pub async fn finish(self, turn: &Turn) -> Result<()> {
        let ToolCall { id, mut context, desk, prepared } = self;
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return record_result(turn, id, Err(error)).await,
        };
        let (mode, session_rules) = in_force(turn);
        // The sandbox of the mode at the time of the check, even if the mode changes before
        // approval.
        context.sandbox = desk.sandbox(mode);
        context.start = context.shell.start(&context.workspace);
        match decide(turn, &id, &context, &desk, &prepared, (mode, &desk.rules(&session_rules))).await? {
            Verdict::Allowed => {}
            Verdict::Denied(why) => return record_result(turn, id, Err(ToolError::new(why))).await,
            Verdict::WouldFail(error) => return record_result(turn, id, Err(error)).await,
            Verdict::Cancelled => return record_result(turn, id, Err(ToolError::cancelled())).await,
        }
        if turn.cancel.is_cancelled() {
            return record_result(turn, id, Err(ToolError::cancelled())).await;
        }
        let running = Body::ToolUpdated { tool_call_id: id.clone(), status: Some(ToolStatus::InProgress), content: None };
        match prepared.access.kind {
            AccessKind::Read => turn.emit(running).await,
            // The log records the start durably before the tool can have an effect.
            AccessKind::Write | AccessKind::Exec | AccessKind::Network | AccessKind::Mcp => {
                turn.commit_durably(running).await?;
            }
        }
        // The turn may have been cancelled while the log was written.
        if turn.cancel.is_cancelled() {
            return record_result(turn, id, Err(ToolError::cancelled())).await;
        }
        let rules = desk.rules(&in_force(turn).1);
        context.hidden = gate::hidden(&rules, &prepared, &context);
        context.reach = gate::reach(&rules, mode, desk.loaded.settings.permissions.default, &prepared);
        let (name, kind) = (prepared.name.clone(), prepared.kind);
        let span = tracing::info_span!("tool", tool = name, call = %id);
        let ran = AssertUnwindSafe(prepared.run(&context)).catch_unwind().instrument(span).await;
        let mut result = ran.unwrap_or_else(|panic| {
            Err(ToolError::new(format!("internal error: tool {name} panicked: {}", panic_message(&*panic))))
        });
        if let (Ok(output), true) = (&mut result, context.hidden.is_some()) {
            output.parts.push(Part::text("[results hidden by permission rules are omitted]"));
        }
        if let (Ok(output), ToolKind::Edit) = (&mut result, kind) {
            tools::after_edit(output, &context).await;
        }
        if let (Ok(output), "plan") = (&result, name.as_str()) {
            show_plan(turn, output).await;
        }
        record_result(turn, id, result).await
    }
}

/// Parses the arguments. Some models send an empty string for none.
fn parse(input: &str) -> Result<Value, ToolError> {
    if input.trim().is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_str(input).map_err(|error| ToolError::new(format!("the arguments are not valid JSON: {error}")))
}

/// The session's mode, and the rules remembered from permission answers.
fn in_force(turn: &Turn) -> (Mode, Vec<Rule>) {
    turn.session.log.state(|state| (state.mode.known().unwrap_or_default(), state.rules.clone()))
}

/// Evaluates the rules and the mode; where they ask, requests permission from the attached clients.
async fn decide(
    turn: &Turn,
    id: &ToolCallId,
    context: &ToolContext,
    desk: &Desk,
    prepared: &Prepared,
    (mode, rules): (Mode, &Rules),
) -> Result<Verdict> {
    let subject = gate::subject(prepared, context);
    let permissions = &desk.loaded.settings.permissions;
    let decision = gate::judge(rules, mode, permissions.default, &subject);
    match decision.policy {
        Policy::Allow => {
            if let Some(rule) = decision.rule {
                turn.emit(decided(id, PermissionOutcome::AllowOnce, "rule", Some(json!(rule)))).await;
            }
            Ok(Verdict::Allowed)
        }
        Policy::Deny => {
            let why = gate::denial(&decision, mode);
            let by = if decision.rule.is_some() { "rule" } else { "mode" };
            turn.emit(decided(id, PermissionOutcome::Denied, by, decision.rule.map(|rule| json!(rule)))).await;
            Ok(Verdict::Denied(why))
        }
        Policy::Ask => {
            let content = match prepared.preview(context).await {
                Ok(content) => content,
                Err(error) if gate::may_read(rules, mode, permissions.default, &subject) => return Ok(Verdict::WouldFail(error)),
                Err(error) => vec![ToolContent::text(error.0)],
            };
            ask(turn, id, content, &subject, Duration::from_secs(permissions.timeout_s)).await
        }
    }
}

async fn ask(
    turn: &Turn,
    id: &ToolCallId,
    content: Vec<ToolContent>,
    subject: &PermissionRequest<'_>,
    timeout: Duration,
) -> Result<Verdict> {
    let (permission_id, answer) = turn.ask(id.clone(), content, gate::options(subject), timeout).await;
    let rule = match answer.outcome {
        PermissionOutcome::AllowAlways => Some(rules::remembered(Policy::Allow, subject)),
        PermissionOutcome::RejectAlways => Some(rules::remembered(Policy::Deny, subject)),
        _ => None,
    };
    // No need to wait: events are committed in order, and the next commit of the call is awaited.
    turn.emit(Body::PermissionResolved {
        permission_id,
        tool_call_id: id.clone(),
        outcome: answer.outcome,
        reason: answer.reason.clone(),
        by: answer.by.clone(),
        rule: rule.map(|rule| json!(rule)),
    })
    .await;
    let because = answer.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    Ok(match answer.outcome {
        PermissionOutcome::AllowOnce | PermissionOutcome::AllowAlways => Verdict::Allowed,
        PermissionOutcome::RejectOnce | PermissionOutcome::RejectAlways => Verdict::Denied(format!("denied by the user{because}")),
        PermissionOutcome::Denied => Verdict::Denied(format!("denied{because}")),
        PermissionOutcome::Cancelled => Verdict::Cancelled,
    })
}

fn decided(id: &ToolCallId, outcome: PermissionOutcome, by: &str, rule: Option<Value>) -> Body {
    Body::PermissionResolved { permission_id: None, tool_call_id: id.clone(), outcome, reason: None, by: by.into(), rule }
}

/// Emits live output. It is dropped while the log's queue is full; the result has all of it.
fn live_output(turn: &Turn, id: &ToolCallId) -> crate::tools::Progress {
    let (log, turn_id, id) = (turn.session.log.clone(), turn.id.clone(), id.clone());
    Arc::new(move |content| {
        log.try_emit(Some(turn_id.clone()), Body::ToolUpdated { tool_call_id: id.clone(), status: None, content: Some(content) });
    })
}

async fn show_plan(turn: &Turn, output: &Output) {
    let entries = output.details.get("entries").cloned().and_then(|entries| serde_json::from_value::<Vec<PlanEntry>>(entries).ok());
    if let Some(entries) = entries {
        turn.emit(Body::PlanUpdated { entries }).await;
    }
}

async fn record_result(turn: &Turn, id: ToolCallId, result: Result<Output, ToolError>) -> Result<()> {
    let body = match result {
        Ok(Output { parts, content, locations, details }) => Body::ToolCompleted {
            tool_call_id: id,
            status: ToolStatus::Completed,
            output: parts,
            content,
            locations,
            details: Some(details).filter(|details| !details.is_null()),
            effect: None,
        },
        Err(ToolError(message)) => Body::ToolCompleted {
            tool_call_id: id,
            status: ToolStatus::Failed,
            output: vec![Part::text(&message)],
            content: vec![ToolContent::text(message)],
            locations: Vec::new(),
            details: None,
            effect: None,
        },
    };
    turn.commit(body).await.map(drop)
}
