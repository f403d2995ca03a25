//! The native agent of a session and its turn loop.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::models::Models;
use super::step::{self, AnswerPart, ModelAnswer};
use super::tool_call::ToolCall;
use crate::config::{self, Environment, Loaded, Overrides, Places, SandboxMode, load_project};
use crate::content::StopReason;
use crate::context::instructions::{self, Instructions};
use crate::context::system_prompt;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Severity};
use crate::id::{SessionId, ToolCallId};
use crate::limits;
use crate::lsp::{Languages, Servers, Terms};
use crate::model::{Model, Request, Thinking};
use crate::permission::rules::{Mode, Rules};
use crate::process::{Sandbox, Supervisor};
use crate::session::{Agent, Agents, SessionState, Turn};
use crate::tools::{FilesSeen, MapCache, PathLocks, Shell, ToolContext, Tools};
use crate::workspace::{Workspace, one_line};

/// Creates the native agents of this process and holds the state they share.
pub struct NativeAgents {
    pub user: Loaded,
    pub places: Places,
    pub environment: Environment,
    pub overrides: Overrides,
    pub models: Arc<Models>,
    pub supervisor: Supervisor,
    pub servers: Arc<Servers>,
    tools: Tools,
    maps: Arc<MapCache>,
    searches: Arc<Semaphore>,
    writing: Arc<PathLocks>,
}

impl NativeAgents {
    pub fn new(
        user: Loaded,
        places: Places,
        environment: Environment,
        overrides: Overrides,
        models: Arc<Models>,
        supervisor: Supervisor,
    ) -> Self {
        Self {
            servers: Arc::new(Servers::new(supervisor.clone())),
            user,
            places,
            environment,
            overrides,
            models,
            supervisor,
            tools: Tools::native(),
            maps: Arc::default(),
            searches: Arc::new(Semaphore::new(limits::WALKS_MAX)),
            writing: Arc::default(),
        }
    }

    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Loads the settings in effect in `cwd`.
    pub fn settings(&self, cwd: &Path) -> Result<Loaded> {
        let loaded = load_project(&self.user, &self.places, cwd, &self.environment, &self.overrides)?;
        loaded.check_tools(&self.tools.known(), &self.places, cwd)?;
        Ok(loaded)
    }

    /// Checks the provider of `model` against the settings in effect in `cwd`.
    pub fn check_model(&self, model: &str, cwd: &Path) -> Result<()> {
        let loaded = self.settings(cwd)?;
        self.models.check(model, &loaded.settings).map_err(|error| Error { kind: Kind::InvalidParams, ..model_error(error) })
    }

    /// Builds the environment of a session from its state and the current settings. `session` names
    /// its artifact directory. The shell of `before`, with its variables and jobs, is reused.
    pub fn desk(&self, session: &str, state: &SessionState, before: Option<&Desk>) -> Result<Desk> {
        let loaded = self.settings(&state.cwd)?;
        let roots = state.additional_directories.iter().chain(&self.overrides.roots).chain(&loaded.settings.allowed_paths).cloned();
        let workspace = Workspace::new(&state.cwd, roots, &self.places.artifacts(session))
            .attachments(&self.places.attachments(session))
            .home(self.places.home.clone())
            .protect(self.places.own_files())
            .private(self.places.private())
            .excludes(config::excludes(&self.environment));
        let terms = Terms {
            settings: loaded.settings.lsp.clone(),
            search: self.environment.get("PATH").unwrap_or_default().into(),
            places: Some(self.places.clone()),
            roots: workspace.roots.clone(),
        };
        let writable = loaded.settings.sandbox.writable.iter().filter_map(|path| workspace.cwd.join(path).canonicalize().ok());
        let shell = before.map_or_else(|| Arc::new(Shell::new(&workspace)), |before| before.shell.clone());
        if before.is_some_and(|before| before.cwd != state.cwd) {
            shell.set_cwd(workspace.cwd.clone());
        }
        Ok(Desk {
            cwd: state.cwd.clone(),
            writable: workspace.roots.iter().cloned().chain(writable).collect(),
            additional_directories: state.additional_directories.clone(),
            client_roots: workspace.roots_of(&state.additional_directories).into(),
            shell,
            workspace: Arc::new(workspace),
            files: Arc::new(FilesSeen::new(self.writing.clone())),
            languages: Arc::new(Languages::new(self.servers.clone(), terms)),
            loaded,
        })
    }
}

impl Agents for Arc<NativeAgents> {
    fn open(&self, _: &SessionId, _: &SessionState) -> Arc<dyn Agent> {
        Arc::new(NativeAgent { shared: self.clone(), desk: Mutex::default(), model: Mutex::default(), foreign: Mutex::default() })
    }

    fn check(&self, state: &SessionState) -> Result<()> {
        self.settings(&state.cwd).map(drop)
    }
}

