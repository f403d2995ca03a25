//! The background jobs of a session: commands that keep running between calls. The number of jobs
//! and the amount of output kept are limited.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::capture::Capture;
use super::follow::{CommandEnd, OutputSink, follow};
use super::foreground::ForegroundCommands;
use super::output::ToolError;
use super::sandbox_notes::SandboxNotes;
use crate::limits;
use crate::process::{Child, Command, ProcessLauncher, Sandbox};
use crate::task::TaskTracker;
use crate::terminal_text::{PrintedText, printed};

/// Maximum number of concurrent background jobs per session.
const JOBS_MAX: usize = 8;
/// Maximum number of background jobs that a session remembers, including jobs that have ended.
const JOBS_KEPT_MAX: usize = 2 * JOBS_MAX;
/// Maximum size of a background job's latest output that is kept in memory, in bytes. The job's
/// output file has the rest.
const JOB_TAIL_BYTES_MAX: usize = 256 << 10;

/// The first byte of a control sequence.
const ESCAPE: u8 = 0x1b;
/// Maximum size of an incomplete control sequence that waits for its rest, in bytes.
const SEQUENCE_BYTES_MAX: usize = 256;

/// Maximum time to wait for a job to end. Killing the job's command has its own, shorter timeout.
const END: Duration = limits::END_WAIT.saturating_mul(2);

/// The jobs of a session. Dropping this value ends all jobs.
#[derive(Debug, Default)]
pub struct Jobs {
    table: Mutex<Table>,
    tasks: TaskTracker,
    cancel: CancellationToken,
    /// The commands that are not in the background: a call waits for each.
    pub(crate) foreground: Arc<ForegroundCommands>,
}

/// A command that becomes a job.
struct RunningJob {
    child: Child,
    sandbox: Option<Sandbox>,
    capture: Capture,
    timeout: Option<Duration>,
}

#[derive(Debug, Default)]
struct Table {
    /// Number of the last job.
    last: u32,
    jobs: BTreeMap<u32, Arc<Job>>,
}

/// A background job, running or ended.
#[derive(Debug)]
pub struct Job {
    pub number: u32,
    pub command: String,
    /// The file with the output, once it exceeds what a model sees at once.
    artifact: PathBuf,
    output: Mutex<JobOutput>,
    ended: watch::Sender<Option<JobEnd>>,
    cancel: CancellationToken,
}

/// A background job of a session.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobDetails {
    /// The job's number.
    pub job: String,
    pub command: String,
    pub running: bool,
    /// Absent while the job runs, and if it did not exit by itself.
    pub exit_code: Option<i32>,
    /// The file with the whole output, if it exceeds what a model sees at once.
    pub artifact: Option<PathBuf>,
    /// Byte of the output at which the next call continues.
    pub next: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct JobEnd {
    /// Exit code; `None` if the job did not exit by itself.
    pub code: Option<i32>,
    /// How the job ended, for the model.
    pub how: String,
    /// Notes on the sandbox.
    pub notes: SandboxNotes,
}

#[derive(Debug, Default)]
struct JobOutput {
    /// The end of the output.
    tail: Vec<u8>,
    /// Size of the whole output, in bytes.
    total: usize,
    /// Byte offset at which the last read ended.
    shown: usize,
}

pub(crate) struct JobOutputPart {
    pub text: String,
    /// Number of requested bytes before `text` that are no longer in memory.
    pub missed: usize,
    /// Byte offset of the next part.
    pub next: usize,
    /// Number of bytes available from `next` on.
    pub more: usize,
}

impl Jobs {
    /// Starts a command in the background and returns the job's number. `line` is the command as
    /// the model wrote it.
    pub(crate) fn start(
        &self,
        line: &str,
        command: &Command,
        launcher: &ProcessLauncher,
        artifact: PathBuf,
        timeout: Option<Duration>,
    ) -> Result<u32, ToolError> {
        let mut table = self.table.lock();
        self.check_open()?;
        if table.jobs.values().filter(|job| job.ended().is_none()).count() >= JOBS_MAX {
            let most = JOBS_MAX;
            return Err(ToolError(format!("bash: {most} background jobs are already running; end one of them with bash_kill")));
        }
        let child = launcher.spawn(command)?;
        let running = RunningJob { child, sandbox: command.sandbox.clone(), capture: Capture::new(artifact), timeout };
        Ok(self.add(&mut table, line, running, JobOutput::default()))
    }

