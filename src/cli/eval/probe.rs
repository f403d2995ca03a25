//! Probes: a conversation, and patterns for the next answer.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::digest::short_digest;
use super::task::name_glob;
use crate::content::Part;
use crate::error::{Error, Result};
use crate::id::ToolCallId;
use crate::model::{Block, Message, ToolResult};

/// A probe that can be sent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Probe {
    /// The name of its file, without `.json`.
    #[serde(skip)]
    pub name: String,
    /// A short digest of the file.
    #[serde(skip)]
    pub digest: String,
    /// The purpose of the probe, for people.
    #[serde(rename = "about")]
    _about: String,
    #[serde(deserialize_with = "messages")]
    pub messages: Vec<Arc<Message>>,
    accept: Vec<AnswerPattern>,
    #[serde(default)]
    refuse: Vec<AnswerPattern>,
    /// The number of calls that an answer with calls must have at least.
    #[serde(default)]
    calls_min: usize,
    good: ProbeAnswer,
    bad: ProbeAnswer,
}

/// An answer of a model, or a sample of one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProbeAnswer {
    pub text: String,
    pub calls: Vec<CalledTool>,
}

/// A call in an answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CalledTool {
    pub tool: String,
    /// An object, unless the model wrote something else.
    pub arguments: Value,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case", deny_unknown_fields)]
