//! A recording of a session as files: what was done with the session, and the answers of its model.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{Part, PermissionOptionKind};
use crate::error::{Error, Result};
use crate::event::{Delivery, SessionChange};
use crate::options::Mode;
use crate::runtime::RecordedResult;

/// Version of the format.
const FORMAT: u32 = 1;

/// Files and directories of a recording.
pub(super) const SESSION: &str = "session.json";
pub(super) const SCRIPT: &str = "script.json";
pub(super) const SETTINGS: &str = "settings.toml";
pub(super) const RECORDED: &str = "recorded.json";
/// Specifications of tools that a replay cannot run.
pub(super) const UNAVAILABLE: &str = "tools.json";
/// The files of the commit at the start, and the files that differed from it.
pub(super) const COMMIT: &str = "start/commit";
pub(super) const CHANGED: &str = "start/changed";
/// Instructions, commands, skills and agents of the user.
pub(super) const USER: &str = "start/user";

/// The sections of the settings that are in a recording. Others name programs, servers and keys.
pub(super) const SECTIONS: [&str; 10] =
    ["budget", "context", "hooks", "instructions", "permissions", "retry", "review", "sandbox", "tools", "verify"];
/// The actions of the clients of a session, and its start.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RecordedSession {
    format: u32,
    /// The version of nuncio that made the recording.
    pub nuncio: String,
    /// The day on which the session began.
    pub date: String,
    pub model: String,
    /// The context windows of the models, in tokens.
    pub windows: BTreeMap<String, u64>,
    pub mode: Mode,
    /// Settings of the session.
    #[serde(flatten)]
    pub change: SessionChange,
    /// True if a client could answer questions.
    pub attended: bool,
    /// True if the project's settings were trusted.
    pub trusted: bool,
    /// Missing outside of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<StartRepository>,
    pub actions: Vec<Action>,
    /// The answers to permission requests, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// The steps that were cancelled while the model answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancelled_steps: Vec<usize>,
    /// Files that are not compared, because their content varies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub varying_files: Vec<String>,
    /// Calls that do not run: their results are in `recorded.json`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recorded: BTreeMap<String, RecordedCall>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StartRepository {
    pub branch: String,
    /// Files of the commit that were missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<PathBuf>,
}

/// A call that is answered from the record, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedCall {
    pub tool: String,
    pub why: String,
}

/// Something that a client did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Action {
    pub at: Moment,
    #[serde(flatten)]
    pub act: Act,
}

/// When a client did something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Moment {
    /// While no turn ran, after this number of turns.
    Turns(usize),
    /// Before the answer of the step with this number, from 1.
    Step(usize),
    /// While the call ran, or waited for permission.
    Call(String),
}

/// An action of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Act {
    Prompt { parts: Vec<Part> },
    Message { parts: Vec<Part>, delivery: Delivery, auto_run: bool },
    Mode { mode: Mode },
    Model { model: String },
    Thinking { level: String },
    Cancel,
}

/// An answer to a permission request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Answer {
    /// The call; missing for a request about no call of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    pub outcome: PermissionOptionKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The recorded results, by the ids of their calls.
pub(super) type Results = BTreeMap<String, RecordedResult>;

impl RecordedSession {
    /// Creates a recording without actions.
    pub(super) fn new(date: String, model: String, mode: Mode, change: SessionChange) -> RecordedSession {
        RecordedSession {
            format: FORMAT,
            nuncio: env!("CARGO_PKG_VERSION").into(),
            date,
            model,
            windows: BTreeMap::new(),
            mode,
            change,
            attended: false,
            trusted: false,
            repository: None,
            actions: Vec::new(),
            answers: Vec::new(),
            cancelled_steps: Vec::new(),
            varying_files: Vec::new(),
            recorded: BTreeMap::new(),
        }
    }

    pub(super) fn read(dir: &Path) -> Result<RecordedSession> {
        if !dir.join(SESSION).is_file() {
            let message = format!("{} is not a recording: it has no {SESSION}", dir.display());
            return Err(Error::invalid_params(message).hint("nuncio sessions export ID --scripted DIR"));
        }
        check_files(dir)?;
        let recording: RecordedSession = read_json(&dir.join(SESSION))?;
        if recording.format != FORMAT {
            let format = recording.format;
            return Err(Error::invalid_params(format!(
                "{}: format {format} is unknown to this version of nuncio, which reads format {FORMAT}",
                dir.display()
            )));
        }
        recording.check(dir)?;
        Ok(recording)
    }

