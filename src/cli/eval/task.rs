//! Tasks: directories that Harbor reads too. A task that cannot run here is refused by name.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use super::digest::{digest_of, entries};
use crate::error::{Error, Result};

/// Limits of a task that sets none, in seconds.
const AGENT_LIMIT_S: f64 = 900.0;
const TEST_LIMIT_S: f64 = 600.0;

/// The parts of a task, relative to its directory.
const CONFIG: &str = "task.toml";
const INSTRUCTION: &str = "instruction.md";
pub(super) const FILES: &str = "environment/files";
pub(super) const SETUP: &str = "environment/setup.sh";
pub(super) const TESTS: &str = "tests";
pub(super) const TEST: &str = "test.sh";
pub(super) const SOLUTION: &str = "solution";
pub(super) const SOLVE: &str = "solve.sh";

/// A task that can run here.
#[derive(Clone, Debug)]
pub(super) struct EvalTask {
    /// The name of its directory.
    pub name: String,
    pub directory: PathBuf,
    /// The SHA-256 of all its files.
    pub digest: String,
    /// The prompt.
    pub instruction: String,
    pub agent_limit: Duration,
    pub test_limit: Duration,
    /// Files that a solution may change, in addition to those that solve.sh changes.
    pub own_files: GlobSet,
}

/// The parts of task.toml that matter here; Harbor knows more.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TaskFile {
    metadata: Metadata,
    agent: Phase,
    verifier: Phase,
    environment: EnvironmentTable,
    steps: Option<toml::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    own_files: Vec<String>,
}

/// A phase of a task: the agent's work, or the test.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Phase {
    timeout_sec: Option<f64>,
    network_mode: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EnvironmentTable {
    network_mode: Option<String>,
    allow_internet: bool,
    gpus: u32,
    tpu: Option<toml::Value>,
}

/// Reads the tasks in `path`: one task, or the tasks in its subdirectories whose names match
/// `only`. The error names each task that cannot run, with the reason.
pub(super) fn read_tasks(path: &Path, only: Option<&str>) -> Result<Vec<EvalTask>> {
    let only = only.map(|glob| name_glob("--only", glob)).transpose()?;
    let path = path.canonicalize().map_err(|error| Error::io(format_args!("opening {}", path.display()), error))?;
    let mut directories = Vec::new();
    if path.join(CONFIG).exists() {
        directories.push(path.clone());
    } else {
        let listed = std::fs::read_dir(&path).map_err(|error| Error::io(format_args!("reading {}", path.display()), error))?;
        let found = listed.flatten().map(|entry| entry.path());
        directories.extend(found.filter(|directory| directory.join(CONFIG).exists() || directory.join(INSTRUCTION).exists()));
        directories.sort();
    }
    directories.retain(|directory| only.as_ref().is_none_or(|glob| glob.is_match(name(directory))));
    if directories.is_empty() {
        return Err(Error::invalid_params(format!("{}: no tasks", path.display()))
            .hint("a task is a directory with task.toml, instruction.md, environment/files and tests/test.sh"));
    }
    let (mut tasks, mut refused) = (Vec::new(), Vec::new());
    for directory in directories {
        match read_task(&directory) {
            Ok(task) => tasks.push(task),
            Err(why) => refused.push((name(&directory), why)),
        }
    }
    if refused.is_empty() { Ok(tasks) } else { Err(refusal(&refused)) }
}

/// Returns the error that names the tasks which cannot run, with the reasons.
pub(super) fn refusal(refused: &[(String, String)]) -> Error {
    let lines: Vec<String> = refused.iter().map(|(name, why)| format!("\n  {name}: {why}")).collect();
    Error::invalid_params(format!("tasks that cannot run here:{}", lines.concat()))
}

/// Parses a glob for names.
pub(super) fn name_glob(flag: &str, glob: &str) -> Result<globset::GlobMatcher> {
    let parsed = Glob::new(glob).map_err(|error| Error::invalid_params(format!("{flag}: {error}")))?;
    Ok(parsed.compile_matcher())
}

