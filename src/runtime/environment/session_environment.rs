//! The environment of a session's tool calls: directories, settings, shell, language servers.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::config::{
    self, AccessKind, DataPaths, HookSettings, LoadedSettings, ProgramKind, ProjectProgram, Rule, SandboxMode, SessionVariables,
};
use crate::context::project_dirs::ProjectDirs;
use crate::error::Result;
use crate::event::SessionParent;
use crate::hooks::Hooks;
use crate::id::SessionId;
use crate::lsp::{Confinement, LanguageConfig, Languages, Launch};
use crate::model::{Model, ToolSpec};
use crate::options::Mode;
use crate::permission::Access;
use crate::permission::rules::{Rules, allows_writes};
use crate::process::{GIT_SETTINGS_VARIABLE, NO_EMBEDDED_REPOSITORIES, PLAIN_GIT_NAMES, ProgramConfinement, Sandbox};
use crate::runtime::environment::program_place::{command_hook, named_by_user};
use crate::runtime::environment::session_tools::SessionTools;
use crate::runtime::environment::task_agents::task_agents;
use crate::runtime::services::Services;
use crate::runtime::services::confinement;
use crate::runtime::services::models::Models;
use crate::toolkit::{CheckSettings, FilesSeen, PreparedCall, Shell, ToolContext, ToolError, TurnChanges};
use crate::tools::task;
use crate::workspace::{Workspace, leads_out, linked_git_dirs};

/// The name of the artifact directory outside of a session.
const NO_SESSION: &str = "tool";

/// The environment of one session. It is built again when the session's directories change.
pub(crate) struct SessionEnvironment {
    pub services: Arc<Services>,
    pub loaded: LoadedSettings,
    pub workspace: Arc<Workspace>,
    pub shell: Arc<Shell>,
    /// The tools that models can call in this session.
    pub(crate) tools: SessionTools,
    /// Number of parent sessions, including sessions of the processes that started nuncio.
    depth: u32,
    pub(in crate::runtime) hooks: Hooks,
    /// The environment variables of commands, with which they find the session.
    variables: Arc<SessionVariables>,
    cwd: PathBuf,
    /// Directories besides `cwd` that the client named, as the client wrote them.
    directories: Vec<PathBuf>,
    /// Directories that the client named, with symlinks resolved.
    client_roots: Arc<[PathBuf]>,
    /// Directories that a sandboxed command may write to, unless the sandbox is read-only.
    pub(in crate::runtime) writable: Vec<PathBuf>,
    /// Directories of `sandbox.writable` that are not used, because a symlink of the project leads
    /// to them.
    pub dropped: Vec<PathBuf>,
    /// Agent definitions, commands and skills that are not used, with the reasons.
    pub skipped: Vec<String>,
    files: Arc<FilesSeen>,
    checks: CheckSettings,
    /// The repository belongs to another user: its directory and the owner.
    pub foreign_repository: Option<Arc<str>>,
    /// The files that the running turn changed.
    pub changes: Arc<TurnChanges>,
    languages: Arc<Languages>,
    /// Instruction files that a call of the current answer of the model adds to its result.
    instructions: Mutex<HashSet<String>>,
    /// The model of the running turn.
    model: Mutex<Option<Arc<dyn Model>>>,
}

