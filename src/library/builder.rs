//! The builder of an agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::agent::Agent;
use super::closure_hook::ClosureHook;
use super::fixed_model::FixedModel;
use super::own_tool::{OwnTool, Tool};
use super::question::{Decide, Decision, Question};
use super::store::{Store, TemporaryDirectory};
use crate::app::{Bootstrap, CommonArgs, assemble, load, paths, with_lease};
use crate::config::{Durability, Environment, Overrides, SQLITE, Trust, TrustedContent};
use crate::error::{Error, Kind, Result};
use crate::event::HookEvent;
use crate::hooks::{Hook, HookTool};
use crate::model::{Model, ModelProvider};
use crate::options::{Mode, Thinking};
use crate::process::{ProcessLauncher, is_helper};
use crate::session::Capacity;
use crate::task;
use crate::toolkit::AnyTool;
use crate::tools::Tools;

/// The search path of commands, if the environment has none (execvp(3)).
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Why an agent cannot be built in a program that does not call [`crate::init`].
const NO_HELPER: &str = "this program does not serve as the helper that runs the commands of an agent and reads its documents";
const NO_HELPER_HINT: &str = "call nuncio::init() first in main, or name a nuncio binary with .helper(path)";

/// Maximum length of the name of a tool: what all providers accept.
const TOOL_NAME_BYTES_MAX: usize = 64;

/// Settings of an [`Agent`]. [`Agent::builder`] creates it, [`AgentBuilder::build`] ends it.
#[must_use]
pub struct AgentBuilder {
    directory: PathBuf,
    trusted: bool,
    variables: Vec<(String, String)>,
    store: Store,
    overrides: Overrides,
    helper: Option<PathBuf>,
    tools: Vec<Arc<dyn AnyTool>>,
    hooks: Vec<Arc<dyn Hook>>,
    providers: Vec<(String, Arc<dyn ModelProvider>)>,
    decide: Option<Decide>,
}

impl Agent {
    /// Returns the builder of an agent that works in `directory`, which must exist.
    pub fn builder(directory: impl AsRef<Path>) -> AgentBuilder {
        AgentBuilder {
            directory: directory.as_ref().into(),
            trusted: false,
            variables: Vec::new(),
            store: Store::default(),
            overrides: Overrides::default(),
            helper: None,
            tools: Vec::new(),
            hooks: Vec::new(),
            providers: Vec::new(),
            decide: None,
        }
    }
}