enum ProbeMessage {
    User {
        text: String,
    },
    Assistant {
        #[serde(default)]
        text: String,
        #[serde(default)]
        calls: Vec<EarlierCall>,
    },
    Tool {
        id: String,
        text: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EarlierCall {
    id: String,
    tool: String,
    arguments: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternFile {
    tool: Option<String>,
    #[serde(default)]
    arguments: BTreeMap<String, String>,
    answer: Option<String>,
}

/// A pattern of a call, or of the text of an answer without calls.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "PatternFile")]
enum AnswerPattern {
    Call { tool: String, arguments: Vec<(String, Regex)> },
    Text(Regex),
}

/// Returns the files of probes in `path`: one file, or the `*.json` files of a directory whose
/// names match `only`. Empty if the directory has none.
pub(super) fn probe_files(path: &Path, only: Option<&str>) -> Result<Vec<PathBuf>> {
    let is_json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json") && path.is_file();
    let only = only.map(|glob| name_glob("--only", glob)).transpose()?;
    let mut files: Vec<PathBuf> = match path.is_file() {
        true => vec![path.to_owned()],
        false => std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect(),
    };
    files.retain(|file| is_json(file) && only.as_ref().is_none_or(|glob| glob.is_match(file.file_stem().unwrap_or_default())));
    files.sort();
    Ok(files)
}

/// Reads probes. The error names each that is invalid, with the reason.
pub(super) fn read_probes(files: &[PathBuf]) -> Result<Vec<Probe>> {
    let (mut probes, mut refused) = (Vec::new(), String::new());
    for file in files {
        match Probe::read(file) {
            Ok(probe) => probes.push(probe),
            Err(why) => refused += &format!("\n  {}: {why}", file.display()),
        }
    }
    if refused.is_empty() { Ok(probes) } else { Err(Error::invalid_params(format!("invalid probes:{refused}"))) }
}

impl Probe {
    /// Reads a probe. The error is the reason why it is invalid.
    fn read(file: &Path) -> std::result::Result<Probe, String> {
        let text = std::fs::read(file).map_err(|error| error.to_string())?;
        let probe: Probe = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        if probe.accept.is_empty() {
            return Err("accept is empty".into());
        }
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Probe { name, digest: short_digest(&text), ..probe })
    }

    /// Checks the samples. The error is the reason why the probe is wrong. `knows` tells whether
    /// nuncio has a tool.
    pub(super) fn prove(&self, knows: impl Fn(&str) -> bool) -> std::result::Result<(), String> {
        let named = self.accept.iter().chain(&self.refuse).filter_map(AnswerPattern::tool);
        let unknown = named.chain(self.good.calls.iter().map(|call| call.tool.as_str())).find(|tool| !knows(tool));
        if let Some(tool) = unknown {
            return Err(format!("unknown tool {tool:?}"));
        }
        self.judge(&self.good).map_err(|why| format!("the good sample is refused: {why}"))?;
        match self.judge(&self.bad) {
            Ok(()) => Err("the bad sample is accepted".into()),
            Err(_) => Ok(()),
        }
    }

    /// Judges an answer: each call must be accepted and not refused, or without calls the text. The
    /// error is the reason.
    pub(super) fn judge(&self, answer: &ProbeAnswer) -> std::result::Result<(), String> {
        let ProbeAnswer { text, calls } = answer;
        if calls.is_empty() {
            let matches = |pattern: &AnswerPattern| pattern.matches_text(text);
            return match () {
                () if text.trim().is_empty() => Err("an empty answer".into()),
                () if self.refuse.iter().any(matches) => Err("the text is refused".into()),
                () if !self.accept.iter().any(matches) => Err("the text is not accepted".into()),
                () => Ok(()),
            };
        }
        if calls.len() < self.calls_min {
            return Err(format!("{} calls, and at least {} were expected", calls.len(), self.calls_min));
        }
        for call in calls {
            let matches = |pattern: &AnswerPattern| pattern.matches_call(call);
            if self.refuse.iter().any(matches) {
                return Err(format!("a call of {} is refused: {}", call.tool, call.arguments));
            }
            if !self.accept.iter().any(matches) {
                return Err(format!("a call of {} is not accepted: {}", call.tool, call.arguments));
            }
        }
        Ok(())
    }
}

impl TryFrom<PatternFile> for AnswerPattern {
    type Error = String;

    fn try_from(file: PatternFile) -> std::result::Result<AnswerPattern, String> {
        let regex = |text: &str| Regex::new(text).map_err(|error| error.to_string());
        match file {
            PatternFile { tool: Some(tool), arguments, answer: None } => {
                let arguments = arguments.into_iter().map(|(name, text)| Ok((name, regex(&text)?)));
                Ok(AnswerPattern::Call { tool, arguments: arguments.collect::<std::result::Result<_, String>>()? })
            }
            PatternFile { tool: None, arguments, answer: Some(text) } if arguments.is_empty() => {
                Ok(AnswerPattern::Text(regex(&text)?))
            }
            _ => Err("a pattern has either tool, with or without arguments, or answer".into()),
        }
    }
}

impl AnswerPattern {
    fn tool(&self) -> Option<&str> {
        match self {
            AnswerPattern::Call { tool, .. } => Some(tool),
            AnswerPattern::Text(_) => None,
        }
    }

    fn matches_text(&self, text: &str) -> bool {
        matches!(self, AnswerPattern::Text(regex) if regex.is_match(text))
    }

    /// Returns whether a call has the tool and all arguments of the pattern. An argument that is no
    /// text is compared as JSON.
    fn matches_call(&self, call: &CalledTool) -> bool {
        let AnswerPattern::Call { tool, arguments } = self else { return false };
        let matches = |(name, regex): &(String, Regex)| match &call.arguments[name] {
            Value::Null => false,
            Value::String(text) => regex.is_match(text),
            other => regex.is_match(&other.to_string()),
        };
        *tool == call.tool && arguments.iter().all(matches)
    }
}

/// Reads messages. The results of tools that follow each other are one message.
fn messages<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<Arc<Message>>, D::Error> {
    let (mut all, mut names): (Vec<Message>, HashMap<String, String>) = (Vec::new(), HashMap::new());
    for message in Vec::<ProbeMessage>::deserialize(from)? {
        match message {
            ProbeMessage::User { text } => all.push(Message::User(vec![Part::text(text)])),
            ProbeMessage::Assistant { text, calls } => {
                names.extend(calls.iter().map(|call| (call.id.clone(), call.tool.clone())));
                let text = (!text.is_empty()).then_some(Block::Text { text, state: None });
                let calls = calls.into_iter().map(|call| {
                    let (id, name) = (ToolCallId::from(call.id), call.tool);
                    Block::ToolCall { id, name, input: call.arguments, input_text: None, state: None }
                });
                all.push(Message::Assistant(text.into_iter().chain(calls).collect()));
            }
            ProbeMessage::Tool { id, text } => {
                let name = names.get(&id).cloned().ok_or_else(|| D::Error::custom(format!("the result {id} has no call")))?;
                let result = ToolResult { id: ToolCallId::from(id), name, output: vec![Part::text(text)], failed: false };
                match all.last_mut() {
                    Some(Message::ToolResults(results)) => results.push(result),
                    _ => all.push(Message::ToolResults(vec![result])),
                }
            }
        }
    }
    match all.last() {
        Some(Message::User(_) | Message::ToolResults(_)) => Ok(all.into_iter().map(Arc::new).collect()),
        _ => Err(D::Error::custom("the last message must be of the user or of a tool")),
    }
}
