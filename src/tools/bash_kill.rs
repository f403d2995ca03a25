//! `bash_kill`: kills a background job.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::AccessShape;
use crate::content::ToolKind;
use crate::permission::Access;
use crate::toolkit::jobs::{JobDetails, JobEnd};
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput};
use crate::workspace::Workspace;

pub(super) struct BashKill;

/// Ends a background job of bash and all its processes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BashKillInput {
    #[serde(alias = "job_id", alias = "bash_id", alias = "shell_id", alias = "id")]
    job: String,
}

impl Tool for BashKill {
    type Input = BashKillInput;
    type Details = JobDetails;
    const NAME: &'static str = "bash_kill";
    const LABEL: &'static str = "Stop background command";
    const KIND: ToolKind = ToolKind::Execute;
    const ACCESS: &'static [AccessShape] = AccessShape::NOTHING;

    fn title(&self, input: &BashKillInput, _: &Workspace) -> String {
        format!("End job {}", input.job)
    }

    fn access(&self, _: &BashKillInput) -> Access {
        Access::none()
    }

    async fn run(&self, input: BashKillInput, context: &ToolContext) -> Result<ToolOutput<JobDetails>, ToolError> {
        let job = context.shell.jobs.get(&input.job)?;
        let before = job.ended();
        let Some(JobEnd { how, .. }) = job.end().await else {
            return Err(ToolError(format!("job {} did not end and is still running", job.number)));
        };
        let text = match before {
            Some(_) => format!("job {} had already ended: {how}", job.number),
            None => format!("job {} ended: {how}", job.number),
        };
        Ok(ToolOutput::text(text, job.details()))
    }
}
