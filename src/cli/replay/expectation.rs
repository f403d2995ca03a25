//! Requests, results and files of a session, in the form in which they are stored and compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::normaliser::Normaliser;
use super::recording::{map_strings, read_json, write, write_json};
use super::session_log::SessionRecord;
use crate::cli::eval::digest::entries;
use crate::content::Part;
use crate::context::request_record::digest_of;
use crate::error::{Error, Result};
use crate::model::{Block, Message, Messages, Request};

/// The directory of the expectations in a recording.
const EXPECTED: &str = "expected";
/// Data of images and documents that is longer than this is stored as its digest, in bytes.
const DATA_BYTES_MAX: usize = 4 << 10;

/// The requests, results and files of a session.
#[derive(Default)]
pub(super) struct Expectation {
    pub requests: RequestLog,
    pub results: Outcome,
    /// The files that differ from the start, by path.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// The results of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outcome {
    pub turns: Vec<Value>,
    pub calls: Vec<Value>,
    /// Files of the start that are gone.
    pub removed: Vec<String>,
    /// Branch, status and titles of the commits at the end.
    pub repository: BTreeMap<String, Vec<String>>,
}

/// The requests of a session, normalised in the order in which they were sent.
#[derive(Default)]
pub(super) struct RequestLog {
    systems: Vec<String>,
    tools: Vec<Value>,
    requests: Vec<StoredRequest>,
    /// The last request as it was sent.
    last: Messages,
    /// Its messages.
    shown: Vec<Value>,
}

/// A request without what it shares with earlier ones.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRequest {
    /// The number of the system prompt, and of the list of tools.
    system: usize,
    tools: usize,
    /// The number of messages that are those of the request before.
    keeps: usize,
    messages: Vec<Value>,
}

/// A whole request.
pub(super) struct ShownRequest<'a> {
    pub system: &'a str,
    pub tools: &'a Value,
    pub messages: Vec<&'a Value>,
}

impl RequestLog {
    /// Adds a request. `call` returns the name of a call in the recording.
    pub(super) fn add(&mut self, request: &Request, names: &mut Normaliser, call: &dyn Fn(&str) -> String) {
        let system = number_of(&mut self.systems, names.text(&request.system));
        let tools = number_of(&mut self.tools, names.value(json!(request.tools.as_ref())));
        let is_same = |(before, now): &(&Arc<Message>, &Arc<Message>)| before == now;
        let keeps = self.last.iter().zip(request.messages.iter()).take_while(is_same).count();
        self.last = request.messages.clone();
        let messages: Vec<Value> = request.messages[keeps..].iter().map(|message| shown(message, names, call)).collect();
        self.shown.truncate(keeps);
        self.shown.extend(messages.iter().cloned());
        self.requests.push(StoredRequest { system, tools, keeps, messages });
    }

    /// Returns the whole requests.
    pub(super) fn all(&self) -> Vec<ShownRequest<'_>> {
        let mut messages: Vec<&Value> = Vec::new();
        let whole = |stored: &'_ StoredRequest| (stored.system.wrapping_sub(1), stored.tools.wrapping_sub(1), stored.keeps);
        let mut all = Vec::new();
        for stored in &self.requests {
            let (system, tools, keeps) = whole(stored);
            messages.truncate(keeps);
            messages.extend(&stored.messages);
            let (system, tools) = (self.systems.get(system), self.tools.get(tools));
            let system = system.map_or("", String::as_str);
            all.push(ShownRequest { system, tools: tools.unwrap_or(&Value::Null), messages: messages.clone() });
        }
        all
    }
}

impl Expectation {
    /// Returns what the log of a session says about the results of turns and calls.
    pub(super) fn outcome(record: &SessionRecord) -> Outcome {
        let call = |call: &super::session_log::CallRecord| json!({ "call": call.name, "tool": call.tool, "status": call.status, "permission": call.permission });
        Outcome { turns: record.ends.clone(), calls: record.calls.iter().map(call).collect(), ..Outcome::default() }
    }

