//! The native agent of a session, and the loop of its turns.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::models::Models;
use super::step::{self, Answer, Piece};
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
use crate::web::Web;
use crate::workspace::{Workspace, one_line};

/// What all native agents of this process share.
pub struct NativeAgents {
    pub user: Loaded,
    pub places: Places,
    pub environment: Environment,
    pub overrides: Overrides,
    pub models: Arc<Models>,
    pub supervisor: Supervisor,
    pub servers: Arc<Servers>,
    tools: Tools,
    web: Web,
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
            web: Web::default(),
            maps: Arc::default(),
            searches: Arc::new(Semaphore::new(limits::WALKS_MAX)),
            writing: Arc::default(),
        }
    }

    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// The settings that hold in `cwd`.
    pub fn settings(&self, cwd: &Path) -> Result<Loaded> {
        let loaded = load_project(&self.user, &self.places, cwd, &self.environment, &self.overrides)?;
        loaded.check_tools(&self.tools.known(), &self.places, cwd)?;
        Ok(loaded)
    }

    /// Whether the settings that hold in `cwd` know the provider of `model`.
    pub fn check_model(&self, model: &str, cwd: &Path) -> Result<()> {
        let loaded = self.settings(cwd)?;
        self.models.check(model, &loaded.settings).map_err(|error| Error { kind: Kind::InvalidParams, ..model_error(error) })
    }

    /// The session's directories and settings, as they are now. `session` names its artifacts; its shell is that of its desk
    /// `before`, with what that keeps and runs.
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

/// Where a session works, with which settings; made anew when its directories change.
pub struct Desk {
    cwd: PathBuf,
    additional_directories: Vec<PathBuf>,
    /// The directories that the client named, without symlinks.
    client_roots: Arc<[PathBuf]>,
    /// Where commands may write if they may write at all.
    writable: Vec<PathBuf>,
    pub workspace: Arc<Workspace>,
    pub shell: Arc<Shell>,
    pub files: Arc<FilesSeen>,
    pub languages: Arc<Languages>,
    pub loaded: Loaded,
}

impl Desk {
    /// Everything a call may use. The caller adds its own id, cancel and progress, and what rules keep from it.
    pub fn tool_context(&self, shared: &NativeAgents) -> ToolContext {
        let mut context = ToolContext::new(self.workspace.clone(), self.shell.clone(), shared.supervisor.clone());
        context.files = self.files.clone();
        context.web = shared.web.clone();
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

    /// What a command is confined to in a session that is in this mode.
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

    /// The rules in force, with those that the session's own answers made.
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
    /// Made by the first turn, and anew when its directories change.
    desk: Mutex<Option<Arc<Desk>>>,
    /// The model that was asked last; a scripted one counts its steps.
    model: Mutex<Option<(String, Arc<dyn Model>)>>,
    /// Files of other users that a notice named already.
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
                // With it go its temporary files, however many those are.
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
            self.carry_out(turn, &desk, answer, calls).await?;
            if turn.cancel.is_cancelled() {
                return Ok(StopReason::Cancelled);
            }
            // Whoever steers a turn that was about to end keeps it going.
            let goes_on = calls || stop == StopReason::EndTurn && turn.take_steered().await?;
            if !goes_on {
                return Ok(stop);
            }
        }
        Ok(StopReason::MaxTurnRequests)
    }

    /// Writes down a whole answer, its calls announced in their order, and runs them side by side. One that fails touches no other.
    /// Without `run`, as after an answer that was cut for its length, the calls are left out.
    async fn carry_out(&self, turn: &Turn, desk: &Arc<Desk>, answer: Answer, run: bool) -> Result<()> {
        let mut announced = Vec::new();
        for piece in answer.pieces {
            match piece {
                Piece::Message(body) => turn.emit(body).await,
                Piece::Call(called) if run => announced.push(ToolCall::announce(turn, &self.shared, desk, called).await),
                Piece::Call(_) => {}
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
                "{} of .nuncio/config.toml would widen what is allowed{changed}: run `nuncio trust {}` to let it",
                ignored.join(", "),
                desk.cwd.display()
            );
            turn.emit(Body::notice(Severity::Warning, "Settings of this project are not used", description)).await;
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
            let description = format!("no model is set and no API key was found; a local server at {base_url} has it");
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

    /// A notice, once, of files that were not taken into the prompt because another user put them there.
    async fn report_foreign(&self, turn: &Turn, mut foreign: Vec<PathBuf>) {
        {
            let mut reported = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
            foreign.retain(|path| !reported.contains(path));
            reported.extend(foreign.iter().cloned());
        }
        if !foreign.is_empty() {
            let names: Vec<String> = foreign.iter().map(|path| one_line(path.display().to_string())).collect();
            let description = format!("{}: another user owns it, in a directory that everybody may write to", names.join(", "));
            turn.emit(Body::notice(Severity::Warning, "Files of another user are not used for the prompt", description)).await;
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

/// An id for a call that no other call of the session has: the model's own, if it is.
pub(super) fn call_id(turn: &Turn, given: &str) -> ToolCallId {
    let taken = given.is_empty() || turn.session.log.state(|state| state.history.has_call(given));
    if taken { ToolCallId::new() } else { given.into() }
}

pub(super) fn model_error(error: crate::model::ModelError) -> Error {
    let mut told = Error::new(Kind::ModelError, error.message);
    told.hint = error.hint;
    if error.unreachable { told.details(serde_json::json!({ "unreachable": true })) } else { told }
}
