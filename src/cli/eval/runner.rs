//! Runs tasks with models and agents, and records the results.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::child_run::{RunEnd, RunSetup};
use super::digest::{file_digest, short_digest};
use super::harm::Harm;
use super::line::{ResultLines, RunClass, RunKey, RunLine, Versions, append, subject};
use super::options::EvalOptions;
use super::proof::Proof;
use super::snapshot::Snapshot;
use super::task::Task;
use super::workbench::{Verdict, Workbench};
use crate::agent::{Models, model_error};
use crate::api::App;
use crate::app::on_signal;
use crate::cli::terminal::output::print_stderr;
use crate::config::NATIVE;
use crate::error::{Error, Result};
use crate::hub;
use crate::terminal_text::output_line;
use crate::workspace::{create_private_dir, read_small, replace_private};

/// The sections of the user's settings that are in the runs. The others reach out of them.
const SECTIONS: [&str; 11] = [
    "agents", "budget", "context", "instructions", "models", "prompts", "providers", "retry", "review", "tools", "verify",
];

/// Variables with which hosted agents find their login.
const HOSTED_VARIABLES: [&str; 5] = ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];

/// A task with its proof.
pub(super) struct ProvedTask<'t> {
    pub task: &'t Task,
    pub proof: Proof,
}

/// Runs tasks with models and agents.
pub(super) struct Runner<'a> {
    bench: &'a Workbench,
    setups: Vec<(RunSetup, Versions)>,
    runs: u32,
    timeout: Option<Duration>,
    /// Dollars that may still be spent.
    left: Option<f64>,
    /// The digest of settings and flags.
    settings: String,
    /// The results of this invocation, and equal ones of earlier ones.
    done: ResultLines,
}

impl<'a> Runner<'a> {
    /// Prepares the runs. Fails for a model or an agent that cannot work.
    pub(super) async fn new(app: &'a App, bench: &'a Workbench, models: Vec<String>, options: &EvalOptions) -> Result<Runner<'a>> {
        let settings = settings(app);
        let file = bench.data().join("config.toml");
        create_private_dir(&bench.data())?;
        replace_private(&file, settings.as_bytes()).map_err(|error| Error::io("writing the settings of the runs", error))?;
        copy_keys(app, bench)?;
        let program = app.services.binary().unwrap_or_default();
        let digest = file_digest(&program).map_err(|error| Error::io("reading nuncio's program", error))?;
        let versions = Versions { nuncio: env!("CARGO_PKG_VERSION").into(), program: digest, agent: None };
        let (flags, setting_names) = flags(app, options);
        let setup = RunSetup {
            program,
            model: None,
            agent: NATIVE.into(),
            settings: file,
            flags,
            variables: variables(app),
        };
        let mut setups = Vec::new();
        for model in models_to_run(app, models).await? {
            check_model(app, &model, options).await?;
            setups.push((RunSetup { model: Some(model), ..setup.clone() }, versions.clone()));
        }
        for agent in &app.services.overrides.agents {
            let version = check_agent(app, agent, options).await?;
            let user = HOSTED_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), app.services.environment.get(name)?.to_owned())));
            let variables = setup.variables.iter().cloned().chain(user).collect();
            let versions = Versions { agent: version, ..versions.clone() };
            setups.push((RunSetup { agent: agent.clone(), variables, ..setup.clone() }, versions));
        }
        Ok(Runner {
            bench,
            setups,
            runs: options.runs,
            timeout: options.timeout.map(Duration::from_secs),
            left: options.max_cost,
            settings: short_digest(format!("{settings}\n{setting_names}").as_bytes()),
            done: ResultLines::default(),
        })
    }

    /// Returns the results.
    pub(super) fn lines(&self) -> impl Iterator<Item = &RunLine> {
        self.done.0.values()
    }

    /// Runs all tasks, except for those with a known result. Returns whether a signal ended it.
    pub(super) async fn run(&mut self, tasks: &[ProvedTask<'_>], (mut file, known): (Option<File>, ResultLines)) -> Result<bool> {
        let interrupted = CancellationToken::new();
        crate::task::spawn(on_signal(interrupted.clone()));
        for run in 1..=self.runs {
            for ProvedTask { task, proof } in tasks {
                for index in 0..self.setups.len() {
                    let key = self.key(index, task, run);
                    if known.has_result(&key) {
                        known.0.get(&key).cloned().into_iter().for_each(|line| self.done.add(line));
                        continue;
                    }
                    if self.left.is_some_and(|left| left <= 0.0) {
                        print_stderr("nuncio: --max-cost is reached: no further run starts\n");
                        return Ok(false);
                    }
                    let attempt = self.attempt(index, key, (task, proof));
                    let line = tokio::select! {
                        biased;
                        () = interrupted.cancelled() => return Ok(true),
                        line = attempt => line,
                    };
                    report(&line);
                    if let (Some(left), Some(cost)) = (&mut self.left, line.used.cost) {
                        *left -= cost;
                    }
                    if let Some(file) = &mut file {
                        append(file, &line)?;
                    }
                    self.done.add(line);
                }
            }
        }
        Ok(false)
    }

    fn key(&self, index: usize, task: &Task, run: u32) -> RunKey {
        let (setup, versions) = &self.setups[index];
        RunKey {
            task: task.name.clone(),
            digest: task.digest.clone(),
            model: setup.model.clone(),
            agent: setup.agent.clone(),
            versions: versions.clone(),
            settings: self.settings.clone(),
            run,
        }
    }

    /// Runs a task once. A failure of the run itself is a line of the class `error`.
    async fn attempt(&self, index: usize, key: RunKey, (task, proof): (&Task, &Proof)) -> RunLine {
        let setup = &self.setups[index].0;
        let network = setup.is_hosted().then(|| "open".to_owned());
        let mut line = RunLine { key, class: RunClass::Error, reason: None, used: Default::default(), network, harm: None };
        if let Err(error) = self.measure(setup, (task, proof), &mut line).await {
            (line.class, line.reason) = (RunClass::Error, Some(error.message));
        }
        line
    }

    /// Runs a task and its test, and completes the line.
    async fn measure(&self, setup: &RunSetup, (task, proof): (&Task, &Proof), line: &mut RunLine) -> Result<()> {
        let bench = self.bench;
        bench.prepare(task).await?;
        let before = Snapshot::read(bench).await?;
        let uncommitted = before.uncommitted(bench).await?;
        let limit = self.timeout.unwrap_or(task.agent_limit);
        let RunEnd { used, answer, timed_out, error } = setup.run(bench, &task.instruction, limit, self.left).await?;
        line.used = used;
        let after = Snapshot::read(bench).await?;
        line.harm = Some(Harm::new(task, &proof.solution, (&before, &uncommitted), &after));
        if let Some(error) = error {
            return Err(Error::internal(error));
        }
        std::fs::write(bench.answer(), answer).map_err(|error| Error::io("writing the answer", error))?;
        line.class = match bench.test(task).await?.0 {
            Verdict::Error(why) => return Err(Error::internal(why)),
            _ if timed_out => RunClass::Timeout,
            Verdict::Solved => RunClass::Solved,
            Verdict::Failed => RunClass::Failed,
        };
        Ok(())
    }
}

