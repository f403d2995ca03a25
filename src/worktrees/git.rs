//! Runs git for workspaces.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::{DataPaths, Trust, owner_name};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::process::{Command, ExitStatus, NO_GIT_HOOKS, Output, ProcessLauncher, SAFE_GIT_SETTINGS, Sandbox};

/// Exit code of a program that was not found. The error output then has its name, after `nuncio: `.
const NOT_FOUND: i32 = 127;

/// Environment of commands that fetch nothing: the programs of transports do not run, such as
/// `core.sshCommand`, `remote.NAME.uploadpack` and `ext::`.
const NO_FETCH: [(&str, &str); 2] = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// Runs git commands with a timeout.
#[derive(Clone)]
pub(super) struct GitRunner {
    pub launcher: ProcessLauncher,
    /// nuncio's own directories, which filters of a repository cannot read.
    pub private: Vec<PathBuf>,
    /// Directory for the temporary files of filters.
    pub temp: PathBuf,
    /// Where the list of trusted directories is.
    pub places: DataPaths,
}

/// The result of a git command.
pub(super) struct GitResult {
    pub code: i32,
    /// Standard output, truncated at [`limits::GIT_OUTPUT_BYTES_MAX`].
    pub output: Vec<u8>,
    /// Standard error, truncated at [`limits::GIT_ERROR_BYTES_MAX`].
    pub errors: Vec<u8>,
}

/// The programs that a command that changes the repository may run.
pub(super) enum Programs {
    /// The filters of the repository. Hooks do not run.
    Filters,
    /// Filters that write only in these directories, without network. Hooks do not run.
    Confined(Vec<PathBuf>),
    /// Like `Confined`, for a repository that is not trusted: without a sandbox, git does not run.
    Untrusted(Vec<PathBuf>),
}

impl GitResult {
    /// The output as text, without white space at its ends.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).trim().to_owned()
    }

    /// The error of a failed command. `doing` names the operation.
    pub(super) fn failed(&self, doing: &str) -> Error {
        Error::new(Kind::InvalidRequest, format!("{doing}: git failed with {}", self.problem()))
    }

    /// The exit code and the error output.
    pub(super) fn problem(&self) -> String {
        format!("exit code {}: {}", self.code, String::from_utf8_lossy(&self.errors).trim())
    }
}

impl GitRunner {
    /// Runs a command that changes nothing. Its filters run in a sandbox that can read `readable`,
    /// even if it is one of nuncio's own directories.
    pub(super) async fn read(&self, cwd: &Path, readable: Option<&Path>, arguments: &[&str]) -> Result<GitResult> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        self.read_with(cwd, readable, arguments).await
    }

    /// Like [`GitRunner::read`], with arguments that may not be UTF-8.
    pub(super) async fn read_with(&self, cwd: &Path, readable: Option<&Path>, arguments: Vec<OsString>) -> Result<GitResult> {
        let settings = SAFE_GIT_SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        self.check_owner(cwd)?;
        let own = ["git", "--no-pager"].into_iter().chain(settings).map(OsString::from);
        let command = Command::program(own.chain(arguments), cwd).git_environment().git_read_only();
        // Without its own reference to a repository, a directory belongs to none.
        let command = NO_FETCH.into_iter().fold(command, |command, (name, value)| command.env(name, value));
        let command = command.env("GIT_CEILING_DIRECTORIES", cwd.parent().unwrap_or(cwd));
        let required = !Trust::load(&self.places).covers(cwd);
        self.run(command.sandbox(Some(self.sandbox(Vec::new(), readable, required))), limits::GIT_READ).await
    }

    /// Runs a command that changes the repository.
    pub(super) async fn change(
        &self,
        cwd: &Path,
        programs: &Programs,
        timeout: Duration,
        arguments: Vec<OsString>,
    ) -> Result<GitResult> {
        self.change_with(cwd, programs, timeout, &[], arguments).await
    }

    /// Like [`GitRunner::change`], with additional environment variables.
    pub(super) async fn change_with(
        &self,
        cwd: &Path,
        programs: &Programs,
        timeout: Duration,
        variables: &[(&'static str, Option<OsString>)],
        arguments: Vec<OsString>,
    ) -> Result<GitResult> {
        self.check_owner(cwd)?;
        let mut own = vec!["git", "--no-pager", "-c", "maintenance.auto=false", "-c", "gc.auto=0"];
        let sandbox = match programs {
            Programs::Filters => {
                own.extend(["-c", NO_GIT_HOOKS]);
                None
            }
            Programs::Confined(writable) | Programs::Untrusted(writable) => {
                own.extend(["-c", NO_GIT_HOOKS, "-c", "core.fsmonitor=false"]);
                let required = matches!(programs, Programs::Untrusted(_)) || !Trust::load(&self.places).covers(cwd);
                Some(self.sandbox(writable.clone(), None, required))
            }
        };
        let all = own.into_iter().map(OsString::from).chain(arguments);
        let mut command = Command::program(all, cwd).git_environment().variables(variables);
        if sandbox.is_some() {
            command = NO_FETCH.into_iter().fold(command, |command, (name, value)| command.env(name, value));
        }
        self.run(command.sandbox(sandbox), timeout).await
    }

    /// Refuses a directory or repository of another user that the user did not trust.
    fn check_owner(&self, cwd: &Path) -> Result<()> {
        let Some(other) = self.places.foreign_git_part(cwd) else { return Ok(()) };
        let message = format!("{} belongs to another user ({})", other.display(), owner_name(&other));
        Err(Error::new(Kind::Forbidden, message).hint(format!("if you trust it: nuncio trust {}", cwd.display())))
    }

    fn sandbox(&self, writable: Vec<PathBuf>, readable: Option<&Path>, required: bool) -> Sandbox {
        Sandbox {
            writable,
            private: self.private.clone(),
            readable: readable.into_iter().map(Path::to_owned).collect(),
            temp: self.temp.clone(),
            network: false,
            required,
        }
    }

    /// Runs a command to its end. On a timeout, its processes are killed.
    async fn run(&self, command: Command, timeout: Duration) -> Result<GitResult> {
        if command.sandbox.as_ref().is_some_and(|sandbox| sandbox.required) && !Sandbox::is_available() {
            let message = "the repository is not trusted, and this system has no Landlock to confine the programs that it names";
            return Err(Error::new(Kind::Unsupported, message).hint("if you trust it: nuncio trust DIR"));
        }
        let (mut child, input, mut errors) = self.launcher.spawn_captured(&command)?;
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
        // A hook can end git with the same code.
        if result.code == NOT_FOUND && result.errors.starts_with(b"nuncio: git: ") {
            return Err(Error::new(Kind::Unsupported, "git is not installed").hint("workspaces are git worktrees: install git"));
        }
        Ok(result)
    }
}

/// Reads to the end of the output, and returns its first bytes.
async fn read_bounded(output: &mut Output, limit: usize) -> Vec<u8> {
    let (mut kept, mut chunk) = (Vec::new(), Vec::new());
    while output.read(&mut chunk).await.is_ok_and(|read| read > 0) {
        kept.extend_from_slice(&chunk[..chunk.len().min(limit - kept.len())]);
        chunk.clear();
    }
    kept
}
