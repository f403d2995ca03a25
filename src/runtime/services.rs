//! Services of this process that all native agents share: settings, models, tools, language
//! servers.

pub(crate) mod confinement;
pub(super) mod keys;
pub(super) mod list_refresh;
pub(super) mod login_state;
pub(super) mod mcp_access;
#[cfg(feature = "mcp")]
pub(super) mod mcp_calls;
pub(super) mod mcp_wait;
pub(super) mod model_lists;
pub(super) mod models;
mod prompt_dirs;
pub(super) mod recorded_results;
pub(crate) mod settings_change;
pub(super) mod stored_keys;
mod user_rules;
mod user_settings;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Semaphore;

use self::mcp_access::AgentTokens;
use self::mcp_wait::McpWait;
use self::model_lists::ModelLists;
use self::models::Models;
use self::recorded_results::RecordedResults;
use self::user_rules::UserRules;
use self::user_settings::UserSettings;
use crate::config::{DataPaths, Environment, LoadedSettings, NATIVE, Overrides, SessionVariables, load_project};
use crate::context::command_lists::CommandLists;
use crate::error::{Error, Kind, Result};
use crate::event::{HookEvent, SessionParent};
use crate::hooks::Hook;
use crate::id::SessionId;
use crate::limits;
use crate::lsp::Servers;
#[cfg(feature = "mcp")]
use crate::mcp::{McpServers, McpTokens};
use crate::model::{FailureInfo, ModelError};
use crate::process::ProcessLauncher;
use crate::toolkit::PathLocks;
use crate::tools::Tools;

/// The process-wide services of the native agent. Tool calls, turns and API methods use them.
pub struct Services {
    /// The user's settings, without the settings of a project.
    pub user: UserSettings,
    /// The permission rules of the user's settings as they are now.
    pub(crate) user_rules: UserRules,
    pub places: DataPaths,
    pub environment: Environment,
    pub overrides: Overrides,
    pub models: Models,
    pub(crate) lists: ModelLists,
    pub(crate) commands: CommandLists,
    pub launcher: ProcessLauncher,
    pub servers: Arc<Servers>,
    #[cfg(feature = "mcp")]
    pub(crate) mcp: McpServers,
    pub(crate) mcp_wait: McpWait,
    pub tools: Tools,
    /// Hooks of the embedder.
    hooks: Mutex<Vec<Arc<dyn Hook>>>,
    /// Permits for concurrent directory searches.
    pub(super) searches: Arc<Semaphore>,
    /// Locks on the files that tool calls write, shared by all sessions.
    pub(super) writing: Arc<PathLocks>,
    /// The tokens with which hosted agents use the MCP server of this process.
    pub(crate) agent_tokens: Arc<AgentTokens>,
    /// The HTTP server of this process.
    http: OnceLock<HttpAddress>,
    /// The results of a recording, which replace those of its calls.
    recorded: OnceLock<RecordedResults>,
    /// The nuncio binary of another program that embeds the library, if it has one. Not set in
    /// nuncio itself.
    embedder: OnceLock<Option<PathBuf>>,
}

/// The address of the HTTP server of this process.
struct HttpAddress {
    url: String,
    /// True if programs of this machine can connect without a certificate or a host name.
    local: bool,
}

impl Services {
    /// Creates services without starting a language server.
    pub(crate) fn new(
        user: LoadedSettings,
        places: DataPaths,
        environment: Environment,
        overrides: Overrides,
        models: Models,
        launcher: ProcessLauncher,
        tools: Tools,
    ) -> Services {
        models.keep_in(&places.data);
        Services {
            servers: Arc::new(Servers::new(launcher.clone())),
            #[cfg(feature = "mcp")]
            mcp: McpServers::new(launcher.clone(), models.clients.clone(), McpTokens::new(&places.mcp_tokens())),
            mcp_wait: McpWait::default(),
            user_rules: UserRules::new(&user, &places, &overrides),
            user: UserSettings::new(user),
            lists: ModelLists::new(&places.data),
            commands: CommandLists::default(),
            places,
            environment,
            overrides,
            models,
            launcher,
            tools,
            hooks: Mutex::default(),
            searches: Arc::new(Semaphore::new(limits::WALKS_MAX)),
            writing: Arc::default(),
            agent_tokens: Arc::default(),
            http: OnceLock::new(),
            recorded: OnceLock::new(),
            embedder: OnceLock::new(),
        }
    }

    /// Answers calls from a recording, from now on.
    pub(crate) fn answer_from(&self, results: RecordedResults) {
        // A process replays with one recording at a time in these services.
        let _ = self.recorded.set(results);
    }

    /// Returns the results of the recording that is replayed, if one is.
    pub(in crate::runtime) fn recorded(&self) -> Option<&RecordedResults> {
        self.recorded.get()
    }

    /// Records that another program embeds the library. `binary` is its nuncio binary.
    pub(crate) fn embed(&self, binary: Option<PathBuf>) {
        // An application is embedded once.
        let _ = self.embedder.set(binary);
    }