    /// Refuses what would reach beyond the directories of the replay: another author may have
    /// written the recording.
    fn check(&self, dir: &Path) -> Result<()> {
        let SessionChange { cwd, additional_directories, agent, agent_session, agent_options, .. } = &self.change;
        let refused = [
            ("cwd", cwd.is_some()),
            ("additionalDirectories", additional_directories.is_some()),
            ("agent", agent.is_some() || agent_session.is_some() || !agent_options.is_empty()),
            ("removed", self.repository.iter().flat_map(|start| &start.removed).any(|path| !is_inside(path))),
        ];
        match refused.iter().find(|(_, is_refused)| *is_refused) {
            Some((field, _)) => {
                Err(Error::invalid_params(format!("{}: {field}: not possible in a recording", dir.join(SESSION).display())))
            }
            None => Ok(()),
        }
    }
}

/// Maximum size of a recording, and maximum number of its files.
const BYTES_MAX: u64 = 64 << 20;
const FILES_MAX: usize = 10_000;

/// Refuses a recording that has anything but ordinary files, a git directory, or too much.
fn check_files(dir: &Path) -> Result<()> {
    let refuse = |path: &Path, why: &str| Err(Error::invalid_params(format!("{}: {why}", path.display())));
    let (mut directories, mut bytes, mut files) = (vec![dir.to_owned()], 0, 0);
    while let Some(directory) = directories.pop() {
        let failed = |error| Error::io(format_args!("reading {}", directory.display()), error);
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let metadata = fs::symlink_metadata(entry.path()).map_err(failed)?;
            (files, bytes) = (files + 1, bytes + metadata.len());
            if entry.file_name().eq_ignore_ascii_case(".git") {
                return refuse(&entry.path(), "a recording has no git directory");
            }
            if metadata.is_dir() {
                directories.push(entry.path());
            } else if !metadata.is_file() {
                return refuse(&entry.path(), "a recording has only ordinary files");
            }
            if files > FILES_MAX || bytes > BYTES_MAX {
                return refuse(dir, "the recording has more than 10,000 files or 64 MiB");
            }
        }
    }
    Ok(())
}

/// Returns whether a path stays inside the directory that it is relative to, outside of its git
/// directory.
pub(super) fn is_inside(path: &Path) -> bool {
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(name) if !name.eq_ignore_ascii_case(".git"));
    path.components().next().is_some() && path.components().all(is_name)
}

pub(super) fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T> {
    let invalid = |error: &dyn std::fmt::Display| Error::invalid_params(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| invalid(&error))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| invalid(&error))?;
    serde_json::from_value(joined(value)).map_err(|error| invalid(&error))
}

/// Writes a JSON file of a recording. Texts of several lines become lists of lines, so that a
/// reviewer can read them.
pub(super) fn write_json(file: &Path, value: &impl Serialize) -> Result<()> {
    let value = serde_json::to_value(value).map_err(|error| Error::internal(format!("writing a recording: {error}")))?;
    write(file, format!("{:#}\n", split(value)).as_bytes())
}

/// Writes a file and creates its directory.
pub(super) fn write(file: &Path, content: &[u8]) -> Result<()> {
    let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(file, content));
    written.map_err(|error| Error::io(format_args!("writing {}", file.display()), error))
}

/// The key of the lines of a text.
const LINES: &str = "lines";

fn split(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains('\n') => {
            let lines = text.split('\n').map(Value::from).collect::<Vec<_>>();
            serde_json::json!({ LINES: lines })
        }
        Value::Array(list) => list.into_iter().map(split).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, split(value))).collect(),
        other => other,
    }
}

fn joined(value: Value) -> Value {
    match value {
        Value::Object(fields) if fields.len() == 1 && fields.get(LINES).is_some_and(Value::is_array) => {
            let lines: Option<Vec<&str>> = fields[LINES].as_array().into_iter().flatten().map(Value::as_str).collect();
            lines.map_or(Value::Null, |lines| lines.join("\n").into())
        }
        Value::Array(list) => list.into_iter().map(joined).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, joined(value))).collect(),
        other => other,
    }
}

/// Replaces all strings in a JSON value.
pub(super) fn map_strings(value: Value, replace: &mut dyn FnMut(&str) -> String) -> Value {
    match value {
        Value::String(text) => replace(&text).into(),
        Value::Array(list) => list.into_iter().map(|value| map_strings(value, replace)).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, map_strings(value, replace))).collect(),
        other => other,
    }
}
