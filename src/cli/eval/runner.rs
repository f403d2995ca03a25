//! Runs tasks and probes with models and agents, and records the results.

use std::fs::File;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::child_run::{AgentRunEnd, RunSetup};
use super::harm::Harm;
use super::line::{ResultLines, RunClass, RunKey, RunLine, RunUse, append, subject};
use super::probe::Probe;
use super::probe_request::ProbeRequests;
use super::proof::Proof;
use super::setup::RunPlan;
use super::snapshot::Snapshot;
use super::task::EvalTask;
use super::workbench::{Verdict, Workbench};
use crate::app::on_signal;
use crate::cli::flags::eval_options::EvalOptions;
use crate::cli::terminal::output::print_stderr;
use crate::content::StopReason;
use crate::error::{Error, Result};
use crate::terminal_text::output_line;

const PROBE_LIMIT: Duration = Duration::from_secs(300);

/// A task or a probe that is measured.
pub(super) enum Subject {
    /// A task with its proof.
    Task(Box<(EvalTask, Proof)>),
    Probe(Box<Probe>),
}

/// Runs tasks and probes with models and agents.
pub(super) struct Runner<'a> {
    bench: &'a Workbench,
    prepared: RunPlan,
    /// The requests of probes, if there are probes.
    requests: Option<ProbeRequests>,
    runs: u32,
    timeout: Option<Duration>,
    /// Dollars that may still be spent.
    left: Option<f64>,
    /// The results of this invocation, and equal ones of earlier ones.
    done: ResultLines,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RunnerEnd {
    Complete,
    /// `--max-cost` was reached.
    Spent,
    Interrupted,
}

impl Subject {
    fn name(&self) -> (&str, &str) {
        match self {
            Subject::Task(task) => (&task.0.name, &task.0.digest),
            Subject::Probe(probe) => (&probe.name, &probe.digest),
        }
    }
}

