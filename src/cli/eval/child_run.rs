//! A run: this program as `nuncio run`, in the task's directory.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::line::{RunTokens, RunUse};
use super::workbench::Workbench;
use crate::config::{DEPTH_VARIABLE, HIDDEN_VARIABLE, NATIVE};
use crate::content::Usage;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event, Notice, TurnFailure};
use crate::limits;
use crate::model::{Cause, FailureInfo};
use crate::process::{Child, Command, Output};
use crate::session::WorkView;
use crate::session::claims::CLAIMS;
use crate::session::folds::turns::{TurnRecords, TurnStatus};

/// Maximum number of bytes of the errors that are kept.
const ERRORS_BYTES_MAX: usize = 4 << 10;

/// The program and the flags of a run, the same for all tasks.
#[derive(Clone, Debug)]
pub(super) struct RunSetup {
    pub program: PathBuf,
    pub model: Option<String>,
    /// `nuncio`, or the name of a hosted agent.
    pub agent: String,
    /// The settings file of the runs.
    pub settings: PathBuf,
    /// Flags that are passed on.
    pub flags: Vec<OsString>,
    /// Variables with keys, which nuncio does not pass to commands, and the user's home directory
    /// for a hosted agent, which keeps its login there.
    pub variables: Vec<(String, String)>,
}

#[derive(Debug, Default)]
pub(super) struct AgentRunEnd {
    pub used: RunUse,
    pub answer: String,
    /// Claims of the answers that the calls contradict.
    pub claims: u64,
    pub timed_out: bool,
    /// Why the run says nothing about model and agent.
    pub error: Option<String>,
}

/// The events of a run, added up.
#[derive(Default)]
struct EventTotals {
    session: Option<String>,
    turns: TurnRecords,
    view: WorkView,
    claims: u64,
}

impl RunSetup {
    /// Returns whether the agent is not nuncio's own.
    pub(super) fn is_hosted(&self) -> bool {
        self.agent != NATIVE
    }

    fn command(&self, bench: &Workbench, max_cost: Option<f64>) -> Result<Command> {
        let mut words: Vec<OsString> = vec![self.program.clone().into(), "run".into(), "--output-format".into()];
        words.extend(["stream-json", "--mode", "auto", "--config"].map(OsString::from));
        words.push(self.settings.clone().into());
        words.extend(self.model.iter().flat_map(|model| ["--model".into(), model.into()]));
        words.extend(self.is_hosted().then(|| ["--agent".into(), OsString::from(&self.agent)]).into_iter().flatten());
        words.extend(max_cost.iter().flat_map(|dollars| ["--max-cost".into(), dollars.to_string().into()]));
        words.extend(self.flags.iter().cloned());
        self.environment(bench, Command::program(words, bench.task()))
    }

    /// Sets the environment of nuncio in a run.
    fn environment(&self, bench: &Workbench, command: Command) -> Result<Command> {
        let hidden = std::env::join_paths(bench.private())
            .map_err(|_| Error::invalid_params("the paths of tasks and results must not contain a colon"))?;
        let command = bench.environment(command).env("NUNCIO_HOME", bench.data()).env(HIDDEN_VARIABLE, hidden);
        // The run is no subagent.
        let command = command.env(DEPTH_VARIABLE, "0");
        Ok(self.variables.iter().fold(command, |command, (name, value)| command.env(name, value)))
    }

    /// Trusts the directory of the task, in which a hosted agent does not start otherwise.
    async fn trust(&self, bench: &Workbench) -> Result<()> {
        let words =
            ["trust".into(), "--yes".into(), bench.task().into_os_string(), "--config".into(), self.settings.clone().into()];
        let words: Vec<OsString> = [vec![self.program.clone().into()], words.to_vec()].concat();
        let mut child = bench.launcher().spawn(&self.environment(bench, Command::program(words, bench.task()))?)?;
        let output = tail(&mut child.output).await;
        match child.wait().await?.code {
            0 => Ok(()),
            code => Err(Error::internal(format!("nuncio trust ended with exit code {code}: {output}"))),
        }
    }

