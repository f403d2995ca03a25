//! Prepares a new worktree: copies files and runs the setup commands. Does both only if the
//! repository is trusted.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::repository::Repository;
use crate::config::{WorktreeSettings, named_files};
use crate::limits;
use crate::process::{Command, ProcessLauncher};
use crate::workspace::read_small;

/// Timeout of one setup command of a new git worktree.
const WORKTREE_SETUP: Duration = Duration::from_secs(600);

/// Confines a setup command in a new worktree.
pub(crate) type ConfineSetup = Box<dyn Fn(Command, &Path) -> Command + Send + Sync>;

pub(crate) struct Preparation {
    /// True if the repository is trusted. If not, its hooks do not run.
    pub trusted: bool,
    pub settings: WorktreeSettings,
    /// True if the settings of the project name the setup commands.
    pub of_project: bool,
    pub confine: ConfineSetup,
    /// A sentence for the warning about a failed setup command.
    pub hint: String,
}

impl Preparation {
    /// Runs the hook for the checkout of the commit `head`, copies the files and runs the commands.
    /// Returns a line for each failure.
    pub(super) async fn prepare(
        &self,
        launcher: &ProcessLauncher,
        repository: &Repository,
        worktree: &Path,
        head: Option<&str>,
    ) -> Vec<String> {
        let WorktreeSettings { copy, setup, .. } = &self.settings;
        let main = &repository.main;
        if !self.trusted {
            let unused = !copy.is_empty() || !setup.is_empty();
            let message = format!(
                "[worktree] copy and setup were not used: {} is not trusted (nuncio trust {})",
                main.display(),
                main.display()
            );
            return unused.then_some(message).into_iter().collect();
        }
        let hook = self.run_hook(launcher, worktree, head).await.err().map(|why| format!("hook post-checkout: {why}{}", self.hint));
        let copies = copy.iter().filter_map(|name| copy_file(main, worktree, name).err().map(|why| format!("{name}: {why}")));
        let mut warnings: Vec<String> = hook.into_iter().chain(copies).collect();
        for line in setup {
            if let Some(name) = changed_file(line, main, worktree).filter(|_| self.of_project) {
                let main = main.display();
                warnings.push(format!(
                    "setup command `{line}`: not started: {name} differs from the one in {main}, which is trusted; if you trust \
                     it, run the command yourself"
                ));
                break;
            }
            let command = Command::shell(line, worktree).env("NUNCIO_WORKSPACE", worktree);
            if let Err(why) = run(launcher, &(self.confine)(command, worktree)).await {
                // The next command may need the result of this one.
                warnings.push(format!("setup command `{line}`: {why}{}", self.hint));
                break;
            }
        }
        warnings
    }

    /// Runs the hook `post-checkout` (githooks(5)) confined, because its file may be one of the
    /// working tree (`core.hooksPath`).
    async fn run_hook(&self, launcher: &ProcessLauncher, worktree: &Path, head: Option<&str>) -> Result<(), String> {
        let Some(head) = head else { return Ok(()) };
        let before = "0".repeat(head.len());
        let words = ["git", "hook", "run", "--ignore-missing", "post-checkout", "--", &before, head, "1"];
        let command = Command::program(words, worktree).git_environment();
        run(launcher, &(self.confine)(command, worktree)).await
    }
}

/// Returns the first file that a setup command names and that differs in `worktree`, which can have
/// any commit checked out. The start of the command checks that the files in `main` are trusted.
fn changed_file(line: &str, main: &Path, worktree: &Path) -> Option<String> {
    let setup = toml::Table::from_iter([("setup".to_owned(), vec![line].into())]);
    let settings = toml::Table::from_iter([("worktree".to_owned(), setup.into())]).to_string();
    let named = |directory: &Path| -> BTreeMap<String, PathBuf> {
        let files = named_files(directory, Some(settings.as_bytes())).into_iter();
        files.filter(|file| file.outside.is_none()).map(|file| (file.name, file.path)).collect()
    };
    let (trusted, found) = (named(main), named(worktree));
    let is_same = |name: &str| match (trusted.get(name), found.get(name)) {
        (Some(trusted), Some(found)) => {
            read_small(trusted).ok().is_some_and(|one| read_small(found).is_ok_and(|other| one == other))
        }
        // An absolute path names the file in `main`. A symlink can lead out of the worktree.
        // Without the file, the command fails by itself.
        (Some(_), None) => Path::new(name).is_absolute() || worktree.join(name).symlink_metadata().is_err(),
        (None, _) => false,
    };
    trusted.keys().chain(found.keys()).find(|name| !is_same(name)).cloned()
}

/// Copies a file of the main worktree that does not exist in `worktree`.
fn copy_file(main: &Path, worktree: &Path, name: &str) -> Result<(), String> {
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if name.is_empty() || !inside {
        return Err("not copied: the path must be relative and without `..`".into());
    }
    let (from, to) = (main.join(name), worktree.join(name));
    if !from.is_file() {
        return Err(format!("not copied: {} is not a file", from.display()));
    }
    if to.symlink_metadata().is_ok() {
        return Err("not copied: git tracks it".into());
    }
    let failed = |error: std::io::Error| format!("not copied: {error}");
    let parent = to.parent().unwrap_or(worktree);
    std::fs::create_dir_all(parent).map_err(failed)?;
    // A tracked symlink can lead out of the worktree.
    if !parent.canonicalize().map_err(failed)?.starts_with(worktree) {
        return Err("not copied: its directory is a symlink".into());
    }
    std::fs::copy(&from, &to).map(drop).map_err(failed)
}

async fn run(launcher: &ProcessLauncher, command: &Command) -> Result<(), String> {
    let mut child = launcher.spawn(command).map_err(|error| error.message)?;
    let limit = WORKTREE_SETUP;
    let ran = tokio::time::timeout(limit, async {
        let mut output = Vec::new();
        while child.output.read(&mut output).await.is_ok_and(|read| read > 0) {
            // Use the end of the output: it contains the cause.
            output.drain(..output.len().saturating_sub(limits::GIT_ERROR_BYTES_MAX));
        }
        (output, child.wait().await)
    });
    let Ok((output, status)) = ran.await else {
        let _ = child.end().await;
        return Err(format!("timed out after {} s", limit.as_secs()));
    };
    match status.map_err(|error| error.message)?.code {
        0 => Ok(()),
        code => Err(format!("exit code {code}: {}", String::from_utf8_lossy(&output).trim())),
    }
}
