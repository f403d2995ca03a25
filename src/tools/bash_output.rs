//! `bash_output`: the new output of a background job, or the list of jobs.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::content::ToolKind;
use crate::permission::Access;
use crate::toolkit::jobs::Job;
use crate::toolkit::{Output, Tool, ToolContext, ToolError};
use crate::workspace::Workspace;

pub struct BashOutput;

/// Shows the output of a background job of bash since the last call, and whether it still runs.
/// Without job: lists the jobs.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    #[serde(default, alias = "job_id", alias = "bash_id", alias = "id")]
    job: Option<String>,
    /// Start at this byte of the output.
    #[serde(default)]
    since: Option<usize>,
}

impl Tool for BashOutput {
    type Input = Input;
    const NAME: &'static str = "bash_output";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Read;

    fn title(&self, input: &Input, _: &Workspace) -> String {
        input.job.as_ref().map_or("List background jobs".into(), |job| format!("Output of job {job}"))
    }

    fn access(&self, _: &Input) -> Access {
        Access::none()
    }

    /// details: `{job, command, running, exitCode?, next, artifact?}`, or `{jobs}` with a list of
    /// these, without `next`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let jobs = &context.shell.jobs;
        let Some(job) = input.job else {
            let all = jobs.all();
            let lines: String = all.iter().map(|job| format!("{}: {}\n", status(job), job.command)).collect();
            let text = if all.is_empty() { "there are no background jobs".into() } else { lines };
            return Ok(Output::text(text, json!({ "jobs": all.iter().map(|job| job.details()).collect::<Vec<_>>() })));
        };
        let job = jobs.get(&job)?;
        // The status is read before the output, so that a job reported as ended has no more output.
        let status = status(&job);
        let part = job.read(input.since);
        let mut text = String::new();
        if part.missed > 0 {
            let place = job.artifact().map(|artifact| format!("; they are in {}", artifact.display())).unwrap_or_default();
            text = format!("[{} bytes left out{place}]\n", part.missed);
        }
        text += &part.text;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        match part.more {
            0 => text += &format!("{}[{status}]", job.ended().map(|ended| ended.notes).unwrap_or_default()),
            more => text += &format!("[{more} more bytes: call bash_output again; {status}]"),
        }
        let mut details = job.details();
        details["next"] = json!(part.next);
        Ok(Output::text(text, details))
    }
}

fn status(job: &Job) -> String {
    let how = job.ended().map_or("is still running".into(), |ended| format!("ended: {}", ended.how));
    format!("job {} {how}", job.number)
}
