//! The background jobs of the session: `/jobs`, Ctrl-B, and how many run.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::state::Chat;
use super::updates::{ChatTasks, ChatUpdate};
use crate::api::{JobOutputParams, JobParams, KillJob, ListJobs, MoveToBackground, MoveToBackgroundParams, ReadJob, SessionParams};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::terminal_text::output_line;
use crate::toolkit::jobs::JobDetails;

/// How often the jobs are read while one runs.
const READ: Duration = Duration::from_secs(1);

impl ChatTasks {
    /// Reports the jobs of a session until none runs or another session is watched. `known` are the
    /// numbers of those that ran before.
    pub(super) fn watch_jobs(&mut self, id: &SessionId, mut known: Vec<String>) {
        self.watch.cancel();
        self.watch = CancellationToken::new();
        let (client, updates, cancel) = (self.client.clone(), self.updates.clone(), self.watch.clone());
        let params = SessionParams { session_id: id.clone() };
        crate::task::spawn(async move {
            let watch = async {
                loop {
                    // A session that was deleted or cannot be read has no jobs.
                    let listed = client.call::<ListJobs>(params.clone()).await.map(|listed| listed.jobs).unwrap_or_default();
                    let (running, ended): (Vec<_>, Vec<_>) = listed.into_iter().partition(|job| job.running);
                    let running: Vec<String> = running.into_iter().map(|job| job.job).collect();
                    let ended: Vec<JobDetails> = ended.into_iter().filter(|job| known.contains(&job.job)).collect();
                    let is_over = running.is_empty();
                    if running != known || !ended.is_empty() {
                        known.clone_from(&running);
                        // Fails when the chat has ended.
                        let _ = updates.send(ChatUpdate::Jobs { running, ended }).await;
                    }
                    if is_over {
                        return;
                    }
                    tokio::time::sleep(READ).await;
                }
            };
            tokio::select! {
                () = watch => {}
                () = cancel.cancelled() => {}
            }
        });
    }
}

impl Chat {
    /// Runs `/jobs`: lists the jobs, shows the output of one, or kills it.
    pub(super) async fn jobs(&mut self, argument: &str) -> Result<()> {
        let (client, session_id) = (self.session.client.clone(), self.session.id.clone());
        let text = match argument.split_whitespace().collect::<Vec<_>>()[..] {
            [] => {
                let jobs = client.call::<ListJobs>(SessionParams { session_id }).await?.jobs;
                let rows: String = jobs.iter().map(|job| format!("{:<3} {:<14} {}\n", job.job, state(job), command(job))).collect();
                if rows.is_empty() { "no background jobs in this session\n".into() } else { rows }
            }
            ["kill", job] => {
                let job = client.call::<KillJob>(JobParams { session_id, job: job.into() }).await?;
                // The list of the jobs shows the exit code.
                format!("job {} ended: {}\n", job.job, command(&job))
            }
            [job] => {
                let part = client.call::<ReadJob>(JobOutputParams { session_id, job: job.into(), since: None }).await?;
                let text = format!("{}\n[{}]", part.text.trim_end(), state(&part.job));
                self.view.print_command(&part.job.command, text.trim_start());
                return Ok(());
            }
            _ => return Err(Error::invalid_params("/jobs: no arguments, a number, or: kill NUMBER")),
        };
        self.view.print(&text);
        Ok(())
    }

    /// Moves the running commands of the turn to the background.
    pub(super) async fn move_to_background(&mut self) -> Result<()> {
        if !self.view.shell.is_empty() {
            return Err(Error::invalid_params("a command of `!` cannot continue in the background").hint("Esc stops it"));
        }
        let params = MoveToBackgroundParams { session_id: self.session.id.clone(), tool_call_id: None };
        self.session.client.call::<MoveToBackground>(params).await.map(drop)
    }

    /// Shows how many jobs run, and which ones have ended.
    pub(super) fn show_jobs(&mut self, running: Vec<String>, ended: &[JobDetails]) {
        self.view.jobs = running;
        for job in ended {
            self.view.print(&format!("job {} {}: {}\n", job.job, state(job), command(job)));
        }
    }
}

fn state(job: &JobDetails) -> String {
    match (job.running, job.exit_code) {
        (true, _) => "runs".into(),
        (false, Some(code)) => format!("exit code {code}"),
        (false, None) => "killed".into(),
    }
}

fn command(job: &JobDetails) -> String {
    output_line(&job.command)
}
