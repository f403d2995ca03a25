//! Models and agents of the runs, with their settings, keys and versions.

use std::ffi::OsString;
use std::path::PathBuf;

use super::child_run::RunSetup;
use super::digest::{file_digest, short_digest};
use super::line::Versions;
use super::workbench::Workbench;
use crate::api::App;
use crate::cli::flags::eval_options::EvalOptions;
use crate::config::NATIVE;
use crate::error::{Error, Result};
use crate::hub;
use crate::model::providers::PROVIDERS;
use crate::runtime::{Models, model_error};
use crate::workspace::{create_private_dir, read_small, replace_private};

/// The sections of the user's settings that are in the runs. Other sections name programs, servers
/// and directories outside of a run.
const SECTIONS: [&str; 11] =
    ["agents", "budget", "context", "instructions", "models", "prompts", "providers", "retry", "review", "tools", "verify"];

/// Variables with which hosted agents find their login.
const HOSTED_VARIABLES: [&str; 5] = ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];

/// The models and agents of the runs.
pub(super) struct RunPlan {
    /// The part that all runs have in common.
    pub base: RunSetup,
    pub setups: Vec<(RunSetup, Versions)>,
    /// The digest of settings and flags.
    pub settings: String,
    _keys: KeysCopy,
}

/// A copy of the stored keys, so that the runs find them. Commands cannot read it. Removed when
/// this is dropped.
struct KeysCopy(PathBuf);

impl Drop for KeysCopy {
    fn drop(&mut self) {
        // Fails if the user has no stored keys.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl RunPlan {
    /// Prepares the runs. Fails for a model or an agent that cannot work. Without `models`, nothing
    /// is run.
    pub(super) async fn new(app: &App, bench: &Workbench, models: Option<Vec<String>>, options: &EvalOptions) -> Result<RunPlan> {
        let settings = settings(app);
        let file = bench.data().join("config.toml");
        create_private_dir(&bench.data())?;
        replace_private(&file, settings.as_bytes()).map_err(|error| Error::io("writing the settings of the runs", error))?;
        let keys = copy_keys(app, bench)?;
        let program = app.services.binary().unwrap_or_default();
        let digest = file_digest(&program).map_err(|error| Error::io("reading nuncio's program", error))?;
        let versions = Versions { nuncio: env!("CARGO_PKG_VERSION").into(), program: digest, agent: None };
        let (flags, setting_names) = flags(app, options);
        let base = RunSetup { program, model: None, agent: NATIVE.into(), settings: file, flags, variables: variables(app) };
        let mut setups = Vec::new();
        let agents = models.iter().flat_map(|_| &app.services.overrides.agents);
        for model in models_to_run(app, &models).await? {
            check_model(app, &model, options).await?;
            setups.push((RunSetup { model: Some(model), ..base.clone() }, versions.clone()));
        }
        for agent in agents {
            let version = check_agent(app, agent, options).await?;
            let user = HOSTED_VARIABLES
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), app.services.environment.get(name)?.to_owned())));
            let variables = base.variables.iter().cloned().chain(user).collect();
            let versions = Versions { agent: version, ..versions.clone() };
            // Otherwise the agent could read the tasks.
            let sandbox = ["--sandbox", "workspace-write"].map(OsString::from);
            let flags = base.flags.iter().cloned().chain(sandbox).collect();
            setups.push((RunSetup { agent: agent.clone(), flags, variables, ..base.clone() }, versions));
        }
        let settings = short_digest(format!("{settings}\n{setting_names}").as_bytes());
        Ok(RunPlan { base, setups, settings, _keys: keys })
    }
}

/// Returns the settings of the runs. No other model answers in the place of the measured one.
fn settings(app: &App) -> String {
    let mut table: toml::Table = app.services.user.sections(&SECTIONS).parse().unwrap_or_default();
    let models = table.get_mut("models").and_then(toml::Value::as_table_mut).into_iter();
    for model in models.flat_map(|models| models.iter_mut()).filter_map(|(_, model)| model.as_table_mut()) {
        model.remove("fallback");
    }
    table.to_string()
}

