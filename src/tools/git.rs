//! The git tools: git itself, under the supervisor, never interactive and bounded in time and output. Here is how it is run; each tool has
//! its own file.
//!
//! Those that read have git run nothing that a repository's settings name: no pager, hook, file system monitor, external diff, text
//! conversion or signature check, and no fetch of missing objects. What remains are filters (`filter.NAME.clean`), without which git cannot
//! tell whether a file that has one changed: they run where nothing can be written.

mod branch;
mod changes;
mod commit;
mod diff;
mod log;
mod origin;
mod status;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub use branch::Branch;
pub use commit::Commit;
pub use diff::Diff;
pub use log::Log;
pub use status::Status;

use super::bash::confinement;
use super::{ToolContext, ToolError};
use crate::limits;
use crate::process::{Child, Command, ExitStatus, Sandbox};

/// Nobody is there to be asked or to look at pages, and messages are the ones that are known.
const UNATTENDED: [(&str, &str); 8] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_ASKPASS", "true"),
    ("SSH_ASKPASS", "true"),
    ("GIT_PAGER", "cat"),
    ("TERM", "dumb"),
    ("LC_ALL", "C.UTF-8"),
];

/// Reads change nothing by the way.
const READING: [(&str, &str); 2] = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1")];

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
    /// What is to be told of the sandbox it ran in, in lines.
    pub confinement: String,
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
    /// Its working tree, without symlinks. The session's directory is in it.
    pub top: PathBuf,
    /// Where filters keep what they need to compare files.
    large_files: Option<PathBuf>,
}

