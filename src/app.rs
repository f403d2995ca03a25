//! Builds the application from settings, models, agents and transports, and runs its transports.

#[cfg(feature = "http")]
mod transports;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::api::App;
use crate::config::{DEPTH_VARIABLE, DataPaths, Environment, HIDDEN_VARIABLE, LoadedSettings, Overrides, load_project, load_user};
use crate::error::{Error, Result};
use crate::hub::Hub;
use crate::process::{GIT_DIR_VARIABLES, LeaseDeadline, ProcessLauncher};
use crate::runtime::{Models, Services};
use crate::session::Capacity;
use crate::tools::Tools;
#[cfg(feature = "http")]
pub(crate) use transports::{acp, acp_and_http, http_server, http_server_of, on_signal, on_termination, serve, server_roots};

/// The environment variable with the URL of the store.
const STORE_VARIABLE: &str = "NUNCIO_STORE";

/// Command-line options that all commands accept.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommonArgs {
    pub overrides: Overrides,
    /// The settings file, instead of the default one.
    pub config: Option<PathBuf>,
    /// The data directory, instead of the default one.
    pub data: Option<PathBuf>,
    /// The URL of the store, instead of that of the environment or the settings.
    pub store: Option<String>,
    /// The working directory, instead of the current one.
    pub cwd: Option<PathBuf>,
}

/// The settings and paths from which the application is built. The store is not open yet.
pub(crate) struct Bootstrap {
    pub environment: Environment,
    pub places: DataPaths,
    pub loaded: LoadedSettings,
    pub overrides: Overrides,
    pub cwd: PathBuf,
    /// Names of the environment variables that contain API keys and tokens.
    pub secrets: Vec<String>,
    /// The native tools. Their schemas are generated once per process.
    pub tools: Tools,
}

/// Loads and checks the user's settings, and removes secrets from the environment of this process.
pub(crate) fn bootstrap(environment: Environment, args: CommonArgs) -> Result<Bootstrap> {
    let here = std::env::current_dir().map_err(|error| Error::io("finding the current directory", error))?;
    let bootstrap = load(environment, args, &here, Tools::native())?;
    // Other processes can read the environment in /proc.
    bootstrap.environment.hide(&bootstrap.secrets);
    Ok(bootstrap)
}

/// Loads and checks the user's settings. `here` is the base directory of relative paths.
pub(crate) fn load(environment: Environment, args: CommonArgs, here: &Path, tools: Tools) -> Result<Bootstrap> {
    let cwd = match &args.cwd {
        Some(cwd) => absolute_directory(here, cwd)?,
        None => here.into(),
    };
    let mut overrides = args.overrides;
    for root in &mut overrides.roots {
        *root = absolute_directory(here, root)?;
    }
    let places = paths(&environment, &args.config, &args.data)?;
    let mut loaded = load_user(&places, args.config.is_some(), &environment, &overrides)?;
    let store = args.store.or_else(|| environment.get(STORE_VARIABLE).filter(|url| !url.is_empty()).map(String::from));
    loaded.settings.store.url = store.or(loaded.settings.store.url);
    loaded.check_tools(&tools.known(), &places, &cwd)?;
    // Child processes do not inherit the secrets.
    let project = load_project(&loaded, &places, &cwd, &environment, &overrides).unwrap_or_else(|_| loaded.clone());
    let mut secrets = Models::secret_names(&project.settings);
    // It may contain a password.
    secrets.push(STORE_VARIABLE.into());
    // Its paths say where tasks and results are.
    secrets.push(HIDDEN_VARIABLE.into());
    Ok(Bootstrap { environment, places, loaded, overrides, cwd, secrets, tools })
}

/// Returns the paths of nuncio's files. `config` and `data` replace the default ones.
pub(crate) fn paths(environment: &Environment, config: &Option<PathBuf>, data: &Option<PathBuf>) -> Result<DataPaths> {
    let mut places = DataPaths::new(environment, data.as_deref())?;
    if let Some(file) = config {
        places.file = std::path::absolute(file).map_err(|error| Error::io("resolving --config", error))?;
    }
    Ok(places)
}

/// Returns the canonical path of `dir`, which must exist; a relative path is resolved against
/// `here`.
fn absolute_directory(here: &Path, dir: &Path) -> Result<PathBuf> {
    let dir = here.join(dir);
    std::fs::canonicalize(&dir).map_err(|error| Error::invalid_params(format!("{}: {error}", dir.display())))
}

/// Builds the application with default limits. Its store is not open yet.
pub(crate) fn build(bootstrap: Bootstrap) -> Result<Arc<App>> {
    build_with(bootstrap, Capacity::default())
}

fn build_with(bootstrap: Bootstrap, capacity: Capacity) -> Result<Arc<App>> {
    let mut launcher = ProcessLauncher::of_this_binary();
    // Raise the limit on open files: each open session locks a file, which requires a descriptor.
    // Commands run with the original limit.
    match crate::process::raise_open_files() {
        Ok(before) => launcher = launcher.open_files(before),
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
    let launcher = with_lease(launcher, &bootstrap)?;
    Ok(assemble(bootstrap, capacity, launcher))
}

/// Returns the launcher, whose commands run under a lease if the store has nodes.
pub(crate) fn with_lease(launcher: ProcessLauncher, bootstrap: &Bootstrap) -> Result<ProcessLauncher> {
    if bootstrap.loaded.settings.store.postgres().is_none() {
        return Ok(launcher);
    }
    let deadline = LeaseDeadline::new().map_err(|error| Error::io("preparing the lease", error))?;
    Ok(launcher.with_lease(Arc::new(deadline)))
}

/// Builds the application, whose commands `launcher` starts.
pub(crate) fn assemble(bootstrap: Bootstrap, capacity: Capacity, launcher: ProcessLauncher) -> Arc<App> {
    let Bootstrap { environment, places, loaded, overrides, cwd, secrets, tools } = bootstrap;
    let below = (environment.depth() + 1).to_string();
    let git_dirs = GIT_DIR_VARIABLES.iter().filter_map(|name| environment.get(name)).map(PathBuf::from).collect();
    let launcher = launcher.without(secrets).with_variable(DEPTH_VARIABLE, below).with_git_dirs(git_dirs);
    let models = Models::new(environment.clone(), overrides.base_url.clone(), launcher.clone(), cwd.clone(), &places.data);
    let mode = overrides.mode.unwrap_or_default();
    let services = Arc::new(Services::new(loaded, places, environment, overrides, models, launcher, tools));
    let agents = Arc::new(Hub::new(services.clone()));
    App::new(services, agents, cwd, mode, capacity, crate::peer::serve)
}
