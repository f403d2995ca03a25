//! The directories in which tasks run. They have the same paths in each run, so that prompts have
//! the same beginning.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::digest::entries;
use super::task::{EvalTask, FILES, SETUP, SOLUTION, SOLVE, TEST, TESTS};
use crate::config::{Environment, HIDDEN_VARIABLE};
use crate::error::{Error, Result};
use crate::limits;
use crate::process::{Child, Command, ProcessLauncher, SAFE_GIT_SETTINGS, Sandbox};
use crate::task::blocking;
use crate::workspace::{create_private_dir, real_path};

/// Makes the start of a task a repository, as the Dockerfile of a task does. The date is fixed, so
/// that the commit has the same id in each run.
const REPOSITORY: &str = "\
    git init -q -b main && git config user.name 'Sam Doe' && git config user.email sam@example.com && \
    git add -A && git commit -q --allow-empty -m 'Import the project'";
const DATE: &str = "2026-01-01T12:00:00Z";

/// Limit of the preparation of a task.
const PREPARATION: Duration = Duration::from_secs(120);

/// Maximum number of bytes of a script's output that are kept, and in a message.
const OUTPUT_BYTES_MAX: usize = 16 << 10;
const MESSAGE_BYTES_MAX: usize = 500;

/// Variables that would lead programs to other directories than those of the run.
const REMOVED: [&str; 8] = [
    HIDDEN_VARIABLE,
    "NUNCIO_HOME",
    "NUNCIO_STORE",
    "NUNCIO_MODEL",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// The directories of the tasks, which only one process uses at a time.
pub(super) struct Workbench {
    root: PathBuf,
    launcher: ProcessLauncher,
    /// The paths that scripts and agents must not read.
    private: Vec<PathBuf>,
    _lock: File,
}

pub(super) struct ScriptEnd {
    /// `None` if it reached its limit.
    pub code: Option<i32>,
    /// The end of its output.
    pub output: String,
}

impl ScriptEnd {
    /// Returns the last lines of the output, for messages.
    pub(super) fn last_lines(&self) -> &str {
        let start = self.output.len().saturating_sub(MESSAGE_BYTES_MAX);
        self.output[self.output.ceil_char_boundary(start)..].trim()
    }
}

/// The decision of test.sh.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Solved,
    Failed,
    /// It did not decide, for this reason.
    Undecided(String),
}

