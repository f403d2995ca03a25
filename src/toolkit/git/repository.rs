//! Runs git in the repository of a session's directory, and converts between repository paths,
//! displayed paths and absolute paths.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::arguments::{literal_pathspec, path};
use crate::limits;
use crate::process::{
    Child, Command, ExitStatus, GIT_ATTEMPTS_MAX, Output, PLAIN_GIT_NAMES, SAFE_GIT_SETTINGS, Sandbox, met_removed_placeholder,
};
use crate::terminal_text::printed;
use crate::toolkit::context::ToolContext;
use crate::toolkit::output::ToolError;
use crate::toolkit::sandbox_notes::SandboxNotes;

pub(crate) struct GitOutput {
    /// Standard output. Of a read-only command that failed, standard error follows; that of others
    /// is between.
    pub bytes: Vec<u8>,
    /// True if the output exceeded `limits::GIT_OUTPUT_BYTES_MAX`, so that `bytes` is truncated.
    pub truncated: bool,
    /// Exit code.
    pub code: i32,
    /// Notes on the sandbox; empty without one.
    pub sandbox_notes: SandboxNotes,
}

impl GitOutput {
    /// Returns the output as text without trailing whitespace.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim_end().to_owned()
    }

    /// Returns whether git failed because its directory is not in a working tree.
    pub(super) fn is_outside_repository(&self) -> bool {
        let text = self.text();
        self.code != 0 && ["not a git repository", "must be run in a work tree"].iter().any(|known| text.contains(known))
    }

    /// Splits the output of a command with `-z` into its NUL-terminated fields; a truncated last
    /// field is omitted.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let end = memchr::memrchr(0, &self.bytes).unwrap_or(0);
        self.bytes[..end].split(|byte| *byte == 0).filter(move |_| end > 0)
    }
}

/// The repository that contains a session's directory.
pub(crate) struct Git<'c> {
    pub(super) context: &'c ToolContext,
    /// The working tree, without symlinks. It contains the session's directory.
    pub top: PathBuf,
    /// The storage directory of Git LFS, which the Git LFS filters write to.
    pub(super) large_files: Option<PathBuf>,
}