    /// Continues a command as a background job, and returns the job's number. `capture` has its
    /// output so far, which a model has seen.
    pub(crate) fn adopt(&self, line: &str, child: Child, sandbox: Option<Sandbox>, capture: Capture) -> Result<u32, ToolError> {
        let mut table = self.table.lock();
        self.check_open()?;
        let (tail, total) = capture.end();
        let total = total.max(tail.len());
        let output = JobOutput { tail, total, shown: total };
        Ok(self.add(&mut table, line, RunningJob { child, sandbox, capture, timeout: None }, output))
    }

    fn check_open(&self) -> Result<(), ToolError> {
        match self.cancel.is_cancelled() {
            true => Err(ToolError::new("bash: the session is being closed")),
            false => Ok(()),
        }
    }

    fn add(&self, table: &mut Table, line: &str, running: RunningJob, output: JobOutput) -> u32 {
        while table.jobs.len() >= JOBS_KEPT_MAX
            && let Some(oldest) = table.jobs.values().find(|job| job.ended().is_some()).map(|job| job.number)
        {
            table.jobs.remove(&oldest);
        }
        table.last += 1;
        let number = table.last;
        let RunningJob { child, sandbox, capture, timeout } = running;
        let job = Arc::new(Job {
            number,
            command: line.into(),
            artifact: capture.path().into(),
            output: Mutex::new(output),
            ended: watch::Sender::new(None),
            cancel: self.cancel.child_token(),
        });
        table.jobs.insert(number, job.clone());
        self.tasks.spawn(async move {
            let mut sink = JobSink { capture, job };
            let end = follow(child, timeout, &sink.job.cancel.clone(), &mut sink).await;
            // The file is complete before the job is reported as ended.
            let JobSink { capture, job } = sink;
            capture.finish().await;
            let tail = String::from_utf8_lossy(&job.output.lock().tail).into_owned();
            job.ended.send_replace(Some(JobEnd::new(end, sandbox.as_ref(), &tail)));
        });
        number
    }

    /// Returns the job with this number. The number is a string as the model wrote it.
    pub(crate) fn get(&self, number: &str) -> Result<Arc<Job>, ToolError> {
        let table = self.table.lock();
        let job = number.trim().parse().ok().and_then(|number: u32| table.jobs.get(&number));
        job.cloned().ok_or_else(|| {
            let known: Vec<String> = table.jobs.keys().map(u32::to_string).collect();
            let known = if known.is_empty() { "no background jobs".into() } else { format!("jobs {}", known.join(", ")) };
            ToolError(format!("there is no job {number}; there are {known}"))
        })
    }