/// Returns the flags that are passed to the runs, and all flags that can change a result.
fn flags(app: &App, options: &EvalOptions) -> (Vec<OsString>, String) {
    let overrides = &app.services.overrides;
    let thinking = overrides.thinking.map(|level| level.as_str().to_owned());
    let given = [
        ("--thinking", thinking),
        ("--system-prompt", overrides.system_prompt.clone()),
        ("--base-url", overrides.base_url.clone()),
    ];
    let given: Vec<String> = given.into_iter().filter_map(|(flag, value)| Some(format!("{flag}={}", value?))).collect();
    // The settings name the files of prompts, whose content can change.
    let prompts = app.services.user.settings.prompts.values().map(|file| std::fs::read_to_string(file).unwrap_or_default());
    // Variables lead providers to other servers.
    let servers = PROVIDERS.iter().filter_map(|provider| provider.base_env);
    let servers: String = servers.filter_map(|name| Some(format!("\n{name}={}", app.services.environment.get(name)?))).collect();
    let names = format!("{}\n{:?}\n{}{servers}", given.join("\n"), options.timeout, prompts.collect::<String>());
    (given.into_iter().map(Into::into).collect(), names)
}

/// Returns the variables with keys that are set.
fn variables(app: &App) -> Vec<(String, String)> {
    let services = &app.services;
    let names = Models::secret_names(&services.user.settings).into_iter();
    names.filter_map(|name| services.environment.get(&name).map(|value| (name.clone(), value.to_owned()))).collect()
}

/// Copies the stored keys.
fn copy_keys(app: &App, bench: &Workbench) -> Result<KeysCopy> {
    let [from, to] = [&app.services.places.data, &bench.data()].map(|directory| directory.join("keys.json"));
    let copy = KeysCopy(to);
    let copied = match read_small(&from) {
        Ok(text) => replace_private(&copy.0, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    copied.map(|()| copy).map_err(|error| Error::io("copying the stored keys", error))
}

/// Returns the models: those of the flags, else the default one if no agent is given. The file of a
/// scripted model becomes absolute, because the runs work in another directory.
async fn models_to_run(app: &App, models: &Option<Vec<String>>) -> Result<Vec<String>> {
    let Some(models) = models else { return Ok(Vec::new()) };
    if !models.is_empty() || !app.services.overrides.agents.is_empty() {
        let absolute = |model: &String| match model.strip_prefix("scripted:") {
            Some(file) => format!("scripted:{}", app.cwd.join(file).display()),
            None => model.clone(),
        };
        return Ok(models.iter().map(absolute).collect());
    }
    Ok(vec![app.services.models.default_id(&app.services.user.settings).await.map_err(model_error)?])
}

/// Refuses a model that is unknown, or whose price is unknown and limited.
async fn check_model(app: &App, model: &str, options: &EvalOptions) -> Result<()> {
    app.services.check_model(model, &app.cwd)?;
    if options.max_cost.is_some() && app.services.price(model, &app.services.user.settings).await.is_none() {
        return Err(Error::invalid_params(format!("--max-cost: the price of {model} is unknown"))
            .hint(format!("set price in [models.\"{model}\"] of your settings")));
    }
    Ok(())
}

/// Refuses an agent that does not work. Returns its version.
async fn check_agent(app: &App, agent: &str, options: &EvalOptions) -> Result<Option<String>> {
    if options.max_cost.is_some() {
        return Err(Error::invalid_params(format!("--max-cost: the price of agent {agent} is unknown")));
    }
    let report = hub::check(&app.services, agent).await;
    match report.problem {
        Some(problem) => {
            let error = Error::invalid_params(format!("agent {agent} does not work: {problem}"));
            Err(error.hint(report.hint.unwrap_or_else(|| format!("nuncio agents check {agent}"))))
        }
        None => Ok(report.program.version),
    }
}
