//! Repeats a recorded session: does what its clients did, with the recorded answers of its model.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::application::{MODEL_EVENTS_MAX, WaitingCalls, answers, build};
use super::expectation::{Expectation, read_files};
use super::normaliser::{CONFIG, CWD, DATA, HOME, Normaliser, TMP};
use super::recorded_model::{ModelEvent, RecordedAnswers, SentRequests};
use super::recording::{Act, Action, Moment, RecordedSession, SECTIONS, SETTINGS};
use super::session_log::{CallRecord, SessionRecord};
use super::workspace::{ReplayDirectories, git};
use crate::api::{
    AnswerPermission, AnswerPermissionParams, App, CancelTurn, MessageParams, Prompt, PromptParams, SendMessage, SessionParams,
    SetConfigOption, SetMode, SetModeParams, SetOptionParams,
};
use crate::app;
use crate::client::{SessionClient, SessionEvents};
use crate::config::{Environment, Trust, TrustedContent};
use crate::content::PermissionOptionKind;
use crate::error::{Error, Result};
use crate::event::{Body, Event, PermissionRequest, QueuedMessage, ToolUpdate};
use crate::id::{MessageId, SessionId};
use crate::process::{ProcessLauncher, Sandbox};
use crate::session::permissions::broker::Responder;
use crate::task;

/// Limit of a replay.
const WHOLE_TIME: Duration = Duration::from_secs(180);
/// Maximum time of its turns.
const REPLAY_TIME: Duration = Duration::from_secs(120);

/// Requests, results and files of a replay.
pub(super) struct ReplayResult {
    pub expectation: Expectation,
    pub calls: Vec<CallRecord>,
    pub names: Normaliser,
}

/// A running replay.
struct Player {
    client: SessionClient,
    session: SessionId,
    names: Arc<RecordedAnswers>,
    idle: VecDeque<Action>,
    others: Vec<Action>,
    answers: Vec<super::recording::Answer>,
    /// True if a client could answer questions.
    attended: bool,
    turns: usize,
    running: bool,
    /// Prompts that have not returned.
    prompts: usize,
    queue: HashSet<MessageId>,
    waiting: WaitingCalls,
    returned: mpsc::Sender<Result<()>>,
}

pub(super) async fn play(dir: &Path, outer: &Environment) -> Result<ReplayResult> {
    if !Sandbox::is_available() {
        let message = "this system cannot confine the commands of a recording: its kernel has no Landlock, or it is turned off";
        return Err(Error::invalid_params(message).hint("nuncio doctor shows what is missing"));
    }
    let recording = RecordedSession::read(dir)?;
    let directories = ReplayDirectories::create(outer)?;
    let variables = directories.variables(outer);
    let launcher = ProcessLauncher::of_this_binary().with_environment(variables.clone());
    let launcher = launcher.with_confinement(directories.sandbox(outer));
    let work = play_in(dir, &recording, &directories, variables.into_iter().collect(), launcher.clone());
    let played = match tokio::time::timeout(WHOLE_TIME, work).await {
        Ok(played) => played,
        Err(_) => Err(Error::internal(format!("the replay did not end within {} s", WHOLE_TIME.as_secs()))),
    };
    launcher.shut_down().await;
    played
}

/// Returns the settings of a recording: the sections that an export writes, without what would
/// widen the sandbox.
fn settings(dir: &Path) -> Result<String> {
    let file = dir.join(SETTINGS);
    let invalid = |error: &dyn std::fmt::Display| Error::invalid_params(format!("{}: {error}", file.display()));
    let text = match std::fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| invalid(&error))?,
    };
    let mut table: toml::Table = text.parse().map_err(|error| invalid(&error))?;
    if let Some(other) = table.keys().find(|name| !SECTIONS.contains(&name.as_str())) {
        return Err(invalid(&format!("{other}: not possible in a recording")));
    }
    if let Some(toml::Value::Table(sandbox)) = table.get_mut("sandbox") {
        sandbox.retain(|name, _| !["writable", "network"].contains(&name));
    }
    Ok(table.to_string())
}

