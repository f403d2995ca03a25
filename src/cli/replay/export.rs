//! `nuncio sessions export --scripted`: writes a stored session as a recording.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::difference::{Difference, differences, shown};
use super::expectation::{Expectation, Outcome, RequestLog, read_files};
use super::mask::Masker;
use super::normaliser::{CONFIG, CWD, DATA, HOME, Normaliser, TMP, date};
use super::player::{ReplayResult, play};
use super::recording::{
    Act, CHANGED, COMMIT, Moment, RECORDED, RecordedCall, RecordedSession, Results, SCRIPT, SECTIONS, SESSION, SETTINGS,
    UNAVAILABLE, USER, map_strings, read_json, write, write_json,
};
use super::session_log::{CallRecord, SessionRecord};
use super::start_files::StartFiles;
use crate::agent::UNATTENDED;
use crate::api::App;
use crate::app::{self, Bootstrap};
use crate::cli::sessions::session_id::resolve;
use crate::cli::terminal::output::{print, print_stderr};
use crate::content::{StepOutcome, ToolCategory, ToolStatus, plain_text};
use crate::error::{Error, Result};
use crate::event::Body;
use crate::runtime::RecordedResult;
use crate::terminal_text::output_line;
use crate::tools::Tools;

/// The user's files that are a part of requests.
const USER_FILES: [&str; 4] = ["AGENTS.md", "commands", "skills", "agents"];
/// Maximum number of replays that look for calls with other results.
const REPLAYS_MAX: usize = 6;

/// Runs `nuncio sessions export --scripted`. Returns the exit code.
pub(in crate::cli) async fn run(bootstrap: Bootstrap, id: String, dir: PathBuf) -> Result<u8> {
    let app = app::build(bootstrap)?;
    let exported = export(&app, &id, &dir).await;
    app.shut_down().await;
    exported.map(|()| 0)
}

/// Writes the session `given` to the directory `dir`, which must be empty or missing.
async fn export(app: &App, given: &str, dir: &Path) -> Result<()> {
    let dir = app.cwd.join(dir);
    if fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some()) || dir.is_file() {
        return Err(Error::invalid_params(format!("{} is not empty", dir.display())).hint("name a new directory"));
    }
    let sessions = app.sessions().await?;
    let id = resolve(sessions, given).await?;
    let record = SessionRecord::read(sessions, &id).await?;
    if record.steps.is_empty() {
        return Err(Error::invalid_params(format!("session {id} has sent no model request")));
    }
    if !record.problems.is_empty() {
        return Err(Error::invalid_params(format!("session {id} cannot be repeated: {}", record.problems.join("; "))));
    }
    let mut writer = RecordingWriter::new(app, record, dir);
    let written = writer.write_all().await;
    if written.is_err() {
        // Nothing of an incomplete recording is of use.
        let _ = fs::remove_dir_all(&writer.dir);
    }
    written
}

struct RecordingWriter<'a> {
    app: &'a App,
    record: SessionRecord,
    dir: PathBuf,
    masker: Arc<Masker>,
    names: Normaliser,
    results: Results,
}