    /// Returns the path of a nuncio binary: this program, unless it embeds the library.
    pub(crate) fn binary(&self) -> Option<PathBuf> {
        match self.embedder.get() {
            Some(binary) => binary.clone(),
            None => Some(std::env::current_exe().unwrap_or_else(|_| NATIVE.into())),
        }
    }

    /// Returns the nesting depth of this process: the number of parent sessions in the processes
    /// that started it by a tool call.
    pub(crate) fn depth(&self) -> u32 {
        self.environment.depth()
    }

    /// Fails if the processes that started this one are nested as deeply as subagents may be.
    pub(crate) fn check_depth(&self) -> Result<()> {
        check_depth(self.depth())
    }

    /// Returns the number of parent sessions of a session, including those of the processes that
    /// started nuncio.
    pub(crate) fn depth_of(&self, session: Option<&SessionId>, parent: Option<&SessionParent>) -> u32 {
        let delegated = session.map_or(0, |session| self.agent_tokens.depth_of(session));
        parent.map_or(0, |parent| parent.depth).max(self.depth()).max(delegated)
    }

    /// Records that this process serves HTTP at `address`.
    pub(crate) fn listens_at(&self, address: SocketAddr, tls: bool) {
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let url = format!("{}://{}", if tls { "https" } else { "http" }, SocketAddr::new(ip, address.port()));
        // A process has one HTTP server.
        let _ = self.http.set(HttpAddress { url, local: !tls && ip.is_loopback() });
    }

    /// Returns the URL of this process's HTTP server for programs of this machine. `None` if there
    /// is no server, if it uses TLS, or if it does not listen on a loopback address.
    pub(crate) fn local_url(&self) -> Option<&str> {
        self.http.get().filter(|http| http.local).map(|http| http.url.as_str())
    }

    /// Returns the base URL of this process, if it serves HTTP.
    pub(crate) fn url(&self) -> Option<&str> {
        self.http.get().map(|http| http.url.as_str())
    }

    /// Returns the environment variables of the programs of a session.
    pub(crate) fn session_variables(&self, session: Option<&SessionId>, cwd: &Path) -> SessionVariables {
        SessionVariables::new(session.map(SessionId::as_str), cwd, self.url())
    }

    /// Adds a hook, which runs after the hooks of the settings, in sessions whose first turn starts
    /// later.
    pub fn add_hook(&self, hook: Arc<dyn Hook>) {
        self.hooks.lock().push(hook);
    }

    /// Returns the hooks added by [`Services::add_hook`], in order.
    pub(super) fn registered_hooks(&self) -> Vec<Arc<dyn Hook>> {
        self.hooks.lock().clone()
    }

    /// Returns whether the settings or the embedder have hooks for tool calls.
    pub(crate) fn has_call_hooks(&self, loaded: &LoadedSettings) -> bool {
        let events = loaded.settings.hooks.iter().map(|hook| hook.event);
        events.chain(self.registered_hooks().iter().map(|hook| hook.event())).any(HookEvent::is_about_tools)
    }

    /// Loads the settings in effect in `cwd`.
    pub(crate) fn settings(&self, cwd: &Path) -> Result<LoadedSettings> {
        let mut loaded = load_project(&self.user, &self.places, cwd, &self.environment, &self.overrides)?;
        loaded.settings.permissions.rules = self.user_rules.applying_in(cwd);
        if self.overrides.background {
            loaded.settings.permissions.timeout_s = loaded.settings.permissions.background_timeout_s;
        }
        loaded.check_tools(&self.tools.known(), &self.places, cwd)?;
        Ok(loaded)
    }

    /// Checks the provider of `model` against the settings in effect in `cwd`.
    pub(crate) fn check_model(&self, model: &str, cwd: &Path) -> Result<()> {
        let loaded = self.settings(cwd)?;
        self.models.check(model, &loaded.settings).map_err(|error| Error { kind: Kind::InvalidParams, ..model_error(error) })
    }
}

/// Fails if an agent with `depth` parent sessions would be nested deeper than subagents may be.
pub(crate) fn check_depth(depth: u32) -> Result<()> {
    let most = limits::SUBAGENT_DEPTH_MAX;
    if depth <= most {
        return Ok(());
    }
    let message = format!("at most {most} levels of subagents are possible: nuncio was started by a tool call of level {most}");
    Err(Error::invalid_params(message).hint("do the task without another nuncio"))
}

/// Returns the error of the model request that [`model_error`] converted, if any.
pub(crate) fn failed_request(error: &Error) -> Option<&ModelError> {
    error.source.as_ref()?.downcast_ref()
}

/// Converts an error from a model request. The details name the cause, for clients.
pub(crate) fn model_error(error: ModelError) -> Error {
    let details = json!(FailureInfo { cause: error.cause, unreachable: error.unreachable });
    let (message, hint) = (error.message.clone(), error.hint.clone());
    Error { hint, ..Error::new(Kind::ModelError, message).details(details).source(error) }
}