impl<'c> Git<'c> {
    /// Runs a read-only command. Fails if git fails.
    pub(crate) async fn read(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<GitOutput, ToolError> {
        self.succeeded(self.try_read(arguments).await?)
    }

    /// Returns the output, or the error of a failed command.
    pub(super) fn succeeded(&self, output: GitOutput) -> Result<GitOutput, ToolError> {
        if output.code == 0 || output.truncated { Ok(output) } else { Err(self.failed(&output)) }
    }

    /// Runs a read-only command. If git fails, the output contains its exit code.
    pub(crate) async fn try_read(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<GitOutput, ToolError> {
        if !Sandbox::is_available() {
            return Err(ToolError::new(
                "git was not started: this system cannot confine the programs that a repository names, because its kernel has no \
                 Landlock, or it is turned off; run git with bash instead",
            ));
        }
        let settings = SAFE_GIT_SETTINGS.into_iter().flat_map(|setting| ["-c", setting]);
        let own = ["git", "--no-pager"].into_iter().chain(settings);
        let all = own.map(OsString::from).chain(arguments.into_iter().map(Into::into));
        let command = self.command(all).git_read_only().env("GIT_ALLOW_PROTOCOL", "none").sandbox(Some(self.read_sandbox()));
        self.run(&command, true, limits::GIT_READ, &self.context.cancel).await
    }

    /// Runs a command that changes the repository, with its hooks. The output contains standard
    /// output and standard error in the order written. Background maintenance is disabled, because
    /// it would be killed together with the command.
    pub(crate) async fn change(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<GitOutput, ToolError> {
        self.run(&self.change_command(arguments), false, limits::GIT_CHANGE, &self.context.cancel).await
    }

    /// Runs a command that changes git's configuration, which sandboxed commands cannot. It runs no
    /// program of the repository.
    pub(crate) async fn configure(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<GitOutput, ToolError> {
        let settings = SAFE_GIT_SETTINGS.into_iter().flat_map(|setting| ["-c", setting]);
        let own = ["git", "--no-pager"].into_iter().chain(settings).map(OsString::from);
        let command = self.command(own.chain(arguments.into_iter().map(Into::into)));
        self.run(&command, false, limits::GIT_CHANGE, &self.context.cancel).await
    }

    /// Runs a command that reverts changes made by a failed call, even if the call was cancelled.
    pub(crate) async fn undo(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<(), ToolError> {
        let output = self.run(&self.change_command(arguments), false, limits::GIT_UNDO, &CancellationToken::new()).await?;
        if output.code == 0 { Ok(()) } else { Err(self.failed(&output)) }
    }

    /// Creates a command that changes the repository. Its hooks and filters run in the same sandbox
    /// as shell commands.
    fn change_command(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
        let settings = ["-c", "maintenance.auto=false", "-c", "gc.auto=0", "-c", PLAIN_GIT_NAMES];
        let own = ["git", "--no-pager"].into_iter().chain(settings).map(OsString::from);
        self.command(own.chain(arguments.into_iter().map(Into::into))).sandbox(self.context.sandbox.clone())
    }

    /// Creates the sandbox for read-only commands, which run without a permission request. Trusted
    /// directories need it as well: commands of the model may have changed which programs git runs.
    fn read_sandbox(&self) -> Sandbox {
        let temp = self.context.shell.temp().to_owned();
        Sandbox {
            writable: self.large_files.iter().cloned().collect(),
            private: self.context.workspace.private.clone(),
            readable: Vec::new(),
            temp,
            new_temp: false,
            git_config: false,
            settings: false,
            network: false,
            required: true,
        }
    }

    fn command(&self, arguments: impl IntoIterator<Item = OsString>) -> Command {
        let command = Command::program(arguments, &self.context.workspace.cwd).git_environment();
        self.context.secrets.iter().fold(command, |command, name| command.env_remove(name))
    }

    async fn run(
        &self,
        command: &Command,
        reads: bool,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<GitOutput, ToolError> {
        let mut output = self.run_once(command, reads, timeout, cancel).await?;
        for _ in 1..GIT_ATTEMPTS_MAX {
            if !met_removed_placeholder(output.code, &output.bytes) {
                break;
            }
            output = self.run_once(command, reads, timeout, cancel).await?;
        }
        Ok(output)
    }

    /// Runs a command. The standard error of one that only `reads` is apart from its output.
    async fn run_once(
        &self,
        command: &Command,
        reads: bool,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<GitOutput, ToolError> {
        if cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let (mut child, errors) = if reads {
            let (child, _, errors) = self.context.launcher.spawn_captured(command)?;
            (child, Some(errors))
        } else {
            (self.context.launcher.spawn(command)?, None)
        };
        let mut bytes = Vec::new();
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ToolError::cancelled()),
            () = sleep(timeout) => {
                Err(ToolError(format!("git timed out after {} s; it and its child processes were killed", timeout.as_secs())))
            }
            ended = read_to_end(&mut child, errors, &mut bytes) => Ok(ended?),
        };
        match ended {
            Ok(Some(status)) => {
                let required = command.sandbox.as_ref().filter(|_| self.context.sandbox.is_some());
                let sandbox_notes = required
                    .map(|sandbox| SandboxNotes::new(sandbox, &status, &String::from_utf8_lossy(&bytes)))
                    .unwrap_or_default();
                Ok(GitOutput { bytes, truncated: false, code: status.code, sandbox_notes })
            }
            Ok(None) => {
                child.end().await?;
                bytes.truncate(limits::GIT_OUTPUT_BYTES_MAX);
                Ok(GitOutput { bytes, truncated: true, code: 0, sandbox_notes: SandboxNotes::default() })
            }
            Err(ToolError(why)) => {
                child.end().await?;
                let output = printed(&bytes[bytes.len().saturating_sub(limits::GIT_ERROR_BYTES_MAX)..]);
                Err(ToolError(format!("{output}{why}")))
            }
        }
    }

    /// Creates the error for a failed command, with the end of its output.
    pub(crate) fn failed(&self, output: &GitOutput) -> ToolError {
        let text = output.text();
        if output.code == 127 && text.contains("git: ") {
            return ToolError::new("git is not installed");
        }
        let start = text.ceil_char_boundary(text.len().saturating_sub(limits::GIT_ERROR_BYTES_MAX));
        let message =
            format!("git failed with exit code {}: {}\n{}", output.code, &text[start..], output.sandbox_notes.model_lines());
        ToolError(message.trim_end().to_owned())
    }

    /// Returns the displayed form of a path relative to the top of the working tree. The trailing
    /// slash of a directory is kept.
    pub(crate) fn show(&self, from_top: &[u8]) -> String {
        let mut shown = self.context.workspace.show(&self.top.join(path(from_top)));
        if from_top.ends_with(b"/") {
            shown.push('/');
        }
        shown
    }

    /// Returns true if permission rules forbid reading a path, which is relative to the top of the
    /// working tree.
    pub(crate) fn hides(&self, from_top: &[u8]) -> bool {
        let from_top = from_top.strip_suffix(b"/").unwrap_or(from_top);
        self.context.path_filter.as_ref().is_some_and(|hides| hides(&self.top.join(path(from_top))))
    }

    /// Returns the pathspecs that limit a call: `path` if it is given, else the parts of the
    /// working tree inside the session's roots. An empty list means the whole working tree. Fails
    /// if no part of the working tree is inside the roots.
    pub(crate) fn scope(&self, path: Option<&str>) -> Result<Vec<OsString>, ToolError> {
        if let Some(path) = path {
            return Ok(vec![self.pathspec(path)?]);
        }
        let roots = &self.context.workspace.roots;
        if roots.iter().any(|root| self.top.starts_with(root)) {
            return Ok(Vec::new());
        }
        let inside: Vec<OsString> =
            roots.iter().filter(|root| root.starts_with(&self.top)).map(|root| literal_pathspec(root)).collect();
        if inside.is_empty() {
            return Err(ToolError(format!("the repository {} is outside the session's directories", self.top.display())));
        }
        Ok(inside)
    }

    /// Returns a pathspec that matches exactly the path given in a tool call; no character of the
    /// path is special.
    pub(crate) fn pathspec(&self, path: &str) -> Result<OsString, ToolError> {
        Ok(literal_pathspec(&self.locate(path)?))
    }

    /// Returns the absolute path for a path given in a tool call. Symlinks in parent directories
    /// are resolved. A symlink at the path itself is not resolved, because git tracks symlinks as
    /// such.
    pub(crate) fn locate(&self, path: &str) -> Result<PathBuf, ToolError> {
        let resolved = self.context.workspace.resolve(path);
        let link = resolved.path.file_name().filter(|_| resolved.path.is_symlink());
        let directory = resolved.path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
        // However, a symlink outside the repository is resolved.
        let own = link.zip(directory).map(|(name, directory)| directory.join(name)).filter(|own| own.starts_with(&self.top));
        let place = own.unwrap_or(resolved.real);
        if !place.starts_with(&self.top) {
            return Err(ToolError(format!("{path} is not in the repository {}", self.top.display())));
        }
        Ok(place)
    }
}

/// Reads the output of git until it ends, and appends what it printed to standard error if it
/// failed. `None`: the output is too long.
async fn read_to_end(child: &mut Child, errors: Option<Output>, bytes: &mut Vec<u8>) -> Result<Option<ExitStatus>, ToolError> {
    let fail = |error| ToolError(format!("reading the output of git: {error}"));
    let (mut errors, mut said, mut has_ended) = (errors, Vec::new(), false);
    while !has_ended || errors.is_some() {
        tokio::select! {
            read = child.output.read(bytes), if !has_ended => {
                has_ended = read.map_err(fail)? == 0;
                if bytes.len() > limits::GIT_OUTPUT_BYTES_MAX {
                    return Ok(None);
                }
            }
            Some(read) = OptionFuture::from(errors.as_mut().map(|errors| errors.read(&mut said))) => {
                if read.map_err(fail)? == 0 {
                    errors = None;
                }
                said.drain(..said.len().saturating_sub(limits::GIT_ERROR_BYTES_MAX));
            }
        }
    }
    let status = child.wait().await?;
    if status.code != 0 {
        bytes.append(&mut said);
    }
    Ok(Some(status))
}