impl<'a> RecordingWriter<'a> {
    fn new(app: &'a App, record: SessionRecord, dir: PathBuf) -> RecordingWriter<'a> {
        let services = &app.services;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let variable = |name: &str, default: &str| services.environment.get(name).unwrap_or(default).to_owned();
        let ids = record.calls.iter().map(|call| (call.id.to_string(), call.name.clone()));
        let named = [
            (record.cwd.clone(), CWD.to_owned()),
            (variable("HOME", ""), HOME.to_owned()),
            (variable("TMPDIR", "/tmp"), TMP.to_owned()),
            (text(&services.places.data), DATA.to_owned()),
            (text(&services.places.config), CONFIG.to_owned()),
        ];
        let (user, masker) = (Some(crate::config::owner_name(Path::new(&record.cwd))), Arc::new(Masker::new(app)));
        let names = Normaliser::new(named.into_iter().chain(ids)).with_user(user).with_masker(masker.clone());
        RecordingWriter { app, masker, record, dir, names, results: Results::new() }
    }

    async fn write_all(&mut self) -> Result<()> {
        let start = StartFiles::rebuild(&self.record, &self.app.services.launcher).await?;
        let mut recording = self.recording(&start)?;
        let mut expected = self.write_script()?;
        self.write_start(&start)?;
        self.add_results(&mut recording);
        let replayed = self.calibrate(&mut recording).await?;
        // The log has neither all files nor the repository at the end.
        let Outcome { removed, repository, .. } = &replayed.expectation.results;
        (expected.results.removed, expected.results.repository) = (removed.clone(), repository.clone());
        expected.files.clone_from(&replayed.expectation.files);
        let left = differences(&expected, &replayed.expectation);
        self.mask_files()?;
        self.report(&recording, &start, &left)
    }

    /// Writes a file of JSON, masked.
    fn json(&mut self, name: &str, value: Value) -> Result<()> {
        let value = map_strings(value, &mut |text| self.masker.text(text));
        write_json(&self.dir.join(name), &value)
    }

    /// Creates the recording. Prompts have no ids that only the requests show.
    fn recording(&mut self, start: &StartFiles) -> Result<RecordedSession> {
        let record = &self.record;
        let model = replayed_model(&record.steps[0].model);
        let mut recording = RecordedSession::new(date(record.period().0), model, record.mode, record.change.clone());
        recording.change.model = recording.change.model.as_deref().map(replayed_model);
        recording.change.additional_directories = None;
        recording.windows = record.windows.iter().map(|(model, window)| (replayed_model(model), *window)).collect();
        let is_unattended = |event: &crate::event::Event| match &event.body {
            Body::MessageCompleted { extra, .. } => plain_text(&extra.context).contains(UNATTENDED),
            _ => false,
        };
        recording.attended = !record.events.iter().any(is_unattended);
        recording.trusted = self.app.services.settings(Path::new(&record.cwd)).is_ok_and(|loaded| loaded.trusted);
        recording.repository.clone_from(&start.repository);
        recording.actions = record.actions.clone();
        for action in &mut recording.actions {
            match &mut action.act {
                Act::Prompt { parts } | Act::Message { parts, .. } => *parts = self.names.parts(parts),
                Act::Model { model } => *model = replayed_model(model),
                Act::Mode { .. } | Act::Thinking { .. } | Act::Cancel => {}
            }
        }
        recording.answers.clone_from(&record.answers);
        let is_cancelled = |(index, step): (usize, &super::session_log::StepRecord)| {
            (step.outcome == Some(StepOutcome::Cancelled)).then_some(index + 1)
        };
        recording.cancelled_steps = record.steps.iter().enumerate().filter_map(is_cancelled).collect();
        Ok(recording)
    }

    /// Writes the script and the specifications of tools that are not nuncio's own. Returns the
    /// requests and results of the session.
    fn write_script(&mut self) -> Result<Expectation> {
        let (mut requests, mut steps) = (RequestLog::default(), Vec::new());
        let ids: BTreeMap<String, String> = self.record.calls.iter().map(|call| (call.id.to_string(), call.name.clone())).collect();
        let call = |id: &str| ids.get(id).cloned().unwrap_or_else(|| id.to_owned());
        let mut others = BTreeMap::new();
        let native = Tools::native();
        for step in &self.record.steps {
            let Some(request) = &step.request else { continue };
            requests.add(request, &mut self.names, &call);
            steps.push(map_strings(step.answer.clone(), &mut |text| self.names.known(text)));
            let is_other = |spec: &&crate::model::ToolSpec| native.get(&spec.name).is_none();
            others.extend(request.tools.iter().filter(is_other).map(|spec| (spec.name.clone(), json!(spec))));
        }
        self.json(SCRIPT, json!({ "steps": steps }))?;
        if !others.is_empty() {
            self.json(UNAVAILABLE, others.into_values().collect())?;
        }
        let (settings, places) = (self.names.known(&self.app.services.user.sections(&SECTIONS)), &self.app.services.places);
        // `NUNCIO_HOME` is the directory of both.
        let settings = if places.data == places.config { settings.replace(DATA, CONFIG) } else { settings };
        write(&self.dir.join(SETTINGS), self.masker.text(&settings).as_bytes())?;
        Ok(Expectation { requests, results: Expectation::outcome(&self.record), files: BTreeMap::new() })
    }

    /// Writes the files of the start and those of the user.
    fn write_start(&mut self, start: &StartFiles) -> Result<()> {
        let (mut user, config) = (BTreeMap::new(), &self.app.services.places.config);
        let scripts = self.hook_scripts();
        for name in USER_FILES.into_iter().chain(scripts.iter().map(String::as_str)) {
            let path = config.join(name);
            match path.is_dir() {
                true => user.extend(read_files(&path)?.into_iter().map(|(file, content)| (Path::new(name).join(file), content))),
                false => user.extend(fs::read(&path).ok().map(|content| (PathBuf::from(name), content))),
            }
        }
        for (directory, files) in [(COMMIT, &start.commit), (CHANGED, &start.changed), (USER, &user)] {
            for (path, content) in files {
                if let Some(content) = self.masker.content(content.clone()) {
                    write(&self.dir.join(directory).join(path), &content)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the scripts of hooks in the directory of the settings.
    fn hook_scripts(&self) -> Vec<String> {
        let services = &self.app.services;
        let words = services.user.settings.hooks.iter().flat_map(|hook| hook.command.iter());
        let relative = |word: &String| {
            let path = services.places.config.join(word);
            let below = path.strip_prefix(&services.places.config).ok()?;
            path.is_file().then(|| below.to_string_lossy().into_owned())
        };
        words.filter_map(relative).collect()
    }

    /// Adds the results of calls that a replay does not run.
    fn add_results(&mut self, recording: &mut RecordedSession) {
        for index in 0..self.record.calls.len() {
            let call = &self.record.calls[index];
            let why = match call.category {
                _ if !call.ran => continue,
                _ if call.cancelled => "it was cancelled",
                Some(ToolCategory::Network) => "it uses the network",
                Some(ToolCategory::Mcp) => "it uses an MCP server",
                _ if call.tool == "task" => "it starts a subagent",
                _ => continue,
            };
            self.add_result(recording, index, why);
        }
    }

    fn add_result(&mut self, recording: &mut RecordedSession, index: usize, why: &str) {
        let CallRecord { name, tool, status, output, content, cancelled, .. } = &self.record.calls[index];
        recording.recorded.insert(name.clone(), RecordedCall { tool: tool.clone(), why: why.into() });
        let result = RecordedResult {
            failed: *status == Some(ToolStatus::Failed),
            cancelled: *cancelled,
            output: output.clone(),
            waits: Arc::default(),
            content: content.clone(),
        };
        // Ids stay as they are: the replay has not seen them before.
        let fresh = self.names.without_ids();
        let value = map_strings(json!(result), &mut |text| fresh.known(text));
        self.results.extend(serde_json::from_value(value).ok().map(|result| (name.clone(), result)));
    }

    /// Replays until the results of all calls are those of the session or answered from the record,
    /// and writes what the last replay did as the expectations.
    async fn calibrate(&mut self, recording: &mut RecordedSession) -> Result<ReplayResult> {
        for _ in 0..REPLAYS_MAX {
            self.json(SESSION, json!(recording))?;
            if !self.results.is_empty() {
                self.json(RECORDED, json!(self.results))?;
            }
            let first = play(&self.dir, &self.app.services.environment).await?;
            let other = self.other_results(recording, &first);
            if other.is_empty() {
                let again = play(&self.dir, &self.app.services.environment).await?;
                let varying = differences(&first.expectation, &again.expectation);
                if varying.is_empty() {
                    first.expectation.write(&self.dir)?;
                    return Ok(first);
                }
                let parts: Vec<&str> = varying.iter().map(|difference| difference.part.as_str()).collect();
                let files = varying.iter().filter_map(|difference| difference.file.clone());
                let (calls, before) = (self.named_calls(recording, &parts), recording.varying_files.len());
                recording.varying_files.extend(files);
                if calls.is_empty() && recording.varying_files.len() == before {
                    return Err(Error::invalid_params(format!("two replays differ in: {}", parts.join("; "))));
                }
                calls.into_iter().for_each(|index| self.add_result(recording, index, "its result varies"));
                continue;
            }
            other.into_iter().for_each(|index| self.add_result(recording, index, "its files or programs cannot be rebuilt"));
        }
        Err(Error::invalid_params(format!("{REPLAYS_MAX} replays had other results each time")))
    }

    /// Returns the calls that ran in the session and have another result in a replay.
    fn other_results(&mut self, recording: &RecordedSession, replayed: &ReplayResult) -> Vec<usize> {
        let (mut here, mut there) = (self.names.clone(), replayed.names.clone());
        let mut other = Vec::new();
        for (index, call) in self.record.calls.iter().enumerate() {
            if recording.recorded.contains_key(&call.name) || !call.ran {
                continue;
            }
            let text = |call: &CallRecord, names: &mut Normaliser| match call.tool.starts_with("bash")
                || call.tool == "verify"
                || call.tool.starts_with("git_")
            {
                true => names.output(&plain_text(&call.output)),
                false => names.text(&plain_text(&call.output)),
            };
            let expected = text(call, &mut here);
            let found = replayed.calls.iter().find(|other| other.name == call.name);
            let is_equal = found.is_some_and(|found| found.status == call.status && text(found, &mut there) == expected);
            if !is_equal {
                other.push(index);
            }
        }
        other
    }

    /// Returns the calls that ran and that these differences name.
    fn named_calls(&self, recording: &RecordedSession, parts: &[&str]) -> Vec<usize> {
        let is_named = |call: &CallRecord| {
            let ends = [format!(", {}", call.name), format!("of {} (", call.name)];
            parts.iter().any(|part| part.ends_with(&ends[0]) || part.contains(&ends[1]))
        };
        let calls = self.record.calls.iter().enumerate();
        let named = calls.filter(|(_, call)| call.ran && !recording.recorded.contains_key(&call.name) && is_named(call));
        named.map(|(index, _)| index).collect()
    }

    /// Masks the finished files once more.
    fn mask_files(&mut self) -> Result<()> {
        for (path, content) in read_files(&self.dir)? {
            let file = self.dir.join(&path);
            let is_own = !path.starts_with("start") && !path.starts_with("expected/files");
            if is_own && path.extension().is_some_and(|extension| extension == "json") {
                // Whole texts, of which the file has lines with escapes.
                let value: Value = read_json(&file)?;
                let masked = map_strings(value.clone(), &mut |text| self.masker.text(text));
                if masked != value {
                    write_json(&file, &masked)?;
                }
                continue;
            }
            match self.masker.content(content.clone()) {
                Some(masked) if masked == content => {}
                Some(masked) => write(&file, &masked)?,
                None => fs::remove_file(&file).map_err(|error| Error::io(format_args!("removing {}", file.display()), error))?,
            }
        }
        Ok(())
    }

    /// Prints what the recording has.
    fn report(&self, recording: &RecordedSession, start: &StartFiles, left: &[Difference]) -> Result<()> {
        let prompts = recording
            .actions
            .iter()
            .filter(|action| matches!(action.at, Moment::Turns(_)) && matches!(action.act, Act::Prompt { .. }));
        let mut text = format!(
            "{}: {} prompts, {} requests, {} calls, {} files of the start\n",
            self.dir.display(),
            prompts.count(),
            self.record.steps.len(),
            self.record.calls.len(),
            start.commit.len() + start.changed.len()
        );
        let masked = self.masker.counts();
        text += &format!("masked: {}\n", if masked.is_empty() { "nothing but paths".into() } else { masked.join(", ") });
        for (call, RecordedCall { tool, why }) in &recording.recorded {
            let output = self.results.get(call).map(|result| plain_text(&result.output)).unwrap_or_default();
            let output = self.names_of(&output);
            text += &format!("answered from the record: {call}, {tool}: {why}; {} bytes: {output}\n", output.len());
        }
        if !recording.varying_files.is_empty() {
            text += &format!("not compared: {}\n", recording.varying_files.join(", "));
        }
        for note in &start.notes {
            text += &format!("start: {note}\n");
        }
        print(text.lines().map(|line| output_line(line) + "\n").collect::<String>())?;
        if !left.is_empty() {
            print_stderr(format!("nuncio: the replay differs from the session (- session, + replay):\n{}", shown(left)));
        }
        Ok(())
    }

    /// Returns the start of the first line of an output, at most 60 characters.
    fn names_of(&self, output: &str) -> String {
        output.lines().next().unwrap_or_default().chars().take(60).collect()
    }
}

/// Returns the id under which a replay opens a model. The files of scripted models are not in a
/// recording.
fn replayed_model(model: &str) -> String {
    if model.starts_with("scripted:") { "replay/scripted".into() } else { model.into() }
}