impl Workbench {
    /// Opens the directories in the user's cache. Fails if another process uses them.
    pub(super) fn open(environment: &Environment, launcher: ProcessLauncher, private: Vec<PathBuf>) -> Result<Workbench> {
        let unavailable = "this system cannot confine the tasks: its kernel has no Landlock, or it is turned off";
        if !Sandbox::is_available() {
            return Err(Error::invalid_params(unavailable).hint("nuncio doctor shows what is missing"));
        }
        let home = environment.get("HOME").map(|home| Path::new(home).join(".cache"));
        let cache = environment.get("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).or(home);
        let cache = cache.ok_or_else(|| Error::invalid_params("the cache directory is unknown").hint("set HOME"))?;
        let root = cache.join("nuncio/eval");
        create_private_dir(&root)?;
        let root = real_path(&root);
        let lock = File::create(root.join("lock")).map_err(|error| Error::io("locking the directories of nuncio eval", error))?;
        if lock.try_lock().is_err() {
            let message = format!("another nuncio eval runs in {}", root.display());
            return Err(Error::invalid_params(message).hint("wait until it ends, or set XDG_CACHE_HOME for this one"));
        }
        let own = ["nuncio", "proofs"].map(|name| root.join(name));
        let private = private.iter().map(|path| real_path(path)).chain(own).collect();
        Ok(Workbench { root, launcher, private, _lock: lock })
    }

    /// Returns the directory in which agents work.
    pub(super) fn task(&self) -> PathBuf {
        self.root.join("task")
    }

    /// Returns the home directory of scripts and agents.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the settings and data directory of nuncio in the runs.
    pub(super) fn data(&self) -> PathBuf {
        self.root.join("nuncio")
    }

    /// Returns the directory with the records of proved tasks.
    pub(super) fn proofs(&self) -> PathBuf {
        self.root.join("proofs")
    }

    fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Writes the last answer, which test.sh reads. The directory is new: a link in it that
    /// setup.sh made could lead to any file.
    pub(super) async fn write_answer(&self, answer: &str) -> Result<()> {
        self.clear([self.logs()]).await?;
        create_private_dir(&self.logs())?;
        fs::write(self.answer(), answer).map_err(|error| Error::io("writing the answer", error))
    }

    fn answer(&self) -> PathBuf {
        self.logs().join("answer.txt")
    }

    /// Returns the paths that the runs must not read.
    pub(super) fn private(&self) -> &[PathBuf] {
        &self.private
    }

    pub(super) fn launcher(&self) -> &ProcessLauncher {
        &self.launcher
    }

    /// Creates a fresh copy of the start of a task, and its repository.
    pub(super) async fn prepare(&self, task: &EvalTask) -> Result<()> {
        self.clear([self.task(), self.home(), self.logs()]).await?;
        let (from, to) = (task.directory.join(FILES), self.task());
        let directories = [self.task(), self.home(), self.logs(), self.root.join("tmp")];
        let copy = move || {
            directories.iter().try_for_each(|directory| create_private_dir(directory))?;
            if from.is_dir() { copy(&from, &to) } else { Ok(()) }
        };
        blocking("copying a task", copy).await??;
        let command = Command::program(["sh", "-c", REPOSITORY], self.task());
        let command = command.env("GIT_AUTHOR_DATE", DATE).env("GIT_COMMITTER_DATE", DATE);
        let ended = self.run(self.confined(command, &[]), PREPARATION).await?;
        check(&ended, "creating the repository")?;
        let setup = task.directory.join(SETUP);
        if setup.is_file() {
            let copied = self.copied(setup.parent().unwrap_or(&setup), "environment").await?;
            let ended = self.script(&copied.join("setup.sh"), PREPARATION).await?;
            check(&ended, SETUP)?;
        }
        self.clear(["environment", TESTS, SOLUTION].map(|name| self.root.join(name))).await
    }

    /// Creates the directories without a task.
    pub(super) async fn empty(&self) -> Result<()> {
        self.clear([self.task(), self.home()]).await?;
        [self.task(), self.home()].iter().try_for_each(|directory| create_private_dir(directory))
    }

    /// Runs solve.sh of a task.
    pub(super) async fn solve(&self, task: &EvalTask) -> Result<()> {
        let copied = self.copied(&task.directory.join(SOLUTION), SOLUTION).await?;
        let ended = self.script(&copied.join(SOLVE), task.agent_limit).await?;
        self.clear([copied]).await?;
        check(&ended, SOLVE)
    }

    /// Runs test.sh of a task. Also returns the last lines of its output.
    pub(super) async fn test(&self, task: &EvalTask) -> Result<(Verdict, String)> {
        let copied = self.copied(&task.directory.join(TESTS), TESTS).await?;
        let ended = self.script(&copied.join(TEST), task.test_limit).await?;
        self.clear([copied]).await?;
        Ok((self.verdict(&ended), ended.last_lines().to_owned()))
    }

    /// Returns what test.sh decided: by its reward, else by its exit code.
    fn verdict(&self, ended: &ScriptEnd) -> Verdict {
        let read = |name: &str| fs::read_to_string(self.logs().join(name)).ok();
        let text = |text: String| text.trim().parse::<f64>().ok();
        let json = |text: String| {
            let value: serde_json::Value = serde_json::from_str(&text).ok()?;
            value["reward"].as_f64().or_else(|| value.as_f64())
        };
        let reward = read("reward.txt").map(text).or_else(|| read("reward.json").map(json));
        match (ended.code, reward) {
            (None, _) => Verdict::Undecided(format!("{TEST} reached its time limit")),
            (_, Some(Some(1.0))) => Verdict::Solved,
            (_, Some(Some(_))) => Verdict::Failed,
            (_, Some(None)) => Verdict::Undecided(format!("{TEST} wrote a reward that is no number")),
            (Some(0), None) => Verdict::Solved,
            (Some(code @ 126..), None) => Verdict::Undecided(format!("{TEST} ended with exit code {code}: {}", ended.last_lines())),
            (Some(_), None) => Verdict::Failed,
        }
    }

    /// Runs a git command that changes nothing, in the task's directory. `None` if git fails.
    pub(super) async fn git(&self, arguments: &[&str]) -> Result<Option<Vec<u8>>> {
        let settings = SAFE_GIT_SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        let all = ["git", "--no-pager"].into_iter().chain(settings).chain(arguments.iter().copied());
        let command = Command::program(all, self.task()).git_read_only().env("GIT_CEILING_DIRECTORIES", &self.root);
        let sandbox = Sandbox { writable: Vec::new(), ..self.sandbox() };
        let (mut child, input, errors) = self.launcher.spawn_captured(&self.environment(command).sandbox(Some(sandbox)))?;
        drop((input, errors));
        let mut output = Vec::new();
        while child.output.read(&mut output).await.map_err(|error| Error::io("reading git's output", error))? > 0 {}
        Ok((child.wait().await?.code == 0).then_some(output))
    }

    /// Sets the environment of programs in the task's directory.
    pub(super) fn environment(&self, command: Command) -> Command {
        let command = command.git_environment().env("HOME", self.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        REMOVED.into_iter().fold(command, Command::env_remove)
    }

    async fn script(&self, script: &Path, limit: Duration) -> Result<ScriptEnd> {
        let readable = [script.parent().unwrap_or(script).to_owned()];
        let command = Command::program(["bash".as_ref(), script.as_os_str()], self.task());
        self.run(self.confined(command, &readable), limit).await
    }

    /// Confines a command to the directories of the run. It has no network.
    fn confined(&self, command: Command, readable: &[PathBuf]) -> Command {
        let command = self.environment(command).env("TESTS", self.root.join(TESTS));
        let command = command.env("LOGS", self.logs()).env("ANSWER", self.answer());
        command.sandbox(Some(Sandbox { readable: readable.to_vec(), ..self.sandbox() }))
    }

    fn sandbox(&self) -> Sandbox {
        Sandbox {
            writable: vec![self.task(), self.logs(), self.home()],
            private: self.private.clone(),
            readable: Vec::new(),
            temp: self.root.join("tmp"),
            new_temp: true,
            git_config: true,
            settings: true,
            network: false,
            required: true,
        }
    }

    /// Runs a command to its end, or until its limit.
    async fn run(&self, command: Command, limit: Duration) -> Result<ScriptEnd> {
        let mut child = self.launcher.spawn(&command)?;
        let (code, output) = match tokio::time::timeout(limit, finish(&mut child)).await {
            Ok(ended) => ended.map(|(code, output)| (Some(code), output))?,
            Err(_) => {
                child.end().await?;
                (None, Vec::new())
            }
        };
        let start = output.len().saturating_sub(OUTPUT_BYTES_MAX);
        Ok(ScriptEnd { code, output: String::from_utf8_lossy(&output[start..]).into_owned() })
    }

    /// Copies a directory of a task, so that scripts need not read the tasks.
    async fn copied(&self, from: &Path, name: &str) -> Result<PathBuf> {
        let (from, to) = (from.to_owned(), self.root.join(name));
        self.clear([to.clone()]).await?;
        let target = to.clone();
        blocking("copying scripts", move || create_private_dir(&target).and_then(|()| copy(&from, &target))).await??;
        Ok(to)
    }

    /// Removes directories.
    async fn clear(&self, directories: impl IntoIterator<Item = PathBuf>) -> Result<()> {
        let directories: Vec<PathBuf> = directories.into_iter().collect();
        blocking("removing directories", move || directories.iter().try_for_each(|directory| remove(directory))).await?
    }
}

/// Reads the output of a command to its end. Keeps its last bytes.
async fn finish(child: &mut Child) -> Result<(i32, Vec<u8>)> {
    let mut output = Vec::new();
    while child.output.read(&mut output).await.map_err(|error| Error::io("reading the output of a script", error))? > 0 {
        if output.len() > limits::GIT_OUTPUT_BYTES_MAX {
            output.drain(..output.len() - OUTPUT_BYTES_MAX);
        }
    }
    Ok((child.wait().await?.code, output))
}

fn check(ended: &ScriptEnd, what: &str) -> Result<()> {
    match ended.code {
        Some(0) => Ok(()),
        Some(code) => Err(Error::invalid_params(format!("{what} failed with exit code {code}: {}", ended.last_lines()))),
        None => Err(Error::invalid_params(format!("{what} reached its time limit"))),
    }
}

/// Copies the files and symlinks below a directory.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let failed = |error| Error::io(format_args!("copying {}", from.display()), error);
    for entry in entries(from).map_err(failed)? {
        let target = to.join(&entry.path);
        let copied = target.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| match &entry.link {
            Some(link) => symlink(link, &target),
            None => fs::copy(from.join(&entry.path), &target).map(drop),
        });
        copied.map_err(failed)?;
    }
    Ok(())
}

/// Removes a directory, also if a task made parts of it read-only.
pub(in crate::cli) fn remove(directory: &Path) -> Result<()> {
    let gone = |result: std::io::Result<()>| match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    if gone(fs::remove_dir_all(directory)).is_err() {
        make_writable(directory);
    }
    gone(fs::remove_dir_all(directory)).map_err(|error| Error::io(format_args!("removing {}", directory.display()), error))
}

fn make_writable(directory: &Path) {
    // A directory that cannot be changed makes the removal fail, which is reported.
    let _ = fs::set_permissions(directory, Permissions::from_mode(0o700));
    let listed = fs::read_dir(directory).into_iter().flatten().flatten();
    let below = listed.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    below.for_each(|entry| make_writable(&entry.path()));
}