    /// Runs the prompt until it ends or reaches its limit. Then no process of it is left.
    pub(super) async fn run(&self, bench: &Workbench, prompt: &str, limit: Duration, max_cost: Option<f64>) -> Result<AgentRunEnd> {
        if self.is_hosted() {
            self.trust(bench).await?;
        }
        let started = Instant::now();
        let (Child { mut output, mut ending }, mut input, mut errors) =
            bench.launcher().spawn_captured(&self.command(bench, max_cost)?)?;
        let prompt = prompt.to_owned();
        let writing = async move {
            use tokio::io::AsyncWriteExt;
            // A process that ended early is reported by its exit code.
            let _ = input.write_all(prompt.as_bytes()).await;
        };
        let mut totals = EventTotals::default();
        let mut pending = Vec::new();
        let (reading, deadline) = (async { tokio::join!(writing, tail(&mut errors)).1 }, started + limit);
        let mut reading = std::pin::pin!(reading);
        let mut said = None;
        let timed_out = loop {
            tokio::select! {
                biased;
                text = &mut reading, if said.is_none() => said = Some(text),
                read = output.read(&mut pending) => match read {
                    Ok(1..) => totals.lines(&mut pending),
                    _ => break false,
                },
                () = tokio::time::sleep_until(deadline.into()) => break true,
            }
        };
        if timed_out {
            ending.cut();
        }
        let status = tokio::time::timeout(limits::END_WAIT, ending.wait()).await;
        let status = status.map_err(|_| Error::internal("the processes of a run are still running after its end"))??;
        if timed_out {
            while output.read(&mut pending).await.is_ok_and(|read| read > 0) {
                totals.lines(&mut pending);
            }
        }
        let said = match said {
            Some(said) => said,
            None => reading.await,
        };
        Ok(totals.end((timed_out, status.code, &said), started.elapsed().as_secs_f64(), self.is_hosted()))
    }
}

/// Reads an output to its end, and returns its last lines.
async fn tail(output: &mut Output) -> String {
    let mut text = Vec::new();
    while output.read(&mut text).await.is_ok_and(|read| read > 0) {
        if text.len() > 2 * ERRORS_BYTES_MAX {
            text.drain(..text.len() - ERRORS_BYTES_MAX);
        }
    }
    String::from_utf8_lossy(&text).trim().to_owned()
}

impl EventTotals {
    /// Adds the complete lines of `pending`, and removes them.
    fn lines(&mut self, pending: &mut Vec<u8>) {
        let Some(end) = memchr::memrchr(b'\n', pending) else { return };
        let rest = pending.split_off(end + 1);
        for line in std::mem::replace(pending, rest).split(|byte| *byte == b'\n') {
            if let Ok(event) = serde_json::from_slice::<Event>(line) {
                self.event(&event);
            }
        }
    }

    fn event(&mut self, event: &Event) {
        self.session.get_or_insert_with(|| event.session_id.as_str().to_owned());
        self.turns.apply(event);
        self.view.apply(event);
        if let Body::Notice(Notice { code: Some(code), description: Some(description), .. }) = &event.body
            && code == CLAIMS
        {
            self.claims += description.lines().count() as u64;
        }
    }

    /// Returns the end of the run. `said` is the end of its errors. A hosted agent does not say
    /// whether the model or its provider failed.
    fn end(self, (timed_out, code, said): (bool, i32, &str), seconds: f64, is_hosted: bool) -> AgentRunEnd {
        let turns = self.turns.after(0);
        let (usage, cost) = self.turns.total();
        let Usage { input_tokens: input, output_tokens: output, cache_read_tokens: cached, .. } = usage.unwrap_or_default();
        let last = turns.last().map(|last| &last.turn);
        let error = match last.map(|last| (last.status, &last.error)) {
            _ if timed_out => None,
            Some((_, Some(failure))) if !is_hosted && is_fault_of_model(failure) => None,
            Some((_, Some(failure))) => Some(failure.message.clone()),
            Some((TurnStatus::Completed | TurnStatus::Cancelled, _)) => None,
            _ => Some(format!("nuncio run ended with exit code {code}: {said}")),
        };
        let used = RunUse {
            stop_reason: last.and_then(|last| last.stop_reason),
            requests: turns.iter().map(|turn| turn.requests + turn.children.requests).sum(),
            tokens: RunTokens { input, cached, output },
            cost: cost.map(|cost| cost.dollars()),
            seconds: (seconds * 1000.0).round() / 1000.0,
            session_id: self.session,
        };
        AgentRunEnd { used, answer: self.view.into_answer(), claims: self.claims, timed_out, error }
    }
}

/// Returns whether a turn failed by what the model answered. Failures of the provider have another
/// cause.
fn is_fault_of_model(failure: &TurnFailure) -> bool {
    match FailureInfo::read(failure.info.as_ref()) {
        Some(info) => matches!(info.cause, Cause::ContextOverflow { .. } | Cause::ContentFilter),
        None => failure.code == Kind::ModelError.row().code,
    }
}
