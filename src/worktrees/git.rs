//! Runs git for workspaces.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{DataPaths, owner_name};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::process::{
    Command, ExitStatus, GIT_ATTEMPTS_MAX, NO_GIT_HOOKS, Output, ProcessLauncher, SAFE_GIT_SETTINGS, Sandbox,
    met_removed_placeholder,
};
use crate::workspace::real_path;

/// Exit code of a program that was not found. The error output then contains its name, after
/// `nuncio: `.
const NOT_FOUND: i32 = 127;

/// Environment of local commands. Programs of transports do not run, such as `core.sshCommand`,
/// `remote.NAME.uploadpack` and `ext::`.
const NO_FETCH: [(&str, &str); 2] = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// Runs git commands with a timeout.
#[derive(Clone)]
pub(super) struct GitRunner {
    pub launcher: ProcessLauncher,
    /// nuncio's own directories, which filters of a repository cannot read.
    pub private: Vec<PathBuf>,
    /// Directory for the temporary files of filters.
    pub temp: PathBuf,
    /// Determines whether another user owns a repository.
    pub places: DataPaths,
}

pub(super) struct GitResult {
    pub code: i32,
    /// Standard output, truncated at [`limits::GIT_OUTPUT_BYTES_MAX`].
    pub output: Vec<u8>,
    /// Standard error, truncated at [`limits::GIT_ERROR_BYTES_MAX`].
    pub errors: Vec<u8>,
}

/// The files that a command changes, below these directories.
#[derive(Clone, Copy)]
pub(super) enum Changes<'a> {
    /// Files, the index and commits. Git may run programs that the repository names.
    Files(&'a [PathBuf]),
    /// Worktrees, branches and other references. Git runs no program for these, and changes its
    /// control files.
    References(&'a [PathBuf]),
}

impl GitResult {
    /// Returns the output as text, without white space at its ends.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).trim().to_owned()
    }

    /// Returns the result of a command that succeeded, else the error. `doing` names the operation.
    pub(super) fn success(self, doing: &str) -> Result<GitResult> {
        if self.code == 0 { Ok(self) } else { Err(self.error(doing)) }
    }

    /// Returns the text of a command that succeeds only if it finds something.
    pub(super) fn found(&self) -> Option<String> {
        Some(self.text()).filter(|text| self.code == 0 && !text.is_empty())
    }

    /// Creates the error of a failed command. `doing` names the operation.
    pub(super) fn error(&self, doing: &str) -> Error {
        Error::new(Kind::InvalidRequest, format!("{doing}: git failed with {}", self.problem()))
    }

    /// Formats the exit code and the error output.
    pub(super) fn problem(&self) -> String {
        format!("exit code {}: {}", self.code, String::from_utf8_lossy(&self.errors).trim())
    }
}

impl GitRunner {
    pub(super) fn new(launcher: ProcessLauncher, places: &DataPaths) -> GitRunner {
        let private = places.private().iter().map(|path| real_path(path)).collect();
        GitRunner { launcher, private, temp: places.worktrees().join(".temp"), places: places.clone() }
    }

