//! Facts about model servers that their errors revealed: a server lacks the Responses API, a model
//! has a smaller context window than the settings say. They are kept in a file of the data
//! directory for a day, so that later processes do not repeat the refused requests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::endpoint::Endpoint;
use super::error::{Cause, ModelError};
use crate::workspace::{read_small, replace_private};

/// How long a fact about a model server that an error revealed is used, in milliseconds: the server
/// can be changed.
const OBSERVATION_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Maximum number of models and servers whose facts are kept.
const OBSERVATIONS_MAX: usize = 500;

/// Version of the file's format. A file of another version is ignored.
const VERSION: u32 = 1;

/// The facts by base URL and model, shared by all clones.
#[derive(Clone, Debug, Default)]
pub(super) struct Observations(Arc<ObservationFile>);

#[derive(Debug, Default)]
struct ObservationFile {
    /// Unset: the facts are kept for this process only.
    file: OnceLock<PathBuf>,
    /// `None`: the file was not read yet.
    known: Mutex<Option<HashMap<ServerModel, Observation>>>,
}

/// The base URL of a server, and the name of a model; empty for facts about all its models.
type ServerModel = (String, String);

/// The facts about one model of one server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Observation {
    /// The server has chat completions, but no Responses API.
    lacks_responses: bool,
    /// The context window that an error named, and the one that was assumed then.
    window: Option<ObservedWindow>,
    /// The fields of requests that the server refused: the names of nested objects.
    refused_fields: Vec<Vec<String>>,
    /// Digests of the tools that the server refused.
    refused_tools: Vec<String>,
    observed_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct ObservedWindow {
    tokens: u64,
    assumed: u64,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    observations: Vec<(ServerModel, Observation)>,
}

/// Returns the key of the facts about one model.
fn key(endpoint: &Endpoint) -> ServerModel {
    (endpoint.base_url.clone(), endpoint.model.clone())
}

/// Returns the key of the facts about all models of a server.
fn server(endpoint: &Endpoint) -> ServerModel {
    (endpoint.base_url.clone(), String::new())
}

impl Observations {
    /// Keeps the facts in this directory, which is read when they are first needed.
    pub(super) fn keep_in(&self, data: &Path) {
        let _ = self.0.file.set(data.join("model-servers.json"));
    }

    /// Returns whether the server lacks the Responses API.
    pub(super) fn lacks_responses(&self, endpoint: &Endpoint) -> bool {
        self.with_observations(|known| known.get(&server(endpoint)).is_some_and(|known| known.lacks_responses))
    }

    /// Returns the context window of the model. `assumed` is that of the settings or of the
    /// server's report. Once this value changes, an earlier observation no longer applies.
    pub(super) fn window(&self, endpoint: &Endpoint, assumed: u64) -> u64 {
        let observed = self.with_observations(|known| known.get(&key(endpoint)).and_then(|known| known.window));
        observed.filter(|window| window.assumed == assumed).map_or(assumed, |window| window.tokens)
    }

    /// Returns the fields and the digests of the tools that the server refused for the model.
    pub(super) fn refused(&self, endpoint: &Endpoint) -> (Vec<Vec<String>>, Vec<String>) {
        self.with_observations(|known| {
            let known = known.get(&key(endpoint));
            known.map(|known| (known.refused_fields.clone(), known.refused_tools.clone())).unwrap_or_default()
        })
    }

    /// Records the fields and the digests of the tools that the server refused for the model.
    pub(super) fn add_refused(&self, endpoint: &Endpoint, fields: &[Vec<String>], tools: &[String]) {
        self.change(key(endpoint), |known| {
            (known.refused_fields, known.refused_tools) = (fields.to_vec(), tools.to_vec());
        });
    }

    /// Records that the server lacks the Responses API.
    pub(super) fn add_lack_of_responses(&self, endpoint: &Endpoint) {
        self.change(server(endpoint), |known| known.lacks_responses = true);
    }

    /// Records the context window that an error names, if it is smaller than the one that was
    /// assumed.
    pub(super) fn add_error(&self, endpoint: &Endpoint, assumed: u64, error: &ModelError) {
        let Cause::ContextOverflow { request_tokens, context_window: Some(tokens) } = error.cause else { return };
        let before = self.window(endpoint, assumed);
        // The number of an error that names another limit is not plausible.
        let plausible = tokens > 0 && request_tokens.is_none_or(|request| tokens < request);
        if plausible && (tokens < before || before == 0) {
            self.change(key(endpoint), |known| known.window = Some(ObservedWindow { tokens, assumed }));
        }
    }

    /// Passes the known facts to `read`. The first call reads them from the file.
    fn with_observations<T>(&self, read: impl FnOnce(&mut HashMap<ServerModel, Observation>) -> T) -> T {
        let mut known = self.0.known.lock();
        read(known.get_or_insert_with(|| self.0.file.get().map(|file| stored(file)).unwrap_or_default()))
    }

    /// Updates the facts of an entry, and writes the file.
    fn change(&self, key: ServerModel, change: impl FnOnce(&mut Observation)) {
        self.with_observations(|known| {
            // Keep the facts that another process has written to the file.
            if let Some(file) = self.0.file.get() {
                let stored = stored(file).into_iter().filter(|(key, _)| !known.contains_key(key));
                let stored: Vec<_> = stored.collect();
                known.extend(stored);
            }
            if known.len() >= OBSERVATIONS_MAX {
                known.clear();
            }
            let observation = known.entry(key).or_default();
            observation.observed_ms = now_ms();
            change(observation);
            let Some(file) = self.0.file.get() else { return };
            let content =
                Content { version: VERSION, observations: known.iter().map(|(key, value)| (key.clone(), value.clone())).collect() };
            let written = serde_json::to_vec(&content).map_err(std::io::Error::other).and_then(|text| replace_private(file, &text));
            if let Err(error) = written {
                tracing::warn!(%error, file = %file.display(), "cannot store the facts about a model server");
            }
        });
    }
}

/// Reads the facts that are not too old; none if the file is absent or damaged.
fn stored(file: &Path) -> HashMap<ServerModel, Observation> {
    let content = read_small(file).ok().and_then(|text| serde_json::from_slice::<Content>(&text).ok());
    let Some(content) = content.filter(|content| content.version == VERSION) else { return HashMap::new() };
    let oldest = now_ms().saturating_sub(OBSERVATION_MS_MAX);
    content.observations.into_iter().filter(|(_, known)| (oldest..=now_ms()).contains(&known.observed_ms)).collect()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}
