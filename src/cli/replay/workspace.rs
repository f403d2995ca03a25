//! The directories of a replay: a fresh copy of the start, with its own home and data directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::recording::{CHANGED, COMMIT, RecordedSession, StartRepository, USER};
use crate::cli::eval::digest::entries;
use crate::cli::eval::workbench::remove;
use crate::config::Environment;
use crate::error::{Error, Result};
use crate::process::{Command, ProcessLauncher, SAFE_GIT_SETTINGS, Sandbox};
use crate::workspace::{create_private_dir, real_path};

/// Makes the start a repository. The date is fixed, so that the commit has the same id everywhere.
const REPOSITORY: &str = "\
    git init -q -b \"$1\" && git config user.name 'Sam Doe' && git config user.email sam@example.com && \
    git add -A -f && git commit -q --allow-empty -m 'The start of the session'";
const DATE: &str = "2026-01-01T12:00:00Z";

/// The directories of one replay. They are removed with this value.
pub(super) struct ReplayDirectories(PathBuf);

impl Drop for ReplayDirectories {
    fn drop(&mut self) {
        // A rest would be in the system's directory for temporary files.
        let _ = remove(&self.0);
    }
}

impl ReplayDirectories {
    /// Creates the directories below the directory for temporary files.
    pub(super) fn create(environment: &Environment) -> Result<ReplayDirectories> {
        let parent = real_path(Path::new(environment.get("TMPDIR").unwrap_or("/tmp")));
        let directories = ReplayDirectories(parent.join(format!("nuncio-{}", uuid::Uuid::now_v7().simple())));
        let all = [directories.0.clone(), directories.work(), directories.home(), directories.temp()];
        all.iter().try_for_each(|directory| create_private_dir(directory))?;
        Ok(directories)
    }

    pub(super) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    pub(super) fn temp(&self) -> PathBuf {
        self.0.join("tmp")
    }

    pub(super) fn data(&self) -> PathBuf {
        self.home().join(".local/share/nuncio")
    }

    /// Returns the directory of the settings.
    pub(super) fn config(&self) -> PathBuf {
        self.home().join(".config/nuncio")
    }

    /// Returns the environment of nuncio and its commands.
    pub(super) fn variables(&self, environment: &Environment) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let own = [
            ("HOME", text(self.home())),
            ("TMPDIR", text(self.temp())),
            ("PATH", environment.get("PATH").unwrap_or("/usr/local/bin:/usr/bin:/bin").to_owned()),
            ("LANG", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
            ("USER", super::mask::USER.into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_AUTHOR_DATE", DATE.into()),
            ("GIT_COMMITTER_DATE", DATE.into()),
        ];
        own.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Returns the sandbox of all commands: they change nothing outside of these directories, and
    /// do not read the user's home directory.
    pub(super) fn sandbox(&self, environment: &Environment) -> Sandbox {
        let home = environment.get("HOME").map(|home| real_path(Path::new(home))).filter(|home| home.parent().is_some());
        Sandbox {
            writable: vec![self.work(), self.home(), self.temp()],
            private: home.into_iter().collect(),
            readable: vec![self.0.clone()],
            temp: self.temp(),
            new_temp: false,
            git_config: true,
            settings: true,
            network: false,
            required: true,
        }
    }

    /// Copies the start of a recording, and makes its repository.
    pub(super) async fn fill(&self, dir: &Path, recording: &RecordedSession, launcher: &ProcessLauncher) -> Result<()> {
        copy(&dir.join(COMMIT), &self.work())?;
        copy(&dir.join(USER), &self.config())?;
        if let Some(StartRepository { branch, removed }) = &recording.repository {
            let command = Command::program(["sh", "-c", REPOSITORY, "sh", branch.as_str()], self.work());
            if run(launcher, command).await?.is_none() {
                return Err(Error::internal("creating the repository of the recording failed").hint("is git installed?"));
            }
            let gone = removed.iter().map(|path| self.work().join(path)).try_for_each(fs::remove_file);
            gone.map_err(|error| Error::io("removing files of the start", error))?;
        }
        copy(&dir.join(CHANGED), &self.work())
    }
}

/// Runs a command to its end. Returns its output, or `None` if it fails.
pub(super) async fn run(launcher: &ProcessLauncher, command: Command) -> Result<Option<Vec<u8>>> {
    let (mut child, input, errors) = launcher.spawn_captured(&command.git_environment())?;
    drop((input, errors));
    let mut output = Vec::new();
    while child.output.read(&mut output).await.map_err(|error| Error::io("reading git's output", error))? > 0 {}
    Ok((child.wait().await?.code == 0).then_some(output))
}

/// Runs a git command that changes nothing. Returns its output, or `None` if it fails.
pub(super) async fn git(launcher: &ProcessLauncher, cwd: &Path, arguments: &[&str]) -> Result<Option<Vec<u8>>> {
    let settings = SAFE_GIT_SETTINGS.iter().flat_map(|setting| ["-c", setting]);
    let all = ["git", "--no-pager"].into_iter().chain(settings).chain(arguments.iter().copied());
    run(launcher, Command::program(all, cwd).git_read_only()).await
}

/// Copies the files and symlinks below a directory, if it exists.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let failed = |error| Error::io(format_args!("copying {}", from.display()), error);
    let found = if from.is_dir() { entries(from).map_err(failed)? } else { Vec::new() };
    for entry in found {
        let target = to.join(&entry.path);
        let copied = target.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| match &entry.link {
            Some(link) => symlink(link, &target),
            None => fs::copy(from.join(&entry.path), &target).map(drop),
        });
        copied.map_err(failed)?;
    }
    Ok(())
}
