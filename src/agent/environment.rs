//! The environment of a session's tool calls: directories, settings, shell, language servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::models::Models;
use super::services::Services;
use crate::config::{self, Loaded, Rule, SandboxMode};
use crate::error::Result;
use crate::lsp::{LanguageConfig, Languages};
use crate::options::Mode;
use crate::permission::rules::Rules;
use crate::process::Sandbox;
use crate::toolkit::{FilesSeen, Shell, ToolContext};
use crate::workspace::Workspace;

/// The environment of one session. It is built again when the session's directories change.
pub(crate) struct SessionEnvironment {
    pub(super) services: Arc<Services>,
    pub(super) loaded: Loaded,
    pub(super) workspace: Arc<Workspace>,
    pub(super) shell: Arc<Shell>,
    cwd: PathBuf,
    /// Directories besides `cwd` that the client named, as the client wrote them.
    directories: Vec<PathBuf>,
    /// Directories that the client named, with symlinks resolved.
    client_roots: Arc<[PathBuf]>,
    /// Directories that a sandboxed command may write to, unless the sandbox is read-only.
    writable: Vec<PathBuf>,
    files: Arc<FilesSeen>,
    languages: Arc<Languages>,
}

impl SessionEnvironment {
    /// Builds the environment of `cwd` and `directories` from the current settings. `session` is
    /// the name of the session's artifact directory. The shell of `before`, with its variables and
    /// jobs, is kept.
    pub(crate) fn new(
        services: Arc<Services>,
        session: &str,
        cwd: PathBuf,
        directories: Vec<PathBuf>,
        before: Option<&SessionEnvironment>,
    ) -> Result<SessionEnvironment> {
        let (places, loaded) = (&services.places, services.settings(&cwd)?);
        let roots = directories.iter().chain(&services.overrides.roots).chain(&loaded.settings.allowed_paths).cloned();
        let workspace = Workspace::new(&cwd, roots, &places.artifacts(session))
            .attachments(&places.attachments(session))
            .home(places.home.clone())
            .protect(places.own_files())
            .private(places.private())
            .excludes(config::excludes(&services.environment));
        let terms = LanguageConfig {
            settings: loaded.settings.lsp.clone(),
            search: services.environment.get("PATH").unwrap_or_default().into(),
            places: Some(places.clone()),
            roots: workspace.roots.clone(),
        };
        let writable = loaded.settings.sandbox.writable.iter().filter_map(|path| workspace.cwd.join(path).canonicalize().ok());
        let shell = before.map_or_else(|| Arc::new(Shell::new(&workspace)), |before| before.shell.clone());
        if before.is_some_and(|before| before.cwd != cwd) {
            shell.set_cwd(workspace.cwd.clone());
        }
        Ok(SessionEnvironment {
            writable: workspace.roots.iter().cloned().chain(writable).collect(),
            client_roots: workspace.roots_of(&directories).into(),
            files: Arc::new(FilesSeen::new(services.writing.clone())),
            languages: Arc::new(Languages::new(services.servers.clone(), terms)),
            workspace: Arc::new(workspace),
            services,
            loaded,
            shell,
            cwd,
            directories,
        })
    }

    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns whether the environment was built for these directories.
    pub(super) fn is_for(&self, cwd: &Path, directories: &[PathBuf]) -> bool {
        self.cwd == cwd && self.directories == directories
    }

    /// Builds the context of a tool call. The caller sets the call id, the cancel token, the
    /// progress callback and the permission filters.
    pub(super) fn tool_context(&self) -> ToolContext {
        let settings = &self.loaded.settings;
        let mut context = ToolContext::new(self.workspace.clone(), self.shell.clone(), self.services.launcher.clone());
        context.files = self.files.clone();
        context.web = self.services.models.clients.clone();
        context.searches = self.services.searches.clone();
        context.fetch_hosts = settings.tools.fetch_allowed_hosts.as_slice().into();
        context.languages = self.languages.clone();
        context.secrets = Models::secret_names(settings).into();
        if settings.tools.client_files {
            context.client_roots = self.client_roots.clone();
        }
        context.client_terminal = settings.tools.client_terminal;
        context
    }

    /// Returns the sandbox for a command in the given permission mode; `None` means no sandbox.
    pub(super) fn sandbox(&self, mode: Mode) -> Option<Sandbox> {
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
    pub(super) fn rules(&self, session: &[Rule]) -> Rules {
        Rules {
            user: self.loaded.settings.permissions.rules.clone(),
            project: self.loaded.project_rules.clone(),
            session: session.to_vec(),
        }
    }
}
