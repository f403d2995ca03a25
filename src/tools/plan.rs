//! `plan`: the model's list of steps. The tool only validates it; the session shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::AccessShape;
use crate::content::{PLAN, PlanEntry, PlanPriority, PlanStatus, ToolKind};
use crate::permission::Access;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput};
use crate::workspace::Workspace;

pub(super) struct Plan;

/// Shows the user your plan for work of several steps; skip it for work of one step. Pass the whole
/// list each time, with at most one step in progress, and mark a step as completed at once.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct PlanInput {
    #[serde(alias = "todos", alias = "plan", alias = "steps")]
    entries: Vec<InputEntry>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct InputEntry {
    #[serde(alias = "step")]
    content: String,
    /// Default medium.
    priority: Option<PlanPriority>,
    /// Default pending.
    status: Option<PlanStatus>,
}

/// The details of the result of a `plan` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PlanDetails {
    entries: Vec<PlanEntry>,
}

impl Tool for Plan {
    type Input = PlanInput;
    type Details = PlanDetails;
    const NAME: &'static str = PLAN;
    const LABEL: &'static str = "Update plan";
    const ALIASES: &'static [&'static str] = &["todo_write", "update_plan"];
    const KIND: ToolKind = ToolKind::Think;
    const ACCESS: &'static [AccessShape] = AccessShape::NOTHING;

    fn title(&self, _: &PlanInput, _: &Workspace) -> String {
        "Update the plan".into()
    }

    fn access(&self, _: &PlanInput) -> Access {
        Access::none()
    }

    async fn run(&self, input: PlanInput, _: &ToolContext) -> Result<ToolOutput<PlanDetails>, ToolError> {
        let complete = |entry: InputEntry| PlanEntry {
            content: entry.content,
            priority: entry.priority.unwrap_or(PlanPriority::Medium),
            status: entry.status.unwrap_or(PlanStatus::Pending),
        };
        let entries: Vec<PlanEntry> = input.entries.into_iter().map(complete).collect();
        let done = entries.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
        let text = format!("plan updated: {done} of {} done", entries.len());
        Ok(ToolOutput { plan: Some(entries.clone()), ..ToolOutput::text(text, PlanDetails { entries }) })
    }
}
