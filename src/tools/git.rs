//! The git tools: git itself, under the supervisor, never interactive and bounded in time and output. Here is how it is run; each tool has
//! its own file.
//!
//! Those that read have git run nothing that a repository's settings name: no pager, hook, file system monitor, external diff, text
//! conversion or signature check, and no fetch of missing objects. What remains are filters (`filter.NAME.clean`), without which git cannot
//! tell whether a file that has one changed.

mod branch;
mod changes;
mod commit;
mod diff;
mod log;
mod status;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

pub use branch::Branch;
pub use commit::Commit;
pub use diff::Diff;
pub use log::Log;
pub use status::Status;

use super::{ToolContext, ToolError};
use crate::limits;
use crate::process::{Child, Command};

/// Nobody is there to be asked or to look at pages.
const UNATTENDED: [(&str, &str); 7] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_ASKPASS", "true"),
    ("SSH_ASKPASS", "true"),
    ("GIT_PAGER", "cat"),
    ("TERM", "dumb"),
];

/// The same for reads, which change nothing by the way, and whose messages are the ones that are known.
const READING: [(&str, &str); 3] = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("LC_ALL", "C.UTF-8")];

/// What would lead git to another repository than that of the directory: we may have been started by a hook.
const MISLEADING: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
];

/// Settings of git under which it runs no program of a repository's choice, and prints text as UTF-8.
const HARMLESS: [&str; 4] =
    ["core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false", "i18n.logOutputEncoding=UTF-8"];

/// Its output alone; what it has to complain about follows only when it fails.
const OUTPUT_FIRST: &str = r#"exec 3>&1; said=$("$@" 2>&1 >&3 3>&-) || { code=$?; printf '%s\n' "$said"; exit $code; }"#;

/// What git printed.
pub struct Said {
    pub bytes: Vec<u8>,
    /// There was more than `limits::GIT_OUTPUT_BYTES_MAX`.
    pub cut: bool,
    pub code: i32,
}

impl Said {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim_end().to_owned()
    }

    /// The fields of an output with `-z`; a last one that was cut is left out.
    pub fn fields(&self) -> impl Iterator<Item = &[u8]> {
        let end = memchr::memrchr(0, &self.bytes).unwrap_or(0);
        self.bytes[..end].split(|byte| *byte == 0).filter(move |_| end > 0)
    }
}

/// The repository of a session's directory.
pub struct Git<'c> {
    context: &'c ToolContext,
    /// Its working tree, without symlinks.
    pub top: PathBuf,
}