    pub(super) fn read(dir: &Path) -> Result<Expectation> {
        let dir = dir.join(EXPECTED);
        let mut requests = RequestLog { requests: read_json(&dir.join("requests.json"))?, ..RequestLog::default() };
        for number in 1.. {
            let Ok(system) = fs::read_to_string(dir.join(format!("system-{number}.md"))) else { break };
            requests.systems.push(system);
        }
        for number in 1.. {
            let file = dir.join(format!("tools-{number}.json"));
            if !file.is_file() {
                break;
            }
            requests.tools.push(read_json(&file)?);
        }
        let mut files = BTreeMap::new();
        if dir.join("files").is_dir() {
            for (path, content) in read_files(&dir.join("files"))? {
                files.insert(path.to_string_lossy().into_owned(), content);
            }
        }
        Ok(Expectation { requests, results: read_json(&dir.join("results.json"))?, files })
    }

    /// Replaces the expectations of a recording.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let dir = dir.join(EXPECTED);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|error| Error::io(format_args!("removing {}", dir.display()), error))?;
        }
        for (index, system) in self.requests.systems.iter().enumerate() {
            write(&dir.join(format!("system-{}.md", index + 1)), system.as_bytes())?;
        }
        for (index, tools) in self.requests.tools.iter().enumerate() {
            // A tool a line.
            let tools: Vec<String> = tools.as_array().into_iter().flatten().map(Value::to_string).collect();
            let text = format!("[\n{}\n]\n", tools.join(",\n"));
            write(&dir.join(format!("tools-{}.json", index + 1)), text.as_bytes())?;
        }
        write_json(&dir.join("requests.json"), &self.requests.requests)?;
        write_json(&dir.join("results.json"), &self.results)?;
        self.files.iter().try_for_each(|(path, content)| write(&dir.join("files").join(path), content))
    }
}

/// Reads the files and the targets of the links below a directory, without those of git.
pub(super) fn read_files(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let found = entries(dir).map_err(|error| Error::io(format_args!("reading {}", dir.display()), error))?;
    let own = found.into_iter().filter(|entry| !entry.path.starts_with(".git"));
    Ok(own.map(|entry| (entry.path, entry.content)).collect())
}

/// Returns the number of a value, from 1. Adds it if it is new.
fn number_of<T: PartialEq>(all: &mut Vec<T>, value: T) -> usize {
    let found = all.iter().position(|known| *known == value);
    found.unwrap_or_else(|| {
        all.push(value);
        all.len() - 1
    }) + 1
}

/// Returns a message as it is compared: without what only its provider requires.
fn shown(message: &Message, names: &mut Normaliser, call: &dyn Fn(&str) -> String) -> Value {
    match message {
        Message::User(parts) => {
            json!({ "role": "user", "parts": parts.iter().map(|part| shown_part(part, names, false)).collect::<Vec<_>>() })
        }
        Message::Assistant(blocks) => {
            let block = |block: &Block| match block {
                Block::Thinking { text, .. } => json!({ "thinking": names.known(text) }),
                Block::Text { text, .. } => json!({ "text": names.known(text) }),
                Block::ToolCall { id, name, input, .. } => {
                    let input = map_strings(input.clone(), &mut |text| names.known(text));
                    json!({ "call": call(id.as_str()), "name": name, "input": input })
                }
            };
            json!({ "role": "assistant", "parts": blocks.iter().map(block).collect::<Vec<_>>() })
        }
        Message::ToolResults(results) => {
            let mut all = Vec::new();
            for result in results {
                let is_command = ["bash", "verify", "git_"].iter().any(|start| result.name.starts_with(start));
                // Kernels differ in what they can block.
                let is_of_kernel = |part: &&Part| matches!(part, Part::Text { text } if text.contains("sandbox: not blocked on"));
                let parts = result.output.iter().filter(|part| !is_of_kernel(part));
                let output: Vec<Value> = parts.map(|part| shown_part(part, names, is_command)).collect();
                let mut value = json!({ "call": call(result.id.as_str()), "name": result.name, "output": output });
                if result.failed {
                    value["failed"] = true.into();
                }
                all.push(value);
            }
            json!({ "role": "tool", "parts": all })
        }
    }
}

fn shown_part(part: &Part, names: &mut Normaliser, is_command: bool) -> Value {
    match part {
        Part::Text { text } => json!({ "text": if is_command { names.output(text) } else { names.text(text) } }),
        other => map_strings(json!(other), &mut |text| match text.len() > DATA_BYTES_MAX && !text.contains(' ') {
            true => format!("sha256:{}", digest_of(text)),
            false => names.text(text),
        }),
    }
}