/// The environment of a session: directories, settings, shell. Rebuilt when its directories change.
pub struct Desk {
    cwd: PathBuf,
    additional_directories: Vec<PathBuf>,
    /// Directories that the client specified, with symlinks resolved.
    client_roots: Arc<[PathBuf]>,
    /// Directories that a sandboxed command may write to, unless the sandbox is read-only.
    writable: Vec<PathBuf>,
    pub workspace: Arc<Workspace>,
    pub shell: Arc<Shell>,
    pub files: Arc<FilesSeen>,
    pub languages: Arc<Languages>,
    pub loaded: Loaded,
}

impl Desk {
    /// Builds the context of a tool call. The caller sets the call id, the cancel token, the
    /// progress callback and the permission filters.
    pub fn tool_context(&self, shared: &NativeAgents) -> ToolContext {
        let mut context = ToolContext::new(self.workspace.clone(), self.shell.clone(), shared.supervisor.clone());
        context.files = self.files.clone();
        context.web = shared.models.clients.clone();
        context.maps = shared.maps.clone();
        context.searches = shared.searches.clone();
        context.fetch_hosts = self.loaded.settings.tools.fetch_allowed_hosts.as_slice().into();
        context.languages = self.languages.clone();
        context.secrets = Models::secret_names(&self.loaded.settings).into();
        if self.loaded.settings.tools.client_files {
            context.client_roots = self.client_roots.clone();
        }
        context.client_terminal = self.loaded.settings.tools.client_terminal;
        context
    }

    /// The sandbox of a command in the given mode; `None` runs it without one.
    pub fn sandbox(&self, mode: Mode) -> Option<Sandbox> {
        let settings = &self.loaded.settings.sandbox;
        let of_mode = if mode == Mode::Auto { SandboxMode::WorkspaceWrite } else { SandboxMode::Off };
        let writable = match settings.mode.unwrap_or(of_mode) {
            SandboxMode::Off => return None,
            SandboxMode::WorkspaceWrite => self.writable.clone(),
            SandboxMode::ReadOnly => Vec::new(),
        };
        let temp = self.shell.temp().to_owned();
        let readable = [Some(self.workspace.artifacts.clone()), self.workspace.attachments.clone()].into_iter().flatten().collect();
        Some(Sandbox {
            writable,
            private: self.workspace.private.clone(),
            readable,
            temp,
            network: settings.network,
            required: true,
        })
    }

    /// The permission rules in effect. `session` holds the rules remembered from earlier answers.
    pub fn rules(&self, session: &[Value]) -> Rules {
        Rules {
            user: self.loaded.settings.permissions.rules.clone(),
            project: self.loaded.project_rules.clone(),
            session: session.iter().filter_map(|rule| serde_json::from_value(rule.clone()).ok()).collect(),
        }
    }
}

struct NativeAgent {
    shared: Arc<NativeAgents>,
    /// Built by the first turn and rebuilt when the session's directories change.
    desk: Mutex<Option<Arc<Desk>>>,
    /// The last used model, kept because a scripted model counts its steps.
    model: Mutex<Option<(String, Arc<dyn Model>)>>,
    /// Files of other users that were already reported in a notice.
    foreign: Mutex<Vec<PathBuf>>,
}

impl Agent for NativeAgent {
    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(self.work(turn))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(desk) = desk {
                desk.shell.jobs.close().await;
                // Removes its temporary files, which may block.
                let _ = tokio::task::spawn_blocking(move || drop(desk)).await;
            }
        })
    }
}

