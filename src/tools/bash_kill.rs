//! `bash_kill`: ends a background job.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::content::ToolKind;
use crate::permission::Access;
use crate::toolkit::jobs::Ended;
use crate::toolkit::{Output, Tool, ToolContext, ToolError};
use crate::workspace::Workspace;

pub struct BashKill;

/// Ends a background job of bash and all its processes.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    #[serde(alias = "job_id", alias = "bash_id", alias = "shell_id", alias = "id")]
    job: String,
}

impl Tool for BashKill {
    type Input = Input;
    const NAME: &'static str = "bash_kill";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Execute;

    fn title(&self, input: &Input, _: &Workspace) -> String {
        format!("End job {}", input.job)
    }

    fn access(&self, _: &Input) -> Access {
        Access::none()
    }

    /// details: like `bash_output` for one job, without `next`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let job = context.shell.jobs.get(&input.job)?;
        let before = job.ended();
        let Some(Ended { how, .. }) = job.end().await else {
            return Err(ToolError(format!("job {} did not end and is still running", job.number)));
        };
        let text = match before {
            Some(_) => format!("job {} had already ended: {how}", job.number),
            None => format!("job {} ended: {how}", job.number),
        };
        Ok(Output::text(text, job.details()))
    }
}