impl AgentBuilder {
    /// Sets the environment variables: API keys, proxies and paths are read from them, and commands
    /// receive them without the keys. By default there are none, because the library does not read
    /// the environment of the process; `.environment(std::env::vars())` passes it on.
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.variables = variables.into_iter().collect();
        self
    }

    /// Sets the text of the settings, in TOML as in docs/SETTINGS.md. They replace the files of the
    /// user and of the project.
    pub fn settings(mut self, text: impl Into<String>) -> Self {
        self.overrides.settings = Some(text.into());
        self
    }

    /// Sets the place of the sessions; by default [`Store::Memory`].
    pub fn store(mut self, store: Store) -> Self {
        self.store = store;
        self
    }

    /// Trusts the directory, as `nuncio trust` does: its settings are in effect, and a hosted agent
    /// that may run programs which its files name can start.
    pub fn trust_directory(mut self) -> Self {
        self.trusted = true;
        self
    }

    /// Sets the model, `PROVIDER/NAME`.
    pub fn model(mut self, id: impl Into<String>) -> Self {
        self.overrides.model = Some(id.into());
        self
    }

    /// Sets a model of this program. Its id must have the form `PROVIDER/NAME`, and all models of
    /// that provider are this one.
    pub fn model_with(mut self, model: impl Model) -> Self {
        let id = model.id().to_owned();
        if let Some((provider, _)) = id.split_once('/') {
            self.providers.push((provider.to_owned(), Arc::new(FixedModel::new(model))));
        }
        self.model(id)
    }

    /// Adds a provider of models. It precedes those of the settings and of the catalogue.
    pub fn provider(mut self, name: impl Into<String>, provider: impl ModelProvider) -> Self {
        self.providers.push((name.into(), Arc::new(provider)));
        self
    }

    /// Sets the hosted agent that works in new sessions, by its name in the settings
    /// (`[agents.NAME]`).
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.overrides.agents = vec![name.into()];
        self
    }

    /// Sets the permission mode of new sessions; by default [`Mode::Ask`].
    pub fn mode(mut self, mode: Mode) -> Self {
        self.overrides.mode = Some(mode);
        self
    }

    /// Sets how much the model thinks.
    pub fn thinking(mut self, thinking: Thinking) -> Self {
        self.overrides.thinking = Some(thinking);
        self
    }

    /// Replaces the system prompt.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.overrides.system_prompt = Some(text.into());
        self
    }

    /// Adds a directory to which the agent has access.
    pub fn root(mut self, directory: impl Into<PathBuf>) -> Self {
        self.overrides.roots.push(directory.into());
        self
    }

    /// Adds a tool of this program. Its name must differ from those of the built-in tools.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(OwnTool::entry(tool));
        self
    }

    /// Sets the callback that answers permission requests. It is asked when neither a rule nor the
    /// mode decides. Without a callback, such calls are denied; so is a call whose callback panics.
    pub fn decide<F: Future<Output = Decision> + Send + 'static>(
        mut self,
        decide: impl Fn(Question) -> F + Send + Sync + 'static,
    ) -> Self {
        self.decide = Some(Arc::new(move |question| Box::pin(decide(question))));
        self
    }

    /// Adds a hook, which runs after those of the settings.
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Runs a closure before each tool call. The call does not run if it returns an error, whose
    /// text the model receives.
    pub fn before_tool<F: Future<Output = Result<(), String>> + Send + 'static>(
        self,
        run: impl Fn(HookTool) -> F + Send + Sync + 'static,
    ) -> Self {
        self.hook(ClosureHook::new(HookEvent::ToolExecuteBefore, "before_tool", run))
    }

    /// Runs a closure after each tool call, whose `status` and `output` are set. If it returns an
    /// error, the model receives the text of the error instead of the output.
    pub fn after_tool<F: Future<Output = Result<(), String>> + Send + 'static>(
        self,
        run: impl Fn(HookTool) -> F + Send + Sync + 'static,
    ) -> Self {
        self.hook(ClosureHook::new(HookEvent::ToolExecuteAfter, "after_tool", run))
    }

    /// Sets the nuncio binary that runs the commands. Without it, this program does, see
    /// [`crate::init`].
    pub fn helper(mut self, binary: impl Into<PathBuf>) -> Self {
        self.helper = Some(binary.into());
        self
    }

    /// Builds the agent: reads the settings and starts the helper process. Must be called within a
    /// tokio runtime.
    pub async fn build(self) -> Result<Agent> {
        if is_helper() {
            return Err(Error::new(Kind::Unsupported, NO_HELPER).hint(NO_HELPER_HINT));
        }
        let (tools, hooks, providers, decide) = (self.table()?, self.hooks, self.providers, self.decide);
        let binary = self.helper.clone();
        let launcher = self.helper.map_or_else(ProcessLauncher::of_this_binary, ProcessLauncher::new);
        let launcher = launcher.with_environment(commands_environment(&self.variables));
        let environment: Environment = self.variables.iter().cloned().collect();
        let (store, overrides, directory, trusted) = (self.store, self.overrides, self.directory, self.trusted);
        let prepare = move || {
            let (bootstrap, temporary) = prepare(environment, store, overrides, (&directory, trusted), tools)?;
            let launcher = with_lease(launcher, &bootstrap)?;
            let failed = |error| Error::new(Kind::Unsupported, NO_HELPER).hint(NO_HELPER_HINT).source(error);
            launcher.check().map_err(failed).map(|()| (bootstrap, temporary, launcher))
        };
        let (bootstrap, temporary, launcher) = task::blocking("building an agent", prepare).await??;
        let app = assemble(bootstrap, Capacity::default(), launcher);
        app.services.embed(binary);
        for hook in hooks {
            app.services.add_hook(hook);
        }
        for (name, provider) in providers {
            app.services.models.register(name, provider);
        }
        Ok(Agent::new(app, decide, temporary))
    }

    /// Returns the table of the built-in tools and those of this program.
    fn table(&self) -> Result<Tools> {
        let native = Tools::native();
        for (index, tool) in self.tools.iter().enumerate() {
            let name = tool.name();
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || name.len() > TOOL_NAME_BYTES_MAX || !name.chars().all(plain) {
                let hint = format!("1 to {TOOL_NAME_BYTES_MAX} letters, digits, `_` and `-`");
                return Err(Error::invalid_params(format!("invalid name of a tool: {name:?}")).hint(hint));
            }
            if native.get(name).is_some() || self.tools[..index].iter().any(|other| other.name() == name) {
                return Err(Error::invalid_params(format!("there is another tool {name}")));
            }
        }
        Ok(native.with_tools(&self.tools, &[]))
    }
}

/// Returns the environment of commands. A shell needs a search path.
fn commands_environment(variables: &[(String, String)]) -> Vec<(String, String)> {
    let mut variables = variables.to_vec();
    if !variables.iter().any(|(name, _)| name == "PATH") {
        variables.push(("PATH".into(), DEFAULT_PATH.into()));
    }
    variables
}

/// Loads the settings. Also returns the directory that is removed with the agent, if its store is
/// in memory.
fn prepare(
    environment: Environment,
    store: Store,
    overrides: Overrides,
    (directory, trusted): (&Path, bool),
    tools: Tools,
) -> Result<(Bootstrap, Option<TemporaryDirectory>)> {
    let directory = std::path::absolute(directory).map_err(|error| Error::io("resolving the directory", error))?;
    let parent = environment.get("TMPDIR").unwrap_or("/tmp");
    let temporary = if store == Store::Memory { Some(TemporaryDirectory::create(Path::new(parent))?) } else { None };
    let data = match (store, &temporary) {
        (_, Some(temporary)) => Some(temporary.path().to_owned()),
        (Store::Directory(data), None) => Some(data),
        (Store::Memory | Store::User, None) => None,
    };
    let environment = match &data {
        // Without a home directory, the files of the user are in the data directory.
        Some(data) => environment.with_home(data),
        None => environment,
    };
    if trusted {
        let failed = |error| Error::io(format_args!("reading the settings of {}", directory.display()), error);
        let content = TrustedContent::read(&directory).map_err(failed)?;
        Trust::add(&paths(&environment, &None, &data)?, &directory, &content)?;
    }
    // Only the sessions of the user can be in a database.
    let url = data.is_some().then(|| SQLITE.to_owned());
    let args = CommonArgs { overrides, data, store: url, cwd: Some(directory.clone()), ..CommonArgs::default() };
    let mut bootstrap = load(environment, args, &directory, tools)?;
    if temporary.is_some() {
        bootstrap.loaded.settings.durability = Durability::Normal;
    }
    Ok((bootstrap, temporary))
}