/// Prints a line about a run to standard error.
fn report(line: &RunLine) {
    let RunLine { key, class, used, .. } = line;
    let class = match class {
        RunClass::Solved => "solved",
        RunClass::Failed => "failed",
        RunClass::Timeout => "timeout",
        RunClass::Error => "error",
    };
    let harm = line.harm.as_ref().filter(|harm| !harm.is_none()).map(|_| ", harm").unwrap_or_default();
    let why = line.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let text = format!(
        "{}, {}, run {}: {class}, {} requests, {:.1} s{harm}{why}",
        key.task,
        subject(key),
        key.run,
        used.requests,
        used.seconds
    );
    print_stderr(output_line(&text) + "\n");
}

/// Returns the settings of the runs.
fn settings(app: &App) -> String {
    app.services.user.sections(&SECTIONS)
}

/// Returns the flags that are passed to the runs, and all flags that can change a result.
fn flags(app: &App, options: &EvalOptions) -> (Vec<std::ffi::OsString>, String) {
    let overrides = &app.services.overrides;
    let thinking = overrides.thinking.map(|level| level.as_str().to_owned());
    let given = [("--thinking", thinking), ("--system-prompt", overrides.system_prompt.clone()), ("--base-url", overrides.base_url.clone())];
    let given: Vec<String> = given.into_iter().filter_map(|(flag, value)| Some(format!("{flag}={}", value?))).collect();
    let names = format!("{}\n{:?}", given.join("\n"), options.timeout);
    (given.into_iter().map(Into::into).collect(), names)
}

/// Returns the variables with keys that are set.
fn variables(app: &App) -> Vec<(String, String)> {
    let services = &app.services;
    let names = Models::secret_names(&services.user.settings).into_iter();
    names.filter_map(|name| services.environment.get(&name).map(|value| (name.clone(), value.to_owned()))).collect()
}

/// Copies the stored keys, so that the runs find them. Commands cannot read the copy.
fn copy_keys(app: &App, bench: &Workbench) -> Result<()> {
    let (from, to): (PathBuf, PathBuf) = (app.services.places.data.join("keys.json"), bench.data().join("keys.json"));
    let failed = |error| Error::io("copying the stored keys", error);
    match read_small(&from) {
        Ok(text) => replace_private(&to, &text).map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Returns the models: those of the flags, else the default one if no agent is given.
async fn models_to_run(app: &App, models: Vec<String>) -> Result<Vec<String>> {
    if !models.is_empty() || !app.services.overrides.agents.is_empty() {
        return Ok(models);
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
        None => Ok(report.version),
    }
}