fn name(directory: &Path) -> String {
    directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a task. The error is the reason why it cannot run.
fn read_task(directory: &Path) -> std::result::Result<EvalTask, String> {
    let read = |file: &str| std::fs::read_to_string(directory.join(file));
    let config = read(CONFIG).map_err(|_| format!("{CONFIG} is missing"))?;
    let config: TaskFile = toml::from_str(&config).map_err(|error| format!("{CONFIG}: {}", error.message()))?;
    let instruction = read(INSTRUCTION).unwrap_or_default();
    if instruction.trim().is_empty() {
        return Err(format!("{INSTRUCTION} is missing or empty"));
    }
    if !directory.join(TESTS).join(TEST).is_file() {
        return Err(format!("{TESTS}/{TEST} is missing"));
    }
    check_environment(directory, &config)?;
    let found = entries(directory).map_err(|error| error.to_string())?;
    for (path, target) in found.iter().filter_map(|entry| Some((&entry.path, entry.link.as_ref()?))) {
        let base = if path.starts_with(FILES) { Path::new(FILES) } else { Path::new("") };
        if leads_out(path, target, base) {
            return Err(format!("the link {} leads out of the task", path.display()));
        }
    }
    let mut own_files = GlobSetBuilder::new();
    for glob in &config.metadata.own_files {
        own_files.add(Glob::new(glob).map_err(|error| format!("metadata.own_files: {error}"))?);
    }
    Ok(EvalTask {
        name: name(directory),
        directory: directory.into(),
        digest: digest_of(&found),
        instruction,
        agent_limit: limit(config.agent.timeout_sec, AGENT_LIMIT_S)?,
        test_limit: limit(config.verifier.timeout_sec, TEST_LIMIT_S)?,
        own_files: own_files.build().map_err(|error| format!("metadata.own_files: {error}"))?,
    })
}

/// Refuses what only containers have. The error is the reason.
fn check_environment(directory: &Path, config: &TaskFile) -> std::result::Result<(), String> {
    let TaskFile { agent, verifier, environment, steps, .. } = config;
    let elsewhere = |what: &str| Err(format!("{what}: run it with Harbor"));
    if steps.is_some() || directory.join("steps").is_dir() {
        return elsewhere("it has several steps");
    }
    if environment.gpus > 0 || environment.tpu.is_some() {
        return elsewhere("it needs a GPU or TPU");
    }
    let modes = [&environment.network_mode, &agent.network_mode, &verifier.network_mode];
    if let Some(mode) = modes.into_iter().flatten().find(|mode| *mode != "no-network") {
        return elsewhere(&format!("its network mode is {mode}, and only no-network is possible here"));
    }
    if environment.allow_internet {
        return elsewhere("it allows the internet");
    }
    if !directory.join(FILES).is_dir() && !directory.join(SETUP).is_file() {
        return elsewhere(&format!("its start is not in {FILES}, but an image or a Dockerfile"));
    }
    Ok(())
}

fn limit(seconds: Option<f64>, default: f64) -> std::result::Result<Duration, String> {
    let seconds = seconds.unwrap_or(default);
    let limit = Duration::try_from_secs_f64(seconds).map_err(|error| format!("timeout_sec: {error}"))?;
    if limit.is_zero() { Err("timeout_sec: must be above 0".into()) } else { Ok(limit) }
}

/// Returns whether a symlink at `path` leads out of `base`. Both are relative to the task.
fn leads_out(path: &Path, target: &Path, base: &Path) -> bool {
    let mut at: Vec<Component<'_>> = path.parent().unwrap_or(Path::new("")).components().collect();
    for component in target.components() {
        match component {
            Component::ParentDir => drop(at.pop()),
            Component::Normal(_) => at.push(component),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return true,
        }
        if !at.iter().collect::<PathBuf>().starts_with(base) || (at.is_empty() && component == Component::ParentDir) {
            return true;
        }
    }
    false
}