async fn play_in(
    dir: &Path,
    recording: &RecordedSession,
    directories: &ReplayDirectories,
    environment: Environment,
    launcher: ProcessLauncher,
) -> Result<ReplayResult> {
    directories.fill(dir, recording, &launcher).await?;
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let named = [
        (directories.work(), CWD),
        (directories.home(), HOME),
        (directories.temp(), TMP),
        (directories.data(), DATA),
        (directories.config(), CONFIG),
    ];
    let named = named.map(|(path, name)| (text(path), name.to_owned()));
    let user = crate::config::owner_name(&directories.work());
    let names = Normaliser::new(named).with_user(Some(user));
    super::recording::write(&directories.config().join("config.toml"), names.actual(&settings(dir)?).as_bytes())?;
    let start = read_files(&directories.work())?;
    if recording.trusted {
        let places = app::paths(&environment, &None, &None)?;
        let content =
            TrustedContent::read(&directories.work()).map_err(|error| Error::io("reading the project's settings", error))?;
        Trust::add(&places, &directories.work(), &content)?;
    }
    let (answers, reached) = answers(dir, recording, names)?;
    let (app, waiting) = build(dir, recording, directories, environment, launcher.clone(), &answers)?;
    let played = perform(&app, recording, (answers.clone(), waiting), reached).await;
    let session = match played {
        Ok(session) => SessionRecord::read(app.sessions().await?, &session).await,
        Err(error) => Err(error),
    };
    app.shut_down().await;
    let session = session?;
    let SentRequests { log, mut names, .. } = std::mem::replace(&mut *answers.sent.lock(), SentRequests::new(Normaliser::new([])));
    let mut results = Expectation::outcome(&session);
    let mut kept = None;
    if recording.repository.is_some() {
        results.repository = repository(&launcher, directories, &mut names).await?;
        let listed = git(&launcher, &directories.work(), &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).await?;
        kept = listed.map(|listed| String::from_utf8_lossy(&listed).split('\0').map(PathBuf::from).collect::<HashSet<_>>());
    }
    // Ignored files are not compared, as those that vary.
    let is_compared = |path: &PathBuf| {
        kept.as_ref().is_none_or(|kept| kept.contains(path))
            && !recording.varying_files.iter().any(|varying| path == Path::new(varying))
    };
    let mut end = read_files(&directories.work())?;
    let name = |path: &PathBuf| path.to_string_lossy().into_owned();
    results.removed = start.keys().filter(|path| !end.contains_key(*path)).map(name).collect();
    end.retain(|path, content| start.get(path) != Some(content) && is_compared(path));
    let changed = end.into_iter().map(|(path, content)| {
        let content = String::from_utf8(content).map_or_else(|binary| binary.into_bytes(), |text| names.text(&text).into_bytes());
        (name(&path), content)
    });
    let files = changed.collect();
    Ok(ReplayResult { expectation: Expectation { requests: log, results, files }, calls: session.calls, names })
}

/// Creates the session and repeats all actions.
async fn perform(
    app: &Arc<App>,
    recording: &RecordedSession,
    (names, waiting): (Arc<RecordedAnswers>, WaitingCalls),
    mut reached: mpsc::Receiver<ModelEvent>,
) -> Result<SessionId> {
    let sessions = app.sessions().await?.clone();
    let session = sessions.create(app.cwd.clone(), recording.mode, recording.change.clone()).await?.log.id.clone();
    let client = SessionClient::new(app.clone(), "replay");
    let mut events = client.follow(&session, 0, recording.attended.then_some(Responder::Person)).await?;
    let (returned, mut returns) = mpsc::channel(MODEL_EVENTS_MAX);
    let (idle, others) = recording.actions.iter().cloned().partition(|action| matches!(action.at, Moment::Turns(_)));
    let mut player = Player {
        client,
        session: session.clone(),
        names,
        idle: Vec::into(idle),
        others,
        answers: recording.answers.clone(),
        attended: recording.attended,
        turns: 0,
        running: false,
        prompts: 0,
        queue: HashSet::new(),
        waiting,
        returned,
    };
    let work = player.run(&mut events, &mut reached, &mut returns);
    match tokio::time::timeout(REPLAY_TIME, work).await {
        Ok(done) => done.map(|()| session),
        Err(_) => Err(Error::internal(format!("the replay did not end within {} s", REPLAY_TIME.as_secs()))),
    }
}

impl Player {
    async fn run(
        &mut self,
        events: &mut SessionEvents,
        reached: &mut mpsc::Receiver<ModelEvent>,
        returns: &mut mpsc::Receiver<Result<()>>,
    ) -> Result<()> {
        loop {
            while !self.running && self.prompts == 0 && self.queue.is_empty() {
                let Some(action) = self.idle.pop_front() else { return Ok(()) };
                // An earlier turn that is missing is a difference, which the comparison reports.
                self.act(action.act).await?;
                for event in events.committed().await? {
                    self.event(&event).await?;
                }
            }
            tokio::select! {
                biased;
                found = events.next() => for event in found? { self.event(&event).await? },
                Some(event) = reached.recv() => self.reached(event).await?,
                Some(ended) = returns.recv() => {
                    for event in events.committed().await? {
                        self.event(&event).await?;
                    }
                    self.prompts -= 1;
                    // A failed turn is in the log.
                    drop(ended);
                }
            }
        }
    }

    /// Performs what happened before the answer of a step, then lets the model answer.
    async fn reached(&mut self, event: ModelEvent) -> Result<()> {
        match event {
            ModelEvent::Reached(step, go) => {
                let is_here = |action: &mut Action| action.at == Moment::Step(step) && action.act != Act::Cancel;
                for action in self.others.extract_if(.., is_here).collect::<Vec<_>>() {
                    self.act(action.act).await?;
                }
                // Fails if the turn was cancelled.
                let _ = oneshot::Sender::send(go, ());
                Ok(())
            }
            ModelEvent::Streamed(step) => self.cancel(&Moment::Step(step)).await.map(drop),
        }
    }

