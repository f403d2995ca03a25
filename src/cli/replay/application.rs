//! The application in which a recorded session is replayed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::normaliser::Normaliser;
use super::recorded_model::{ModelEvent, RecordedAnswers, RecordedProvider, SentRequests};
use super::recording::{RECORDED, RecordedSession, Results, SCRIPT, UNAVAILABLE, map_strings, read_json};
use super::workspace::ReplayDirectories;
use crate::api::App;
use crate::app::{self, CommonArgs};
use crate::config::{Durability, Environment, Overrides, SQLITE};
use crate::error::{Error, Result};
use crate::model::ToolSpec;
use crate::process::ProcessLauncher;
use crate::runtime::{RecordedResult, UnavailableTool};
use crate::session::Capacity;
use crate::toolkit::AnyTool;
use crate::tools::Tools;

/// Events of the model that can wait. Each of them waits for the replay.
pub(super) const MODEL_EVENTS_MAX: usize = 8;

/// The notifications of calls that wait for their cancellation.
pub(super) type WaitingCalls = HashMap<String, Arc<Notify>>;

/// Reads the answers of the script.
pub(super) fn answers(
    dir: &Path,
    recording: &RecordedSession,
    names: Normaliser,
) -> Result<(Arc<RecordedAnswers>, mpsc::Receiver<ModelEvent>)> {
    let script: Value = read_json(&dir.join(SCRIPT))?;
    let (sender, reached) = mpsc::channel(MODEL_EVENTS_MAX);
    let answers = RecordedAnswers {
        steps: script["steps"].as_array().cloned().unwrap_or_default(),
        cancelled: recording.cancelled_steps.iter().copied().collect(),
        windows: recording.windows.clone(),
        reached: sender,
        sent: Mutex::new(SentRequests::new(names)),
    };
    Ok((Arc::new(answers), reached))
}

/// Builds the application of the replay: without the user's settings, keys and network. Also
/// returns the notifications of calls that wait for their cancellation.
pub(super) fn build(
    dir: &Path,
    recording: &RecordedSession,
    directories: &ReplayDirectories,
    environment: Environment,
    launcher: ProcessLauncher,
    answers: &Arc<RecordedAnswers>,
) -> Result<(Arc<App>, WaitingCalls)> {
    let native = Tools::native();
    let recorded: Results = if dir.join(RECORDED).is_file() { read_json(&dir.join(RECORDED))? } else { Results::new() };
    let tools = native.with_tools(&unavailable(dir, recording, &native)?, &[]);
    let overrides = Overrides { model: Some(recording.model.clone()), mode: Some(recording.mode), ..Overrides::default() };
    let work = directories.work();
    let args = CommonArgs { overrides, store: Some(SQLITE.into()), cwd: Some(work.clone()), ..CommonArgs::default() };
    let mut bootstrap = app::load(environment, args, &work, tools)?;
    bootstrap.loaded.settings.durability = Durability::Normal;
    let app = app::assemble(bootstrap, Capacity::default(), launcher);
    let models = recording.windows.keys().chain([&recording.model]);
    for provider in models.filter_map(|model| model.split_once('/')).map(|(provider, _)| provider) {
        app.services.models.register(provider.into(), Arc::new(RecordedProvider(answers.clone())));
    }
    let names = &answers.sent.lock().names;
    let actual = |(call, result): (String, RecordedResult)| {
        let value = map_strings(json!(result), &mut |text| names.actual(text));
        serde_json::from_value::<RecordedResult>(value)
            .map(|result| (call, result))
            .map_err(|error| Error::internal(error.to_string()))
    };
    let recorded = recorded.into_iter().map(actual).collect::<Result<HashMap<_, _>>>()?;
    let waiting = recorded.iter().filter(|(_, result)| result.cancelled);
    let waiting = waiting.map(|(call, result)| (call.clone(), result.waits.clone())).collect();
    app.services.answer_from(recorded);
    Ok((app, waiting))
}

/// Returns the tools that a replay cannot run, with their recorded specifications.
fn unavailable(dir: &Path, recording: &RecordedSession, native: &Tools) -> Result<Vec<Arc<dyn AnyTool>>> {
    let mut specs: BTreeMap<String, ToolSpec> = BTreeMap::new();
    let file = dir.join(UNAVAILABLE);
    let known: Vec<ToolSpec> = if file.is_file() { read_json(&file)? } else { Vec::new() };
    specs.extend(known.into_iter().map(|spec| (spec.name.clone(), spec)));
    for call in recording.recorded.values().filter(|call| native.get(&call.tool).is_none()) {
        let empty = || ToolSpec { name: call.tool.clone(), description: String::new(), input_schema: json!({ "type": "object" }) };
        specs.entry(call.tool.clone()).or_insert_with(empty);
    }
    Ok(specs.into_values().map(UnavailableTool::entry).collect())
}
