//! `bash_output`: the new output of a background job, or the list of jobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::AccessShape;
use crate::content::ToolKind;
use crate::permission::Access;
use crate::toolkit::jobs::{Job, JobDetails};
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput};
use crate::workspace::Workspace;

pub(super) struct BashOutput;

/// Shows the output of a background job of bash since the last call, and whether it still runs.
/// Without job: lists the jobs.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BashOutputInput {
    #[serde(default, alias = "job_id", alias = "bash_id", alias = "id")]
    job: Option<String>,
    /// Start at this byte of the output.
    since: Option<usize>,
}

/// The details of the result of a `bash_output` call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum BashOutputDetails {
    Job(JobDetails),
    List { jobs: Vec<JobDetails> },
}

impl Tool for BashOutput {
    type Input = BashOutputInput;
    type Details = BashOutputDetails;
    const NAME: &'static str = "bash_output";
    const LABEL: &'static str = "Read background output";
    const KIND: ToolKind = ToolKind::Read;
    const ACCESS: &'static [AccessShape] = AccessShape::NOTHING;

    fn title(&self, input: &BashOutputInput, _: &Workspace) -> String {
        input.job.as_ref().map_or("List background jobs".into(), |job| format!("Output of job {job}"))
    }

    fn access(&self, _: &BashOutputInput) -> Access {
        Access::none()
    }

    async fn run(&self, input: BashOutputInput, context: &ToolContext) -> Result<ToolOutput<BashOutputDetails>, ToolError> {
        let jobs = &context.shell.jobs;
        let Some(job) = input.job else {
            let all = jobs.all();
            let lines: String = all.iter().map(|job| format!("{}: {}\n", status(job), job.command)).collect();
            let text = if all.is_empty() { "there are no background jobs".into() } else { lines };
            let details = BashOutputDetails::List { jobs: all.iter().map(|job| job.details()).collect() };
            let polls = all.iter().any(|job| job.ended().is_none());
            return Ok(ToolOutput { polls, ..ToolOutput::text(text, details) });
        };
        let job = jobs.get(&job)?;
        // The status is read before the output, so that a job reported as ended has no more output.
        let (status, polls) = (status(&job), job.ended().is_none());
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
        let notes = job.ended().map(|ended| ended.notes).unwrap_or_default();
        let (notes, shown) = match part.more {
            0 => ([notes.model.clone(), vec![status.clone()]].concat(), format!("{text}{}[{status}]", notes.person())),
            more => (vec![format!("{more} more bytes: call bash_output again; {status}")], format!("{text}[{status}]")),
        };
        let details = JobDetails { next: Some(part.next), ..job.details() };
        Ok(ToolOutput { polls, ..ToolOutput::text(text, BashOutputDetails::Job(details)).notes(notes).shown_as(shown) })
    }
}

fn status(job: &Job) -> String {
    let how = job.ended().map_or("is still running".into(), |ended| format!("ended: {}", ended.how));
    format!("job {} {how}", job.number)
}