    /// Returns all jobs that are still in the table, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.table.lock().jobs.values().cloned().collect()
    }

    /// Returns the jobs that run, oldest first.
    pub(crate) fn running(&self) -> Vec<Arc<Job>> {
        self.all().into_iter().filter(|job| job.ended().is_none()).collect()
    }

    /// Ends all jobs and waits for them; no further job can start.
    pub async fn close(&self) {
        {
            // Waits for a concurrent `start`.
            let _table = self.table.lock();
            self.cancel.cancel();
        }
        self.tasks.close();
        if tokio::time::timeout(END, self.tasks.wait()).await.is_err() {
            tracing::warn!("a background job did not end");
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Job {
    /// Returns how the job ended; `None` while it runs.
    pub(crate) fn ended(&self) -> Option<JobEnd> {
        self.ended.borrow().clone()
    }

    /// Waits until the job has ended.
    pub(crate) async fn finished(&self) -> JobEnd {
        let mut ended = self.ended.subscribe();
        let ended = ended.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        ended.unwrap_or_else(|| JobEnd::unfinished("killed".into()))
    }

    /// Kills the job with all its processes, and waits until it has ended. Has no effect if the job
    /// has already ended. Returns `None` if the job does not end in time.
    pub(crate) async fn end(&self) -> Option<JobEnd> {
        self.cancel.cancel();
        let mut ended = self.ended.subscribe();
        let ended = tokio::time::timeout(END, ended.wait_for(Option::is_some)).await;
        ended.ok()?.ok()?.clone()
    }

    /// Returns the output from byte `since` on, by default from the end of the last read. The size
    /// is limited to `limits::BASH_MODEL_BYTES_MAX`.
    pub(crate) fn read(&self, since: Option<usize>) -> JobOutputPart {
        let since = since.unwrap_or_else(|| self.output.lock().shown);
        let part = self.part(since);
        self.output.lock().shown = part.next;
        part
    }

    /// Returns the output from byte `since` on, as [`Job::read`] does, for a reader that is not the
    /// model.
    pub(crate) fn part(&self, since: usize) -> JobOutputPart {
        // The status is read before the output, so that a job reported as ended has no more output.
        let over = self.ended().is_some();
        let output = self.output.lock();
        let first = output.total - output.tail.len();
        let since = since.min(output.total);
        let from = since.max(first);
        let rest = &output.tail[from - first..];
        let mut part = &rest[..rest.len().min(limits::BASH_MODEL_BYTES_MAX)];
        // Omits an incomplete character at the end, because the rest of it may still arrive.
        if let Err(error) = std::str::from_utf8(part)
            && error.error_len().is_none()
            && (part.len() < rest.len() || !over)
        {
            part = &part[..error.valid_up_to()];
        }
        // Omits an incomplete control sequence for the same reason.
        if let Some(begin) = open_sequence(part)
            && (part.len() < rest.len() || !over)
        {
            part = &part[..begin];
        }
        let (text, next) = (printed(part), from + part.len());
        JobOutputPart { text, missed: from - since, next, more: output.total - next }
    }

    /// Returns the file with the whole output, if the output is longer than a model receives at
    /// once.
    pub(crate) fn artifact(&self) -> Option<&PathBuf> {
        (self.output.lock().total > limits::BASH_MODEL_BYTES_MAX).then_some(&self.artifact)
    }

    /// Returns the job as details of a call.
    pub(crate) fn details(&self) -> JobDetails {
        let ended = self.ended();
        JobDetails {
            job: self.number.to_string(),
            command: self.command.clone(),
            running: ended.is_none(),
            exit_code: ended.and_then(|ended| ended.code),
            artifact: self.artifact().cloned(),
            next: None,
        }
    }
}

impl JobEnd {
    fn unfinished(how: String) -> JobEnd {
        JobEnd { code: None, how, notes: SandboxNotes::default() }
    }

    fn new(end: CommandEnd, sandbox: Option<&Sandbox>, output: &str) -> JobEnd {
        match end {
            CommandEnd::Exited(status) => JobEnd {
                code: Some(status.code),
                how: format!("exit code: {}", status.code),
                notes: sandbox.map(|sandbox| SandboxNotes::new(sandbox, &status, output)).unwrap_or_default(),
            },
            CommandEnd::Cancelled => JobEnd::unfinished("killed".into()),
            CommandEnd::TimedOut => JobEnd::unfinished("timed out".into()),
            CommandEnd::Failed(ToolError(why)) => JobEnd::unfinished(why),
        }
    }
}

/// Returns where the control sequence begins with which the output ends, if it is incomplete.
fn open_sequence(output: &[u8]) -> Option<usize> {
    let begin = memchr::memrchr(ESCAPE, output).filter(|begin| output.len() - begin < SEQUENCE_BYTES_MAX)?;
    let mut sequence = PrintedText::default();
    sequence.push(&output[begin..]);
    sequence.is_in_sequence().then_some(begin)
}

/// Stores a job's output: the end in memory, and the whole output in a file if it is long.
struct JobSink {
    job: Arc<Job>,
    capture: Capture,
}

impl OutputSink for JobSink {
    async fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes).await;
        let mut output = self.job.output.lock();
        output.total += bytes.len();
        output.tail.extend_from_slice(bytes);
        let over = output.tail.len().saturating_sub(JOB_TAIL_BYTES_MAX);
        output.tail.drain(..over);
    }

    fn has_new_output(&self) -> bool {
        false
    }

    fn show(&mut self) {}
}
