//! The background jobs of a session: list, read and kill them, and move running commands there.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::api::views::view::SessionParams;
use crate::error::{Error, Result};
use crate::id::{SessionId, ToolCallId};
use crate::toolkit::ToolError;
use crate::toolkit::jobs::{Job, JobDetails, Jobs};

/// Background jobs, oldest first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct JobList {
    pub jobs: Vec<JobDetails>,
}

pub(crate) struct ListJobs;

impl Method for ListJobs {
    type Params = SessionParams;
    type Result = JobList;
    const NAME: &'static str = "_nuncio/session/jobs";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/jobs")];
    const ROLE: ClientRole = ClientRole::Observer;
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str =
        "Lists the background jobs of a session: those that run, and the last ones that ended. They end with the session.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<JobList>> {
        let all = jobs(&cx, &params.session_id).await?.map(|jobs| jobs.all()).unwrap_or_default();
        Ok(Reply::new(JobList { jobs: all.iter().map(|job| job.details()).collect() }))
    }
}

/// Selects a part of the output of a job.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct JobOutputParams {
    pub session_id: SessionId,
    /// The job's number.
    pub job: String,
    /// Begin at this byte of the output. By default, at the first one that is still kept.
    pub since: Option<usize>,
}

/// Output of a job, without control sequences.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "JobOutput")]
pub(crate) struct JobOutputView {
    /// `next` is the byte at which the next part begins.
    #[serde(flatten)]
    pub job: JobDetails,
    pub text: String,
    /// Number of requested bytes before `text` that are no longer kept.
    pub missed: usize,
    /// Number of bytes that are available after `text`.
    pub more: usize,
}

pub(crate) struct ReadJob;

impl Method for ReadJob {
    type Params = JobOutputParams;
    type Result = JobOutputView;
    const NAME: &'static str = "_nuncio/session/jobs/output";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "job": "1"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/jobs/{job}")];
    const ROLE: ClientRole = ClientRole::Observer;
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str =
        "Returns output of a background job, at most 50 KiB. What the model reads next with `bash_output` does not change.";

    async fn call(cx: CallContext, params: JobOutputParams) -> Result<Reply<JobOutputView>> {
        let job = job(&cx, &params.session_id, &params.job).await?;
        // The state is read first, so that a job reported as ended has no more output.
        let details = job.details();
        let part = job.part(params.since.unwrap_or_default());
        let job = JobDetails { next: Some(part.next), ..details };
        Ok(Reply::new(JobOutputView { job, text: part.text, missed: part.missed, more: part.more }))
    }
}

/// Names a job.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct JobParams {
    pub session_id: SessionId,
    /// The job's number.
    pub job: String,
}

pub(crate) struct KillJob;

impl Method for KillJob {
    type Params = JobParams;
    type Result = JobDetails;
    const NAME: &'static str = "_nuncio/session/jobs/kill";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "job": "1"}"#;
    const ROUTES: &'static [Route] = &[Route::delete("/v1/sessions/{sessionId}/jobs/{job}")];
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str =
        "Kills a background job with all its processes, and waits for its end. No effect on a job that has ended.";

    async fn call(cx: CallContext, params: JobParams) -> Result<Reply<JobDetails>> {
        cx.client.authorized()?;
        let job = job(&cx, &params.session_id, &params.job).await?;
        cx.decided();
        match job.end().await {
            Some(_) => Ok(Reply::new(job.details())),
            None => Err(Error::internal(format!("job {} did not end and is still running", job.number))),
        }
    }
}

/// Selects running commands.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MoveToBackgroundParams {
    pub session_id: SessionId,
    /// The call of `bash` that runs the command. By default, all such calls.
    pub tool_call_id: Option<ToolCallId>,
}

/// The calls whose commands become background jobs.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MovedCommands {
    pub tool_call_ids: Vec<ToolCallId>,
}

pub(crate) struct MoveToBackground;

impl Method for MoveToBackground {
    type Params = MoveToBackgroundParams;
    type Result = MovedCommands;
    const NAME: &'static str = "_nuncio/session/background";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/background")];
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str = "Moves the running command of a call of `bash` to the background: the call ends with the number of the job, and the turn \
         goes on. Commands in a client's terminal and those of hosted agents stay. `invalid_params` if no such command runs.";

    async fn call(cx: CallContext, params: MoveToBackgroundParams) -> Result<Reply<MovedCommands>> {
        cx.client.authorized()?;
        let jobs = jobs(&cx, &params.session_id).await?;
        let moved = jobs.map(|jobs| jobs.foreground.move_to_background(params.tool_call_id.as_ref())).unwrap_or_default();
        if moved.is_empty() {
            return Err(Error::invalid_params("no command runs that can continue in the background"));
        }
        Ok(Reply::new(MovedCommands { tool_call_ids: moved }))
    }
}

/// Returns the jobs of a session; `None` if no process works in it, or if its agent has none.
async fn jobs(cx: &CallContext, id: &SessionId) -> Result<Option<Arc<Jobs>>> {
    match cx.opened(id) {
        Some(session) => {
            cx.check_access(&session)?;
            Ok(session.owned().ok().and_then(|session| session.agent().jobs()))
        }
        None => cx.authorize(id).await.map(|_| None),
    }
}

async fn job(cx: &CallContext, id: &SessionId, number: &str) -> Result<Arc<Job>> {
    let none = || ToolError(format!("there is no job {number}; there are no background jobs"));
    let found = jobs(cx, id).await?.ok_or_else(none).and_then(|jobs| jobs.get(number));
    found.map_err(|ToolError(message)| Error::not_found(message))
}