impl SessionEnvironment {
    /// Builds the environment of `cwd` and `directories` from the current settings. `session` is
    /// `None` outside of a session; `parent` is set for a subagent. The shell of `before`, with its
    /// variables and jobs, is kept, and so is its list of tools.
    pub(crate) fn new(
        services: Arc<Services>,
        session: Option<&SessionId>,
        parent: Option<&SessionParent>,
        cwd: PathBuf,
        directories: Vec<PathBuf>,
        before: Option<&SessionEnvironment>,
    ) -> Result<SessionEnvironment> {
        let (places, loaded) = (&services.places, services.settings(&cwd)?);
        let artifacts = session.map_or(NO_SESSION, SessionId::as_str);
        let roots = directories.iter().chain(&services.overrides.roots).chain(&loaded.settings.allowed_paths).cloned();
        let own = &services.user.settings;
        let named = directories.iter().chain(&services.overrides.roots).chain(&own.allowed_paths).cloned();
        let workspace = Workspace::new(&cwd, roots, &places.artifacts(artifacts))
            .named_roots(&named.collect::<Vec<_>>())
            .attachments(&places.attachments(artifacts))
            .readable(services.prompt_dirs(&cwd).user_skills())
            .readable(vec![places.mcp_work("")])
            .home(places.home.clone())
            .protect(places.own_files())
            .protect(loaded.project_files.iter().cloned())
            .private(places.private())
            .excludes(config::excludes(&services.environment));
        let named = named_by_user(own, places, &workspace);
        let workspace = workspace.protect(named);
        let terms = language_config(&services, &loaded, &workspace);
        let writable = loaded.settings.sandbox.writable.iter().map(|path| workspace.cwd.join(path));
        let (dropped, writable): (Vec<_>, Vec<_>) = writable.partition(|path| leads_out(path, &workspace.roots));
        let writable = writable.iter().filter_map(|path| path.canonicalize().ok());
        let git_dirs = workspace.roots.iter().flat_map(|root| linked_git_dirs(root));
        let shell = before.map_or_else(|| Arc::new(Shell::new(&workspace)), |before| before.shell.clone());
        if before.is_some_and(|before| before.cwd != cwd) {
            shell.set_cwd(workspace.cwd.clone());
        }
        let (tools, skipped) = match before {
            Some(before) => (before.tools.copy(), Vec::new()),
            None => new_tools(&services, &cwd, parent),
        };
        let checks = before.filter(|before| before.cwd == cwd).map(|before| &before.checks);
        let secrets = Models::secret_names(&loaded.settings);
        let variables = variables(&services, session, &workspace);
        let hook = |settings: &HookSettings| command_hook(settings, &services, &workspace, &secrets, &variables);
        let hooks = Hooks::new(loaded.settings.hooks.iter().map(hook), &services.registered_hooks());
        Ok(SessionEnvironment {
            tools,
            depth: services.depth_of(session, parent),
            hooks,
            variables: Arc::new(variables),
            writable: workspace.roots.iter().cloned().chain(writable).chain(git_dirs).collect(),
            dropped,
            skipped,
            client_roots: workspace.roots_of(&directories).into(),
            checks: CheckSettings::new(&loaded.settings.verify, places, &workspace.cwd, checks),
            foreign_repository: foreign_repository(&workspace.cwd, places),
            changes: Arc::default(),
            files: Arc::new(FilesSeen::new(services.writing.clone())),
            languages: Arc::new(Languages::new(services.servers.clone(), terms)),
            workspace: Arc::new(workspace),
            services,
            loaded,
            shell,
            cwd,
            directories,
            instructions: Mutex::default(),
            model: Mutex::default(),
        })
    }

    /// Sets an environment variable of the commands.
    pub(crate) fn set_variable(&mut self, name: &'static str, value: String) {
        Arc::make_mut(&mut self.variables).set(name, value);
    }

    /// Returns whether the caller is the first call of the model's answer that adds this
    /// instruction file to its result.
    pub(in crate::runtime) fn claim_instructions(&self, file: &str) -> bool {
        self.instructions.lock().insert(file.into())
    }

    /// Clears the claims on instruction files. Called before the calls of an answer run.
    pub(crate) fn release_instructions(&self) {
        self.instructions.lock().clear();
    }

    /// Sets the model that answers requests of MCP servers.
    pub(crate) fn set_model(&self, model: Arc<dyn Model>) {
        *self.model.lock() = Some(model);
    }

    /// Returns the model of the running turn.
    pub(in crate::runtime) fn model(&self) -> Option<Arc<dyn Model>> {
        self.model.lock().clone()
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns whether the environment was built for these directories.
    pub(crate) fn is_for(&self, cwd: &Path, directories: &[PathBuf]) -> bool {
        self.cwd == cwd && self.directories == directories
    }

    /// Returns the specification of the tool of a call. An automatic call, which nuncio makes by
    /// itself, does not depend on the session's selection of tools.
    pub(in crate::runtime) fn tool_spec(&self, name: &str, automatic: bool) -> Option<ToolSpec> {
        let table = self.tools.table();
        let tools = if automatic { &self.services.tools } else { &*table };
        tools.get(name).map(|tool| tool.spec().clone())
    }

    /// Parses the input of a call of the tool that [`SessionEnvironment::tool_spec`] describes.
    pub(in crate::runtime) fn prepare_call(
        &self,
        name: &str,
        input: Value,
        context: &ToolContext,
        automatic: bool,
    ) -> Result<PreparedCall, ToolError> {
        match automatic {
            true => self.services.tools.prepare(name, input, context),
            false => self.tools.table().prepare(name, input, context),
        }
    }

    /// Builds the context of a tool call. The caller sets the call id, the cancel token, the
    /// progress callback and the permission filters.
    pub(crate) fn tool_context(&self) -> ToolContext {
        let settings = &self.loaded.settings;
        let mut context = ToolContext::new(self.workspace.clone(), self.shell.clone(), self.services.launcher.clone());
        context.depth = self.depth;
        context.variables = self.variables.clone();
        context.files = self.files.clone();
        context.web = self.services.models.clients.clone();
        context.searches = self.services.searches.clone();
        context.fetch_hosts = settings.tools.fetch_allowed_hosts.as_slice().into();
        context.languages = self.languages.clone();
        context.subagent_model = settings.roles.subagent.as_deref().map(Arc::from);
        context.secrets = Models::secret_names(settings).into();
        if settings.tools.client_files {
            context.client_roots = self.client_roots.clone();
        }
        context.client_terminal = settings.tools.client_terminal;
        context.checks = self.checks.clone();
        context.foreign_repository = self.foreign_repository.clone();
        context.changes = self.changes.clone();
        context
    }

    /// Returns how long a permission request waits for its answer.
    pub(crate) fn answer_timeout(&self) -> Duration {
        Duration::from_secs(self.loaded.settings.permissions.timeout_s)
    }

    /// Returns the check commands and how they run.
    pub(in crate::runtime) fn checks(&self) -> &CheckSettings {
        &self.checks
    }

    /// Returns whether the mode should confine commands and the system cannot.
    pub(in crate::runtime) fn is_unconfined(&self, mode: Mode) -> bool {
        mode == Mode::Auto && self.loaded.settings.sandbox.mode.is_none() && !Sandbox::is_available()
    }

    /// Returns the sandbox for a command in the given permission mode; `None` means no sandbox.
    pub(crate) fn sandbox(&self, mode: Mode) -> Option<Sandbox> {
        let settings = &self.loaded.settings.sandbox;
        let confines = mode == Mode::Auto && !self.is_unconfined(mode);
        let of_mode = if confines { SandboxMode::WorkspaceWrite } else { SandboxMode::Off };
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
            new_temp: false,
            git_config: settings.git_config,
            settings: false,
            network: settings.network,
            required: true,
        })
    }

    /// Returns whether the model may write any file without a permission request.
    pub(in crate::runtime) fn writes_unasked(&self, mode: Mode, rules: &Rules) -> bool {
        let table = self.tools.table();
        let writing = table.iter().filter(|tool| Access::ordinary(tool.access()).kind == AccessKind::Write);
        let names: Vec<&str> = writing.map(|tool| tool.name()).collect();
        allows_writes(rules, mode, self.loaded.settings.permissions.default, &names)
    }

    /// Returns the permission rules in effect. `session` contains the rules remembered from earlier
    /// answers.
    pub(crate) fn rules(&self, session: &[Rule]) -> Rules {
        Rules::with_user(self.services.user_rules.applying_in(&self.cwd), &self.loaded, session.to_vec())
    }
}

