//! The background jobs of a session: commands that run on between calls, bounded in number and in what is kept of their output.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ToolError;
use super::bash::confinement;
use super::capture::Capture;
use super::follow::{End, Sink, follow};
use crate::limits;
use crate::process::{Command, Sandbox, Supervisor};

/// The commands have their own bound, which is shorter.
const END: Duration = limits::END_WAIT.saturating_mul(2);

/// Dropping it ends them all.
#[derive(Debug, Default)]
pub struct Jobs {
    table: Mutex<Table>,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

#[derive(Debug, Default)]
struct Table {
    last: u32,
    jobs: BTreeMap<u32, Arc<Job>>,
}

#[derive(Debug)]
pub struct Job {
    pub number: u32,
    pub command: String,
    /// Where its output is as soon as it is more than a model is shown at once.
    artifact: PathBuf,
    said: Mutex<Said>,
    ended: watch::Sender<Option<Ended>>,
    cancel: CancellationToken,
}

/// How a job ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// None: it did not end by itself.
    pub code: Option<i32>,
    /// For the model.
    pub how: String,
    /// What it should know of the sandbox, in lines.
    pub notes: String,
}

#[derive(Debug, Default)]
struct Said {
    /// The last bytes of it.
    tail: Vec<u8>,
    total: usize,
    /// Where the last reader stopped.
    shown: usize,
}

/// A part of a job's output.
pub struct Part {
    pub text: String,
    /// Bytes before it that are not held any more.
    pub missed: usize,
    /// Where the next part begins.
    pub next: usize,
    /// Bytes that are there already, from `next` on.
    pub more: usize,
}

impl Jobs {
    /// Starts a command that nobody waits for; `line` is what the model wrote. Gives its number.
    pub fn start(
        &self,
        line: &str,
        command: &Command,
        supervisor: &Supervisor,
        artifact: PathBuf,
        timeout: Option<Duration>,
    ) -> Result<u32, ToolError> {
        let mut table = self.table();
        if self.cancel.is_cancelled() {
            return Err(ToolError::new("bash: the session is being closed"));
        }
        if table.jobs.values().filter(|job| job.ended().is_none()).count() >= limits::JOBS_MAX {
            let most = limits::JOBS_MAX;
            return Err(ToolError(format!("bash: {most} background jobs run already; end one of them with bash_kill")));
        }
        let (child, sandbox) = (supervisor.spawn(command)?, command.sandbox.clone());
        while table.jobs.len() >= limits::JOBS_KEPT_MAX
            && let Some(oldest) = table.jobs.values().find(|job| job.ended().is_some()).map(|job| job.number)
        {
            table.jobs.remove(&oldest);
        }
        table.last += 1;
        let number = table.last;
        let job = Arc::new(Job {
            number,
            command: line.into(),
            artifact: artifact.clone(),
            said: Mutex::default(),
            ended: watch::Sender::new(None),
            cancel: self.cancel.child_token(),
        });
        table.jobs.insert(number, job.clone());
        self.tasks.spawn(async move {
            let mut kept = Kept { capture: Capture::new(artifact), job };
            let end = follow(child, timeout, &kept.job.cancel.clone(), &mut kept).await;
            // The file is whole before anybody hears that the job is over.
            let Kept { capture, job } = kept;
            capture.finish().await;
            job.ended.send_replace(Some(Ended::of(end, sandbox.as_ref())));
        });
        Ok(number)
    }

    /// `number` as a model wrote it.
    pub fn get(&self, number: &str) -> Result<Arc<Job>, ToolError> {
        let table = self.table();
        let job = number.trim().parse().ok().and_then(|number: u32| table.jobs.get(&number));
        job.cloned().ok_or_else(|| {
            let known: Vec<String> = table.jobs.keys().map(u32::to_string).collect();
            let known = if known.is_empty() { "no background jobs".into() } else { format!("jobs {}", known.join(", ")) };
            ToolError(format!("there is no job {number}; there are {known}"))
        })
    }

    pub fn all(&self) -> Vec<Arc<Job>> {
        self.table().jobs.values().cloned().collect()
    }

    /// Ends all of them and waits for that; none begins any more.
    pub async fn close(&self) {
        {
            // Behind a start that is under way.
            let _table = self.table();
            self.cancel.cancel();
        }
        self.tasks.close();
        if tokio::time::timeout(END, self.tasks.wait()).await.is_err() {
            tracing::warn!("a background job does not end");
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Job {
    /// None: it runs.
    pub fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    /// Ends it, with all that it started. One that had ended before stays as it was. None: it does not end.
    pub async fn end(&self) -> Option<Ended> {
        self.cancel.cancel();
        let mut ended = self.ended.subscribe();
        let ended = tokio::time::timeout(END, ended.wait_for(Option::is_some)).await;
        ended.ok()?.ok()?.clone()
    }

    /// What it said from byte `since` on, or from where the last reader stopped: as much as a model is shown at once.
    pub fn read(&self, since: Option<usize>) -> Part {
        // In this order: whoever sees the end has seen all that was said before.
        let over = self.ended().is_some();
        let mut said = self.said();
        let held = said.total - said.tail.len();
        let since = since.unwrap_or(said.shown).min(said.total);
        let from = since.max(held);
        let rest = &said.tail[from - held..];
        let mut part = &rest[..rest.len().min(limits::BASH_MODEL_BYTES_MAX)];
        // The rest of a character may still come.
        if let Err(error) = std::str::from_utf8(part)
            && error.error_len().is_none()
            && (part.len() < rest.len() || !over)
        {
            part = &part[..error.valid_up_to()];
        }
        let (text, next) = (String::from_utf8_lossy(part).into_owned(), from + part.len());
        said.shown = next;
        Part { text, missed: from - since, next, more: said.total - next }
    }

    /// The file that holds the whole, where that is more than a model is shown at once.
    pub fn artifact(&self) -> Option<&PathBuf> {
        (self.said().total > limits::BASH_MODEL_BYTES_MAX).then_some(&self.artifact)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ended {
    fn of(end: End, sandbox: Option<&Sandbox>) -> Ended {
        let unfinished = |how: String| Ended { code: None, how, notes: String::new() };
        match end {
            End::Itself(status) => Ended {
                code: Some(status.code),
                how: format!("exit code: {}", status.code),
                notes: sandbox.map(|sandbox| confinement(sandbox, &status)).unwrap_or_default(),
            },
            End::Cancelled => unfinished("it was ended".into()),
            End::TimedOut => unfinished("it timed out and was ended".into()),
            End::Failed(ToolError(why)) => unfinished(why),
        }
    }
}

/// Where a job's output goes: the last of it for readers, all of it into the file.
struct Kept {
    job: Arc<Job>,
    capture: Capture,
}

impl Sink for Kept {
    async fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes).await;
        let mut said = self.job.said();
        said.total += bytes.len();
        said.tail.extend_from_slice(bytes);
        let over = said.tail.len().saturating_sub(limits::JOB_TAIL_BYTES_MAX);
        said.tail.drain(..over);
    }

    fn has_news(&self) -> bool {
        false
    }

    fn show(&mut self) {}
}