impl<'a> Runner<'a> {
    /// Creates a runner that has run nothing. `requests` is needed for probes.
    pub(super) fn new(
        bench: &'a Workbench,
        prepared: RunPlan,
        requests: Option<ProbeRequests>,
        options: &EvalOptions,
    ) -> Runner<'a> {
        Runner {
            bench,
            prepared,
            requests,
            runs: options.runs,
            timeout: options.timeout.map(Duration::from_secs),
            left: options.max_cost,
            done: ResultLines::default(),
        }
    }

    /// Ends what requests of probes started.
    pub(super) async fn shut_down(&self) {
        if let Some(requests) = &self.requests {
            requests.shut_down().await;
        }
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = &RunLine> {
        self.done.iter()
    }

    /// Runs everything, except for runs with a known result.
    pub(super) async fn run(&mut self, subjects: &[Subject], (mut file, known): (Option<File>, ResultLines)) -> Result<RunnerEnd> {
        let interrupted = CancellationToken::new();
        crate::task::spawn(on_signal(interrupted.clone()));
        for (run, at) in (1..=self.runs).flat_map(|run| (0..subjects.len()).map(move |at| (run, at))) {
            let subject = &subjects[at];
            for index in 0..self.prepared.setups.len() {
                let key = self.key(index, subject, run);
                if let Some(line) = known.result(&key) {
                    self.done.add(line.clone());
                    continue;
                }
                if self.left.is_some_and(|left| left <= 0.0) {
                    return Ok(RunnerEnd::Spent);
                }
                let line = tokio::select! {
                    biased;
                    () = interrupted.cancelled() => return Ok(RunnerEnd::Interrupted),
                    line = self.attempt(index, key, subject) => line,
                };
                report(&line);
                if let (Some(left), Some(cost)) = (&mut self.left, line.used.cost) {
                    *left -= cost;
                }
                if let Some(file) = &mut file {
                    append(file, &line)?;
                }
                self.done.add(line);
            }
        }
        Ok(RunnerEnd::Complete)
    }

    fn key(&self, index: usize, subject: &Subject, run: u32) -> RunKey {
        let ((setup, versions), (name, digest)) = (&self.prepared.setups[index], subject.name());
        RunKey {
            task: name.into(),
            digest: digest.into(),
            model: setup.model.clone(),
            agent: setup.agent.clone(),
            versions: versions.clone(),
            settings: self.prepared.settings.clone(),
            run,
        }
    }

    /// Measures once. A failure of the run itself is a line of the class `error`.
    async fn attempt(&self, index: usize, key: RunKey, subject: &Subject) -> RunLine {
        let setup = &self.prepared.setups[index].0;
        let network = setup.is_hosted().then(|| "open".to_owned());
        let used = RunUse::default();
        let mut line = RunLine { key, class: RunClass::Error, reason: None, used, network, harm: None };
        let measured = match subject {
            Subject::Task(task) => self.task(setup, (&task.0, &task.1), &mut line).await,
            Subject::Probe(probe) => self.probe(setup, probe, &mut line).await,
        };
        if let Err(error) = measured {
            (line.class, line.reason) = (RunClass::Error, Some(error.message));
        }
        line
    }

    /// Runs a task and its test, and completes the line.
    async fn task(&self, setup: &RunSetup, (task, proof): (&EvalTask, &Proof), line: &mut RunLine) -> Result<()> {
        let bench = self.bench;
        bench.prepare(task).await?;
        let before = Snapshot::read(bench).await?;
        let uncommitted = before.uncommitted(bench).await?;
        let limit = self.timeout.unwrap_or(task.agent_limit);
        let AgentRunEnd { used, answer, claims, timed_out, error } = setup.run(bench, &task.instruction, limit, self.left).await?;
        line.used = used;
        let after = Snapshot::read(bench).await?;
        line.harm = Some(Harm { claims, ..Harm::new(task, &proof.solution, (&before, &uncommitted), &after) });
        if let Some(error) = error {
            return Err(Error::internal(error));
        }
        let has_spent = |left: f64| line.used.cost.is_some_and(|cost| cost >= left);
        if line.used.stop_reason == Some(StopReason::MaxTurnRequests) && self.left.is_some_and(has_spent) {
            return Err(Error::internal("--max-cost ended the run"));
        }
        bench.write_answer(&answer).await?;
        (line.class, line.reason) = match bench.test(task).await?.0 {
            _ if timed_out => (RunClass::Timeout, None),
            Verdict::Solved => (RunClass::Solved, None),
            Verdict::Failed => (RunClass::Failed, None),
            // The proof showed that test.sh decides, so the work made it fail.
            Verdict::Undecided(why) => (RunClass::Failed, Some(why)),
        };
        Ok(())
    }

    /// Sends the request of a probe, and completes the line.
    async fn probe(&self, setup: &RunSetup, probe: &Probe, line: &mut RunLine) -> Result<()> {
        let (Some(requests), Some(model)) = (&self.requests, &setup.model) else {
            return Err(Error::internal("a probe without a model"));
        };
        let limit = self.timeout.unwrap_or(PROBE_LIMIT);
        let answer = match tokio::time::timeout(limit, requests.answer(model, probe, &mut line.used)).await {
            Ok(answer) => answer?,
            Err(_) => {
                line.class = RunClass::Timeout;
                return Ok(());
            }
        };
        match probe.judge(&answer) {
            Ok(()) => line.class = RunClass::Solved,
            Err(why) => (line.class, line.reason) = (RunClass::Failed, Some(why)),
        }
        Ok(())
    }
}

/// Prints a line about a run to standard error.
fn report(line: &RunLine) {
    let RunLine { key, class, used, .. } = line;
    let class = match class {
        RunClass::Solved => "solved",
        RunClass::Failed => "failed",
        RunClass::Timeout => "timeout",
        RunClass::Error => "error",
    };
    let harm = line.harm.as_ref().filter(|harm| !harm.is_none()).map(|_| ", harm").unwrap_or_default();
    let why = line.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let (task, run, requests, seconds) = (&key.task, key.run, used.requests, used.seconds);
    let requests = if requests == 1 { "1 request".to_owned() } else { format!("{requests} requests") };
    let text = format!("{task}, {}, run {run}: {class}, {requests}, {seconds:.1} s{harm}{why}", subject(key));
    print_stderr(output_line(&text) + "\n");
}
