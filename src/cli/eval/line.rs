//! The results: a line of JSON per run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::harm::Harm;
use crate::content::StopReason;
use crate::error::{Error, Result};

/// All that names a run.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunKey {
    /// The name of the task or of the probe.
    pub task: String,
    /// The digest of its files.
    pub digest: String,
    /// Missing for a hosted agent.
    pub model: Option<String>,
    /// `nuncio`, or the name of a hosted agent.
    pub agent: String,
    pub versions: Versions,
    /// The digest of the settings and limits.
    pub settings: String,
    /// The number of the run, from 1.
    pub run: u32,
}

/// The programs of a run.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Versions {
    pub nuncio: String,
    /// The digest of nuncio's program: system prompt and tools can differ in one version.
    pub program: String,
    /// The version that a hosted agent reports.
    pub agent: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RunClass {
    Solved,
    Failed,
    /// It reached its time limit.
    Timeout,
    /// The provider, the start or test.sh failed: it says nothing about model and agent.
    Error,
}

#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunTokens {
    /// All input tokens, cached or not.
    #[serde(rename = "in")]
    pub input: u64,
    /// Input tokens from the provider's cache.
    pub cached: u64,
    #[serde(rename = "out")]
    pub output: u64,
}

/// The amounts that a run used.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RunUse {
    /// Missing if the turn did not complete.
    pub stop_reason: Option<StopReason>,
    /// Model requests, with those of subagents.
    pub requests: u64,
    pub tokens: RunTokens,
    /// US dollars; missing if no price is known.
    pub cost: Option<f64>,
    pub seconds: f64,
    pub session_id: Option<String>,
}

/// A line of the results.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunLine {
    #[serde(flatten)]
    pub key: RunKey,
    pub class: RunClass,
    /// Why the class is `error`, or what the model or agent did not do.
    pub reason: Option<String>,
    #[serde(flatten)]
    pub used: RunUse,
    /// `open` for a hosted agent, whose network is not closed.
    pub network: Option<String>,
    /// Missing for probes, and for a run that did not start.
    pub harm: Option<Harm>,
}

/// Returns the names of model and agent of a run, as people write them.
pub(super) fn subject(key: &RunKey) -> String {
    match &key.model {
        Some(model) if key.agent == crate::config::NATIVE => model.clone(),
        Some(model) => format!("{} ({model})", key.agent),
        None => key.agent.clone(),
    }
}

/// The newest line of each run. An error does not replace a result.
#[derive(Debug, Default)]
pub(super) struct ResultLines {
    lines: BTreeMap<RunKey, RunLine>,
    /// Versions and settings of the newest line of each model and agent.
    newest: BTreeMap<String, (Versions, String)>,
}

impl ResultLines {
    pub(super) fn read(path: &Path) -> Result<ResultLines> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(format_args!("reading {}", path.display()), error))?;
        ResultLines::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<ResultLines> {
        let mut lines = ResultLines::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let invalid = |error| Error::invalid_params(format!("{}, line {}: {error}", path.display(), number + 1));
            lines.add(serde_json::from_str(line).map_err(invalid)?);
        }
        Ok(lines)
    }

    /// Adds a line. A later line of the same run replaces an earlier error.
    pub(super) fn add(&mut self, line: RunLine) {
        self.newest.insert(subject(&line.key), (line.key.versions.clone(), line.key.settings.clone()));
        match self.lines.get(&line.key) {
            Some(known) if known.class != RunClass::Error => {}
            _ => drop(self.lines.insert(line.key.clone(), line)),
        }
    }

    /// Returns the line of a run that needs no repetition.
    pub(super) fn result(&self, key: &RunKey) -> Option<&RunLine> {
        self.lines.get(key).filter(|line| line.class != RunClass::Error)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RunLine> {
        self.lines.values()
    }

    /// Returns the lines with the newest versions and settings of each model and agent.
    pub(super) fn newest(&self) -> impl Iterator<Item = &RunLine> {
        let is_newest = |line: &&RunLine| {
            let (versions, settings) = (&line.key.versions, &line.key.settings);
            self.newest.get(&subject(&line.key)).is_some_and(|newest| (&newest.0, &newest.1) == (versions, settings))
        };
        self.lines.values().filter(is_newest)
    }
}

const START: &[u8] = b"{\"task\":";

/// Opens a file of results for appending, and reads it. A line that a killed process did not finish
/// is removed.
pub(super) fn open_results(path: &Path) -> Result<(File, ResultLines)> {
    let failed = |error| Error::io(format_args!("opening {}", path.display()), error);
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    let complete = memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1);
    let (whole, rest) = text.split_at(complete);
    // Before anything is changed: the file may be another one.
    let mut known = ResultLines::parse(path, &String::from_utf8_lossy(whole))?;
    let last = serde_json::from_slice::<RunLine>(rest).ok();
    if last.is_none() && !rest.starts_with(START) && !START.starts_with(rest) {
        return Err(Error::invalid_params(format!("{}: the last line is no result", path.display())));
    }
    let mut file = File::options().append(true).create(true).open(path).map_err(failed)?;
    match last {
        Some(line) => {
            file.write_all(b"\n").map_err(failed)?;
            known.add(line);
        }
        None => file.set_len(complete as u64).map_err(failed)?,
    }
    Ok((file, known))
}

pub(super) fn append(file: &mut File, line: &RunLine) -> Result<()> {
    let text = serde_json::to_string(line).map_err(|error| Error::internal(format!("writing a result: {error}")))?;
    file.write_all((text + "\n").as_bytes()).map_err(|error| Error::io("writing a result", error))
}