/// Creates the tools of a session in `cwd`. Also returns why agent definitions, commands and skills
/// are not used; a subagent has the same files as the session above it.
fn new_tools(services: &Services, cwd: &Path, parent: Option<&SessionParent>) -> (SessionTools, Vec<String>) {
    let agents = task_agents(services, cwd);
    let skipped = match parent {
        None => {
            let skipped = agents.skipped.iter().map(ToString::to_string);
            skipped.chain(services.prompt_dirs(cwd).skipped()).chain(agents.notices.iter().cloned()).collect()
        }
        Some(_) => Vec::new(),
    };
    let native = services.tools.replacing(&task::with_agents(agents.into()));
    (SessionTools::new(&native, parent.and_then(|parent| parent.tools.clone())), skipped)
}

/// Returns the variables of a session's commands. Git prints names as they are, and refuses bare
/// repositories that it finds, unless a root is one.
fn variables(services: &Services, session: Option<&SessionId>, workspace: &Workspace) -> SessionVariables {
    let mut variables = services.session_variables(session, &workspace.cwd);
    let before = services.environment.get(GIT_SETTINGS_VARIABLE).unwrap_or_default();
    let refuse = if workspace.has_bare_root() { "" } else { NO_EMBEDDED_REPOSITORIES };
    variables.set(GIT_SETTINGS_VARIABLE, format!("'{PLAIN_GIT_NAMES}' {before} {refuse}").trim_end());
    variables
}

/// Configures the language servers that a session may start.
fn language_config(services: &Arc<Services>, loaded: &LoadedSettings, workspace: &Workspace) -> LanguageConfig {
    let (all, cwd, roots) = (services.clone(), workspace.cwd.clone(), workspace.named_roots.clone());
    let confine = move |name: &str, launch: &Launch, commands: Option<&Sandbox>| {
        let grants = &all.user.settings.trust;
        let mut program = ProjectProgram::new(&all.places, grants, &cwd, ProgramKind::Lsp(name), false);
        // A server of the user has the rights of the session's commands.
        let commands_of_user = commands.filter(|_| launch.project.is_none());
        program.grant.network |= commands_of_user.is_some_and(|sandbox| sandbox.network);
        let roots = match (commands, commands_of_user) {
            (Some(sandbox), _) if sandbox.writable.is_empty() => &[][..],
            (_, Some(sandbox)) => &sandbox.writable,
            _ => &roots,
        };
        let variables = confinement::variables(&program, &launch.command);
        let ProgramConfinement { sandbox, program } = confinement::confined(program, roots);
        Confinement { sandbox, variables, hint: program.hint() }
    };
    LanguageConfig {
        settings: loaded.settings.lsp.clone(),
        search: services.environment.get("PATH").unwrap_or_default().into(),
        places: Some(services.places.clone()),
        roots: workspace.roots.clone(),
        confine: Some(Box::new(confine)),
    }
}

/// Describes the directory of another user that makes git unsafe in `cwd`.
fn foreign_repository(cwd: &Path, places: &DataPaths) -> Option<Arc<str>> {
    let foreign = ProjectDirs::new(cwd, Some(places)).foreign.into_iter().next()?;
    Some(format!("{} belongs to another user ({})", foreign.display(), config::owner_name(&foreign)).into())
}
