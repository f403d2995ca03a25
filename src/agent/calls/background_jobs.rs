//! The commands that a native agent runs in the background.

use std::sync::Arc;

use crate::session::BackgroundJob;
use crate::toolkit::jobs::{Job, Jobs};

/// Returns the jobs that have not ended.
pub(in crate::agent) fn background_jobs(jobs: &Jobs) -> Vec<BackgroundJob> {
    let running = jobs.all().into_iter().filter(|job| job.ended().is_none());
    let background =
        |job: Arc<Job>| BackgroundJob { command: job.command.clone(), ended: Box::pin(async move { job.finished().await.how }) };
    running.map(background).collect()
}