    async fn cancel(&mut self, at: &Moment) -> Result<bool> {
        let found = self.others.iter().position(|action| action.at == *at && action.act == Act::Cancel);
        match found {
            Some(index) => {
                let action = self.others.remove(index);
                self.act(action.act).await.map(|()| true)
            }
            None => Ok(false),
        }
    }

    async fn event(&mut self, event: &Event) -> Result<()> {
        match &event.body {
            Body::TurnStarted { .. } => self.running = true,
            Body::TurnCompleted { .. } => self.ended(),
            Body::TurnFailed { .. } | Body::TurnCancelled { .. } | Body::TurnInterrupted {} => {
                self.ended();
                // Queued messages are delivered in the next turn.
                self.queue.clear();
            }
            Body::MessageQueued(QueuedMessage { message_id, auto_run: true, .. }) => drop(self.queue.insert(message_id.clone())),
            Body::MessageCompleted { message_id, .. } => drop(self.queue.remove(message_id)),
            Body::ToolUpdated(ToolUpdate { tool_call_id, status: Some(crate::content::ToolStatus::InProgress), .. }) => {
                if let Some(waits) = self.waiting.remove(tool_call_id.as_str()) {
                    let (client, session_id) = (self.client.clone(), self.session.clone());
                    // Earlier the call would not run, and have another result.
                    task::spawn(async move {
                        waits.notified().await;
                        client.call::<CancelTurn>(SessionParams { session_id }).await
                    });
                }
            }
            Body::PermissionRequested(PermissionRequest { permission_id, tool_call_id, .. }) => {
                let cancels = self.cancel(&Moment::Call(tool_call_id.to_string())).await?;
                let is_asked = |answer: &super::recording::Answer| match &answer.call {
                    Some(call) => call == tool_call_id.as_str(),
                    None => !tool_call_id.as_str().starts_with("call_") || tool_call_id.as_str().len() > 16,
                };
                let answer = self.answers.iter().position(is_asked).map(|index| self.answers.remove(index));
                // A request that the session did not have: its result is a difference.
                let new = || (self.attended && !cancels).then_some((PermissionOptionKind::RejectOnce, None));
                if let Some((outcome, reason)) = answer.map(|answer| (answer.outcome, answer.reason)).or_else(new) {
                    let params = AnswerPermissionParams::new(permission_id.clone(), None, Some(outcome), reason);
                    self.client.call::<AnswerPermission>(params).await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn ended(&mut self) {
        (self.running, self.turns) = (false, self.turns + 1);
    }

    async fn act(&mut self, act: Act) -> Result<()> {
        let session_id = self.session.clone();
        let names = self.names.clone();
        let actual =
            |parts: &[crate::content::Part]| super::normaliser::mapped(parts, &mut |text| names.sent.lock().names.actual(text));
        match act {
            Act::Prompt { parts } => {
                let params = PromptParams::new(&session_id, actual(&parts));
                let (client, returned) = (self.client.clone(), self.returned.clone());
                self.prompts += 1;
                task::spawn(async move {
                    let ended = client.call::<Prompt>(params).await;
                    // Fails only when the replay has ended.
                    let _ = returned.send(ended.map(drop)).await;
                });
                Ok(())
            }
            Act::Message { parts, delivery, auto_run } => {
                let params = MessageParams { delivery, auto_run, ..MessageParams::new(&session_id, actual(&parts)) };
                self.client.call::<SendMessage>(params).await.map(drop)
            }
            Act::Mode { mode } => {
                let params = SetModeParams { session_id, mode_id: mode.to_string() };
                self.client.call::<SetMode>(params).await.map(drop)
            }
            Act::Model { model } => self.option("model", &model).await,
            Act::Thinking { level } => self.option("thinking", &level).await,
            Act::Cancel => self.client.call::<CancelTurn>(SessionParams { session_id }).await,
        }
    }

    async fn option(&self, name: &str, value: &str) -> Result<()> {
        self.client.call::<SetConfigOption>(SetOptionParams::new(&self.session, name, value)).await.map(drop)
    }
}

/// Describes the repository at the end.
async fn repository(
    launcher: &ProcessLauncher,
    directories: &ReplayDirectories,
    names: &mut Normaliser,
) -> Result<BTreeMap<String, Vec<String>>> {
    let questions: [(&str, &[&str]); 4] = [
        ("branches", &["branch", "--format=%(HEAD) %(refname:short)"]),
        ("commits", &["log", "--format=%s", "--all"]),
        ("status", &["status", "--porcelain", "--untracked-files=all"]),
        ("stashes", &["stash", "list", "--format=%gs"]),
    ];
    let mut found = BTreeMap::new();
    for (name, arguments) in questions {
        let output = git(launcher, &directories.work(), arguments).await?.unwrap_or_default();
        let lines: Vec<String> = names.text(&String::from_utf8_lossy(&output)).lines().map(str::to_owned).collect();
        found.insert(name.to_owned(), lines);
    }
    Ok(found)
}