impl NativeAgent {
    async fn work(&self, turn: &Turn) -> Result<StopReason> {
        let desk = self.current_desk(turn).await?;
        let model = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Ok(StopReason::Cancelled),
            model = self.current_model(turn, &desk) => model?,
        };
        let system = self.system_prompt(turn, &desk, model.id()).await?;
        for _ in 0..limits::TURN_REQUESTS_MAX {
            turn.take_steered().await?;
            let request = self.request(turn, &system);
            let answer = step::ask(turn, &*model, request).await?;
            let (stop, calls) = (answer.stop, answer.has_calls() && answer.stop == StopReason::EndTurn);
            self.run_tools(turn, &desk, answer, calls).await?;
            if turn.cancel.is_cancelled() {
                return Ok(StopReason::Cancelled);
            }
            // A steering message that arrives before the turn ends continues it.
            let continues = calls || stop == StopReason::EndTurn && turn.take_steered().await?;
            if !continues {
                return Ok(stop);
            }
        }
        Ok(StopReason::MaxTurnRequests)
    }

    /// Records a complete answer, announces its calls in order and runs them concurrently. A failed
    /// call does not affect the others. `run` is false for a truncated answer, whose calls are
    /// dropped.
    async fn run_tools(&self, turn: &Turn, desk: &Arc<Desk>, answer: ModelAnswer, run: bool) -> Result<()> {
        let mut announced = Vec::new();
        for part in answer.parts {
            match part {
                AnswerPart::Message(body) => turn.emit(body).await,
                AnswerPart::Call(tool_use) if run => announced.push(ToolCall::announce(turn, &self.shared, desk, tool_use).await),
                AnswerPart::Call(_) => {}
            }
        }
        let at_once = desk.loaded.settings.tools.max_concurrency.max(1);
        let mut running = stream::iter(announced.into_iter().map(|call| call.finish(turn))).buffer_unordered(at_once);
        while let Some(finished) = running.next().await {
            finished?;
        }
        Ok(())
    }

    async fn current_desk(&self, turn: &Turn) -> Result<Arc<Desk>> {
        let log = &turn.session.log;
        let place = log.state(|state| SessionState {
            cwd: state.cwd.clone(),
            additional_directories: state.additional_directories.clone(),
            ..SessionState::default()
        });
        let (desk, moved) = {
            let mut kept = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
            let here = |desk: &&Arc<Desk>| desk.cwd == place.cwd && desk.additional_directories == place.additional_directories;
            match kept.as_ref().filter(here) {
                Some(desk) => (desk.clone(), false),
                None => {
                    let desk = self.shared.desk(log.id.as_str(), &place, kept.as_deref())?;
                    (kept.insert(Arc::new(desk)).clone(), true)
                }
            }
        };
        let ignored = &desk.loaded.ignored;
        if !ignored.is_empty() && moved {
            let changed = desk.loaded.distrusted.map(|why| format!(" ({why})")).unwrap_or_default();
            let description = format!(
                "{} in .nuncio/config.toml would allow more than the user settings{changed}: run `nuncio trust {}` to apply all of them",
                ignored.join(", "),
                desk.cwd.display()
            );
            turn.emit(Body::notice(Severity::Warning, "Some project settings are ignored", description)).await;
        }
        Ok(desk)
    }

    async fn current_model(&self, turn: &Turn, desk: &Desk) -> Result<Arc<dyn Model>> {
        let chosen = turn.session.log.state(|state| state.model.clone());
        let id = match chosen {
            Some(id) => id,
            None => self.shared.models.default_id(&desk.loaded.settings).await.map_err(model_error)?,
        };
        if let Some((known, model)) = &*self.model.lock().unwrap_or_else(PoisonError::into_inner)
            && *known == id
        {
            return Ok(model.clone());
        }
        let model = self.shared.models.open(&id, &desk.loaded.settings).await.map_err(model_error)?;
        if let Some(base_url) = self.shared.models.found_at(&id) {
            let description =
                format!("no model is set and no API key was found; the local server at {base_url} provides this model");
            turn.emit(Body::notice(Severity::Info, format!("Using {id}"), description)).await;
        }
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, model.clone()));
        Ok(model)
    }

    async fn system_prompt(&self, turn: &Turn, desk: &Desk, model: &str) -> Result<String> {
        let settings = &desk.loaded.settings;
        let (own, append) = turn.session.log.state(|state| (state.system_prompt.clone(), state.system_prompt_append.clone()));
        let mut base = match own.or(self.shared.overrides.system_prompt.clone()) {
            Some(prompt) => prompt,
            None => system_prompt::base(&settings.prompts, model)?,
        };
        if let Some(append) = append {
            base = format!("{}\n\n{append}", base.trim_end());
        }
        let found = if settings.instructions.auto_inject {
            instructions::find(&desk.workspace.cwd, &settings.instructions.patterns)
        } else {
            Instructions::default()
        };
        self.report_foreign(turn, found.foreign).await;
        let mode = turn.session.log.state(|state| Mode::parse(&state.mode)).unwrap_or(Mode::Ask);
        Ok(system_prompt::whole(&base, &desk.workspace, mode, &found.taken))
    }

    /// Emits one notice for the files that were skipped because another user owns them.
    async fn report_foreign(&self, turn: &Turn, mut foreign: Vec<PathBuf>) {
        {
            let mut reported = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
            foreign.retain(|path| !reported.contains(path));
            reported.extend(foreign.iter().cloned());
        }
        if !foreign.is_empty() {
            let names: Vec<String> = foreign.iter().map(|path| one_line(path.display().to_string())).collect();
            let description = format!("{}: owned by another user, in a world-writable directory", names.join(", "));
            turn.emit(Body::notice(Severity::Warning, "Project files of another user are ignored", description)).await;
        }
    }

    fn request(&self, turn: &Turn, system: &str) -> Request {
        let log = &turn.session.log;
        let (messages, thinking) = log.state(|state| (state.history.messages(), state.thinking.clone()));
        let thinking = thinking.or(self.shared.overrides.thinking.clone());
        Request {
            system: system.into(),
            messages,
            tools: self.shared.tools.specs(),
            thinking: thinking.as_deref().and_then(Thinking::parse).unwrap_or_default(),
            cache_key: log.id.to_string(),
        }
    }
}

/// Returns a call id that is unique in the session: `given`, unless it is empty or already used.
pub(super) fn call_id(turn: &Turn, given: &str) -> ToolCallId {
    let taken = given.is_empty() || turn.session.log.state(|state| state.history.has_call(given));
    if taken { ToolCallId::new() } else { given.into() }
}

pub(super) fn model_error(error: crate::model::ModelError) -> Error {
    let mut converted = Error::new(Kind::ModelError, error.message);
    converted.hint = error.hint;
    if error.unreachable { converted.details(serde_json::json!({ "unreachable": true })) } else { converted }
}