impl<'c> Git<'c> {
    /// An error when the directory is in no working tree, or when the repository is not that of the directory.
    pub async fn open(context: &'c ToolContext) -> Result<Git<'c>, ToolError> {
        let mut git = Git { context, top: PathBuf::new(), large_files: None };
        let origin = origin::find(&git).await?;
        git.large_files = Some(origin.common.join("lfs"));
        git.top = origin.top;
        Ok(git)
    }

    /// Runs a command that only looks. A failure of git is an error.
    pub async fn read(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Said, ToolError> {
        let said = self.try_read(arguments).await?;
        if said.code == 0 || said.cut { Ok(said) } else { Err(self.failed(&said)) }
    }

    /// The same, where a failure of git is an answer.
    pub async fn try_read(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Said, ToolError> {
        let settings = HARMLESS.into_iter().flat_map(|setting| ["-c", setting]);
        let own = ["sh", "-c", OUTPUT_FIRST, "sh", "git", "--no-pager"].into_iter().chain(settings);
        let all = own.map(OsString::from).chain(arguments.into_iter().map(Into::into));
        let mut command = self.command(all).sandbox(Some(self.reading()));
        for (name, value) in READING {
            command = command.env(name, value);
        }
        self.run(&command, limits::GIT_READ, &self.context.cancel).await
    }

    /// Runs a command that changes the repository, with its hooks; its output and what it complains about in order. Housekeeping in
    /// the background is left to others: it would be ended with the command.
    pub async fn change(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Said, ToolError> {
        self.run(&self.changing(arguments), limits::GIT_CHANGE, &self.context.cancel).await
    }

    /// The same to take back what a call did that failed: also when it was cancelled.
    pub async fn undo(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Result<(), ToolError> {
        let said = self.run(&self.changing(arguments), limits::GIT_UNDO, &CancellationToken::new()).await?;
        if said.code == 0 { Ok(()) } else { Err(self.failed(&said)) }
    }

    /// Hooks and filters are commands like others.
    fn changing(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
        let own = ["git", "--no-pager", "-c", "maintenance.auto=false", "-c", "gc.auto=0"].map(OsString::from);
        self.command(own.into_iter().chain(arguments.into_iter().map(Into::into))).sandbox(self.context.sandbox.clone())
    }

    /// Where the kernel has no Landlock and no sandbox is wanted, reads run without.
    fn reading(&self) -> Sandbox {
        let temp = self.context.shell.temp().to_owned();
        Sandbox {
            writable: self.large_files.iter().cloned().collect(),
            private: self.context.workspace.private.clone(),
            readable: Vec::new(),
            temp,
            network: false,
            required: self.context.sandbox.is_some(),
        }
    }

    fn command(&self, arguments: impl IntoIterator<Item = OsString>) -> Command {
        let mut command = Command::program(arguments, &self.context.workspace.cwd);
        for (name, value) in UNATTENDED {
            command = command.env(name, value);
        }
        for name in MISLEADING.into_iter().chain(self.context.secrets.iter().map(String::as_str)) {
            command = command.env_remove(name);
        }
        command
    }

    async fn run(&self, command: &Command, timeout: Duration, cancel: &CancellationToken) -> Result<Said, ToolError> {
        if cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let mut child = self.context.supervisor.spawn(command)?;
        let mut bytes = Vec::new();
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ToolError::cancelled()),
            () = sleep(timeout) => {
                Err(ToolError(format!("git did not end within {} s; it and all that it had started was ended", timeout.as_secs())))
            }
            ended = whole(&mut child, &mut bytes) => Ok(ended?),
        };
        match ended {
            Ok(Some(status)) => {
                let wanted = command.sandbox.as_ref().filter(|sandbox| sandbox.required);
                let confinement = wanted.map(|sandbox| confinement(sandbox, &status)).unwrap_or_default();
                Ok(Said { bytes, cut: false, code: status.code, confinement })
            }
            Ok(None) => {
                child.end().await?;
                bytes.truncate(limits::GIT_OUTPUT_BYTES_MAX);
                Ok(Said { bytes, cut: true, code: 0, confinement: String::new() })
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
        let told = format!("git failed with exit code {}: {}\n{}", said.code, &text[cut..], said.confinement);
        ToolError(told.trim_end().to_owned())
    }

    /// How people know a path that git names from the top; that of a directory may end with a slash.
    pub fn show(&self, from_top: &[u8]) -> String {
        let mut shown = self.context.workspace.show(&self.top.join(path(from_top)));
        if from_top.ends_with(b"/") {
            shown.push('/');
        }
        shown
    }

    /// Rules keep it from being read.
    pub fn hides(&self, from_top: &[u8]) -> bool {
        let from_top = from_top.strip_suffix(b"/").unwrap_or(from_top);
        self.context.hidden.as_ref().is_some_and(|hides| hides(&self.top.join(path(from_top))))
    }

    /// What a call looks at, as pathspecs: `path`, or all of the working tree that is inside the roots; none are all of it.
    pub fn scope(&self, path: Option<&str>) -> Result<Vec<OsString>, ToolError> {
        if let Some(path) = path {
            return Ok(vec![self.pathspec(path)?]);
        }
        let roots = &self.context.workspace.roots;
        if roots.iter().any(|root| self.top.starts_with(root)) {
            return Ok(Vec::new());
        }
        let inside: Vec<OsString> = roots.iter().filter(|root| root.starts_with(&self.top)).map(|root| literal(root)).collect();
        if inside.is_empty() {
            return Err(ToolError(format!("the repository {} is outside the roots", self.top.display())));
        }
        Ok(inside)
    }

    /// A path that a model wrote, of which no character means anything to git.
    pub fn pathspec(&self, path: &str) -> Result<OsString, ToolError> {
        Ok(literal(&self.place(path)?))
    }

    /// Where a path that a model wrote leads, as git knows it: what is a link itself is not followed.
    pub fn place(&self, path: &str) -> Result<PathBuf, ToolError> {
        let placed = self.context.workspace.resolve(path);
        let link = placed.path.file_name().filter(|_| placed.path.is_symlink());
        let directory = placed.path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
        // What leads out of the repository by itself is no link of its.
        let own = link.zip(directory).map(|(name, directory)| directory.join(name)).filter(|own| own.starts_with(&self.top));
        let place = own.unwrap_or(placed.real);
        if !place.starts_with(&self.top) {
            return Err(ToolError(format!("{path} is not in the repository {}", self.top.display())));
        }
        Ok(place)
    }
}

/// Reads the output to its end and waits for that of the command. None: the output is too long.
async fn whole(child: &mut Child, bytes: &mut Vec<u8>) -> Result<Option<ExitStatus>, ToolError> {
    loop {
        let read = child.output.read(bytes).await;
        if bytes.len() > limits::GIT_OUTPUT_BYTES_MAX {
            return Ok(None);
        }
        if read.map_err(|error| ToolError(format!("reading what git prints: {error}")))? == 0 {
            return Ok(Some(child.wait().await?));
        }
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_owned()
}

/// A pathspec for an absolute path.
fn literal(path: &Path) -> OsString {
    pathspec("literal", path.as_os_str().as_bytes())
}

/// gitglossary(7), "pathspec".
fn pathspec(magic: &str, path: &[u8]) -> OsString {
    OsString::from_vec([format!(":({magic})").as_bytes(), path].concat())
}

/// Arguments of which some are paths.
fn words(words: &[&str], paths: &[OsString]) -> Vec<OsString> {
    words.iter().map(OsString::from).chain(paths.iter().cloned()).collect()
}

/// A word as a shell would have to be given it.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./,:@%+=".contains(character);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