impl<'c> Git<'c> {
    /// An error when the directory is in no working tree.
    pub async fn open(context: &'c ToolContext) -> Result<Git<'c>, ToolError> {
        let mut git = Git { context, top: PathBuf::new() };
        let top = git.read(["rev-parse", "--show-toplevel"]).await?;
        git.top = path(top.bytes.strip_suffix(b"\n").unwrap_or(&top.bytes));
        Ok(git)
    }

    /// Runs a command that only looks. A failure of git is an error.
    pub async fn read(&self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Result<Said, ToolError> {
        let said = self.try_read(arguments).await?;
        if said.code == 0 || said.cut { Ok(said) } else { Err(self.failed(&said)) }
    }

    /// The same, where a failure of git is an answer.
    pub async fn try_read(&self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Result<Said, ToolError> {
        let settings = HARMLESS.into_iter().flat_map(|setting| ["-c", setting]);
        let own = ["sh", "-c", OUTPUT_FIRST, "sh", "git", "--no-pager"].into_iter().chain(settings);
        let all = own.map(String::from).chain(arguments.into_iter().map(Into::into));
        let mut command = self.command(all);
        for (name, value) in READING {
            command = command.env(name, value);
        }
        self.run(&command, limits::GIT_READ).await
    }

    /// Runs a command that changes the repository, with its hooks; its output and what it complains about in order. Housekeeping in
    /// the background is left to others: it would be ended with the command.
    pub async fn change(&self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Result<Said, ToolError> {
        let own = ["git", "--no-pager", "-c", "maintenance.auto=false", "-c", "gc.auto=0"];
        self.run(&self.command(own.map(String::from).into_iter().chain(arguments.into_iter().map(Into::into))), limits::GIT_CHANGE)
            .await
    }

    fn command(&self, arguments: impl IntoIterator<Item = String>) -> Command {
        let mut command = Command::program(arguments, &self.context.workspace.cwd);
        for (name, value) in UNATTENDED {
            command = command.env(name, value);
        }
        for name in MISLEADING.into_iter().chain(self.context.secrets.iter().map(String::as_str)) {
            command = command.env_remove(name);
        }
        // Hooks and filters are commands like others.
        command.sandbox(self.context.sandbox.clone())
    }

    async fn run(&self, command: &Command, timeout: Duration) -> Result<Said, ToolError> {
        if self.context.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let mut child = self.context.supervisor.spawn(command)?;
        let mut bytes = Vec::new();
        let ended = tokio::select! {
            biased;
            () = self.context.cancel.cancelled() => Err(ToolError::cancelled()),
            () = sleep(timeout) => {
                Err(ToolError(format!("git did not end within {} s; it and all that it had started was ended", timeout.as_secs())))
            }
            ended = whole(&mut child, &mut bytes) => Ok(ended?),
        };
        match ended {
            Ok(Some(code)) => Ok(Said { bytes, cut: false, code }),
            Ok(None) => {
                child.end().await?;
                bytes.truncate(limits::GIT_OUTPUT_BYTES_MAX);
                Ok(Said { bytes, cut: true, code: 0 })
            }
            Err(ToolError(why)) => {
                child.end().await?;
                let said = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(limits::GIT_ERROR_BYTES_MAX)..]).into_owned();
                Err(ToolError(format!("{said}{why}")))
            }
        }
    }

    /// What git said when it failed, the end of it where it is long.
    pub fn failed(&self, said: &Said) -> ToolError {
        let text = said.text();
        if said.code == 127 && text.contains("git: ") {
            return ToolError::new("git is not installed");
        }
        if text.contains("not a git repository") || text.contains("must be run in a work tree") {
            let cwd = self.context.workspace.cwd.display();
            return ToolError(format!("{cwd} is not in a git repository; git init with bash makes one"));
        }
        let cut = text.ceil_char_boundary(text.len().saturating_sub(limits::GIT_ERROR_BYTES_MAX));
        ToolError(format!("git failed with exit code {}: {}", said.code, &text[cut..]))
    }

    /// How people know a path that git names from the top; that of a directory may end with a slash.
    pub fn show(&self, from_top: &[u8]) -> String {
        let mut shown = self.context.workspace.show(&self.top.join(path(from_top)));
        if from_top.ends_with(b"/") {
            shown.push('/');
        }
        if shown.contains(char::is_control) { format!("{shown:?}") } else { shown }
    }

    /// Rules keep it from being read.
    pub fn hides(&self, from_top: &[u8]) -> bool {
        self.context.hidden.as_ref().is_some_and(|hides| hides(&self.top.join(path(from_top))))
    }

    /// What a call looks at, as pathspecs: `path`, or all of the working tree that is inside the roots.
    pub fn scope(&self, path: Option<&str>) -> Result<Vec<String>, ToolError> {
        if let Some(path) = path {
            return Ok(vec![self.pathspec(path)?]);
        }
        let roots = &self.context.workspace.roots;
        if roots.iter().any(|root| self.top.starts_with(root)) {
            return Ok(Vec::new());
        }
        let inside = roots.iter().filter(|root| root.starts_with(&self.top));
        Ok(inside.map(|root| format!(":(literal){}", root.display())).collect())
    }

    /// A path that a model wrote, of which no character means anything to git.
    pub fn pathspec(&self, path: &str) -> Result<String, ToolError> {
        let placed = self.context.workspace.resolve(path).path;
        if !placed.starts_with(&self.top) {
            return Err(ToolError(format!("{path} is not in the repository {}", self.top.display())));
        }
        Ok(format!(":(literal){}", placed.display()))
    }
}

/// Reads the output to its end and waits for that of the command. None: the output is too long.
async fn whole(child: &mut Child, bytes: &mut Vec<u8>) -> Result<Option<i32>, ToolError> {
    loop {
        let read = child.output.read(bytes).await;
        if bytes.len() > limits::GIT_OUTPUT_BYTES_MAX {
            return Ok(None);
        }
        if read.map_err(|error| ToolError(format!("reading what git prints: {error}")))? == 0 {
            return Ok(Some(child.wait().await?.code));
        }
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned()
}

/// A word as a shell would have to be given it.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./,:@%+=".contains(character);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
