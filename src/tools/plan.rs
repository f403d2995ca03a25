//! `plan`: the model's list of steps. The tool only validates it; the session shows it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::content::{PlanEntry, PlanPriority, PlanStatus, ToolKind};
use crate::permission::Access;
use crate::toolkit::{Output, Tool, ToolContext, ToolError};
use crate::workspace::Workspace;

pub struct Plan;

/// Shows the user your plan for work of several steps. Pass the whole list each time, with at most
/// one step in progress, and update it as steps are done.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "todos", alias = "plan", alias = "steps")]
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Entry {
    #[serde(alias = "step")]
    content: String,
    #[serde(default)]
    priority: Option<PlanPriority>,
    #[serde(default)]
    status: Option<PlanStatus>,
}

impl Tool for Plan {
    type Input = Input;
    const NAME: &'static str = "plan";
    const ALIASES: &'static [&'static str] = &["todo_write", "update_plan"];
    const KIND: ToolKind = ToolKind::Think;

    fn title(&self, _: &Input, _: &Workspace) -> String {
        "Update the plan".into()
    }

    fn access(&self, _: &Input) -> Access {
        Access::none()
    }

    /// details: `{entries: [PlanEntry]}`.
    async fn run(&self, input: Input, _: &ToolContext) -> Result<Output, ToolError> {
        let complete = |entry: Entry| PlanEntry {
            content: entry.content,
            priority: entry.priority.unwrap_or(PlanPriority::Medium),
            status: entry.status.unwrap_or(PlanStatus::Pending),
        };
        let entries: Vec<PlanEntry> = input.entries.into_iter().map(complete).collect();
        let done = entries.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
        Ok(Output::text(format!("plan updated: {done} of {} done", entries.len()), json!({ "entries": entries })))
    }
}
