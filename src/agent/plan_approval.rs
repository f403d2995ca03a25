//! The question at the end of a turn in mode `plan`: whether to carry out the plan, and in which
//! mode.

use crate::content::{PermissionOption, PermissionOptionKind, PlanEntry, PlanStatus, ToolCategory, ToolContent, ToolLabel};
use crate::error::Result;
use crate::event::{Body, Notice, Severity};
use crate::id::ToolCallId;
use crate::options::{Mode, OptionValue};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::{Turn, TurnQuestion};

/// The name of the call that the request is about.
const PLAN_APPROVAL: &str = "plan_approval";

/// The plan of the session when the turn began.
pub(super) struct PlanApproval {
    before: Vec<PlanEntry>,
}

impl PlanApproval {
    pub(super) fn new(turn: &Turn) -> PlanApproval {
        PlanApproval { before: turn.log.state(|state| state.plan.clone()) }
    }

    /// Asks whether to carry out the plan, if the mode is `plan`, the turn has set steps and a
    /// client can answer. Returns whether the turn goes on: in another mode, or with the reason for
    /// which the plan was rejected.
    pub(super) async fn continues(&mut self, turn: &Turn, environment: &SessionEnvironment) -> Result<bool> {
        let (mode, plan) = turn.log.state(|state| (state.mode.known(), state.plan.clone()));
        let is_open = plan.iter().any(|entry| entry.status != PlanStatus::Completed);
        if mode != Some(Mode::Plan) || plan == self.before || !is_open || turn.is_nested() || !turn.has_responder() {
            return Ok(false);
        }
        let steps = plan.iter().enumerate().map(|(at, entry)| format!("{}. {}\n", at + 1, entry.content));
        let question = question(turn, environment, steps.collect());
        self.before = plan;
        let (call, label) = (question.tool_call_id.clone(), question.tool.clone());
        let (id, answer) = turn.ask(question).await;
        turn.emit(Body::PermissionResolved(answer.decision(id, &call, &label))).await;
        let chosen = answer.option_id.as_deref().and_then(|option| option.parse::<Mode>().ok());
        let (title, note) = match (chosen, answer.reason) {
            (Some(Mode::Plan) | None, Some(reason)) if answer.option_id.is_some() => {
                ("The plan was not approved", format!("The user did not approve the plan: {reason}"))
            }
            (Some(Mode::Plan) | None, _) => return Ok(false),
            (Some(mode), _) => {
                turn.commit(Body::ModeChanged { mode: OptionValue::Known(mode) }).await?;
                ("The plan was approved", format!("The user approved the plan, and the mode is now {mode}: carry out the plan."))
            }
        };
        turn.commit(Body::Notice(Notice { note: Some(note), ..Notice::new(Severity::Info, title) })).await?;
        Ok(true)
    }
}

fn question(turn: &Turn, environment: &SessionEnvironment, steps: String) -> TurnQuestion {
    let option = |id: &str, name: &str, kind| PermissionOption { option_id: id.into(), name: name.into(), kind };
    TurnQuestion {
        tool_call_id: ToolCallId::new(),
        tool: ToolLabel { name: PLAN_APPROVAL.into(), title: "carrying out the plan".into(), category: Some(ToolCategory::Other) },
        content: vec![ToolContent::text(steps)],
        options: vec![
            option(Mode::Ask.id(), "Run it in mode ask", PermissionOptionKind::AllowOnce),
            option(Mode::AcceptEdits.id(), "Run it in mode accept-edits", PermissionOptionKind::AllowOnce),
            option(Mode::Plan.id(), "Keep planning", PermissionOptionKind::RejectOnce),
        ],
        review: None,
        timeout: environment.answer_timeout(),
        ends_turn: false,
        cancel: turn.cancel.clone(),
    }
}