    /// Runs a command that changes nothing. Its filters run in a sandbox that can read `readable`,
    /// even if it is one of nuncio's own directories.
    pub(super) async fn read(
        &self,
        cwd: &Path,
        readable: Option<&Path>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<GitResult> {
        let settings = SAFE_GIT_SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        self.check_owner(cwd)?;
        let own = ["git", "--no-pager"].into_iter().chain(settings).map(OsString::from);
        let all = own.chain(arguments.into_iter().map(Into::into));
        let command = Command::program(all, cwd).git_environment().git_read_only();
        // Without its own reference to a repository, a directory belongs to none.
        let command = NO_FETCH.into_iter().fold(command, |command, (name, value)| command.env(name, value));
        // Do not search parent directories for a repository.
        let command = command.env("GIT_CEILING_DIRECTORIES", cwd.parent().unwrap_or(cwd));
        self.run(command.sandbox(Some(self.sandbox(Vec::new(), readable))), limits::GIT_READ).await
    }

    /// Runs a command that changes the repository. Filters and merge drivers are confined and have
    /// no network; hooks do not run. `variables` are additional environment variables.
    pub(super) async fn change(
        &self,
        cwd: &Path,
        changes: Changes<'_>,
        timeout: Duration,
        variables: &[(&'static str, Option<OsString>)],
        arguments: Vec<OsString>,
    ) -> Result<GitResult> {
        self.check_owner(cwd)?;
        let settings = ["maintenance.auto=false", "gc.auto=0", NO_GIT_HOOKS, "core.fsmonitor=false"];
        let settings = settings.into_iter().flat_map(|setting| ["-c", setting]);
        let all = ["git", "--no-pager"].into_iter().chain(settings).map(OsString::from).chain(arguments);
        let command = Command::program(all, cwd).git_environment().variables(variables);
        let command = NO_FETCH.into_iter().fold(command, |command, (name, value)| command.env(name, value));
        let (writable, git_config) = match changes {
            Changes::Files(writable) => (writable, false),
            Changes::References(writable) => (writable, true),
        };
        let sandbox = Sandbox { git_config, ..self.sandbox(writable.to_vec(), None) };
        self.run(command.sandbox(Some(sandbox)), timeout).await
    }

    /// Refuses a directory or repository of another user that the user did not trust.
    fn check_owner(&self, cwd: &Path) -> Result<()> {
        let Some(other) = self.places.foreign_git_part(cwd) else { return Ok(()) };
        let message = format!("{} belongs to another user ({})", other.display(), owner_name(&other));
        Err(Error::new(Kind::Forbidden, message).hint(format!("if you trust it: nuncio trust {}", cwd.display())))
    }

    fn sandbox(&self, writable: Vec<PathBuf>, readable: Option<&Path>) -> Sandbox {
        Sandbox {
            writable,
            private: self.private.clone(),
            readable: readable.into_iter().map(Path::to_owned).collect(),
            temp: self.temp.clone(),
            new_temp: true,
            git_config: false,
            // A checkout writes the settings of the branch.
            settings: true,
            network: false,
            required: true,
        }
    }

    /// Runs a command to its end. On a timeout, its processes are killed. Trusted repositories also
    /// require the sandbox: commands of the model may have changed the programs that git runs.
    async fn run(&self, command: Command, timeout: Duration) -> Result<GitResult> {
        let mut result = self.run_once(&command, timeout).await?;
        for _ in 1..GIT_ATTEMPTS_MAX {
            if !met_removed_placeholder(result.code, &result.errors) {
                break;
            }
            result = self.run_once(&command, timeout).await?;
        }
        Ok(result)
    }

    async fn run_once(&self, command: &Command, timeout: Duration) -> Result<GitResult> {
        if !Sandbox::is_available() {
            let message = "git was not started: this system cannot confine the programs that a repository names, because its \
                           kernel has no Landlock, or it is turned off";
            return Err(Error::new(Kind::Unsupported, message).hint("create the worktree yourself: git worktree add DIR"));
        }
        let (mut child, input, mut errors) = self.launcher.spawn_captured(command)?;
        drop(input);
        let read = async {
            let reads = tokio::join!(
                read_bounded(&mut child.output, limits::GIT_OUTPUT_BYTES_MAX),
                read_bounded(&mut errors, limits::GIT_ERROR_BYTES_MAX)
            );
            let status: ExitStatus = child.wait().await?;
            Ok::<_, Error>(GitResult { code: status.code, output: reads.0, errors: reads.1 })
        };
        let Ok(result) = tokio::time::timeout(timeout, read).await else {
            let _ = child.end().await;
            return Err(Error::new(Kind::Timeout, format!("git timed out after {} s", timeout.as_secs())));
        };
        let result = result?;
        // Check the message: a hook can cause the same exit code.
        if result.code == NOT_FOUND && result.errors.starts_with(b"nuncio: git: ") {
            return Err(Error::new(Kind::Unsupported, "git is not installed").hint("workspaces are git worktrees: install git"));
        }
        Ok(result)
    }
}

/// Reads the output to its end, and returns the first bytes.
async fn read_bounded(output: &mut Output, limit: usize) -> Vec<u8> {
    let (mut kept, mut chunk) = (Vec::new(), Vec::new());
    while output.read(&mut chunk).await.is_ok_and(|read| read > 0) {
        kept.extend_from_slice(&chunk[..chunk.len().min(limit - kept.len())]);
        chunk.clear();
    }
    kept
}
