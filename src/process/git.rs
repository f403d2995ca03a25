//! The environment and the settings of the git commands that nuncio runs itself.

use memchr::memmem;

use super::command::Command;

/// Environment without editor, pager and password prompts. The fixed locale keeps git's messages in
/// English, because some of them are parsed.
const NON_INTERACTIVE: [(&str, &str); 8] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_ASKPASS", "true"),
    ("SSH_ASKPASS", "true"),
    ("GIT_PAGER", "cat"),
    ("TERM", "dumb"),
    ("LC_ALL", "C.UTF-8"),
];

/// Environment for read-only commands: no refresh of the index, no fetch of missing objects.
const READ_ONLY: [(&str, &str); 2] = [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1")];

/// Variables to remove, because they select a repository or program other than that of the
/// command's directory. Such variables are set if nuncio was started by a git hook.
const REMOVED: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
];

/// The variable with settings for git, as `git -c` passes them on.
pub(crate) const GIT_SETTINGS_VARIABLE: &str = "GIT_CONFIG_PARAMETERS";

/// Setting with which git refuses a bare repository that it finds in a project (git 2.38): files
/// that are committed to a project can be one, whose configuration names programs.
pub(crate) const NO_EMBEDDED_REPOSITORIES: &str = "'safe.bareRepository'='explicit'";

/// Setting that disables the hooks of a repository.
pub(crate) const NO_GIT_HOOKS: &str = "core.hooksPath=/dev/null";

/// Setting with which git prints names as they are, not as octal bytes.
pub(crate) const PLAIN_GIT_NAMES: &str = "core.quotePath=false";

/// Settings that disable programs configured in the repository, and select UTF-8 output.
pub(crate) const SAFE_GIT_SETTINGS: [&str; 5] =
    ["core.fsmonitor=false", NO_GIT_HOOKS, "log.showSignature=false", "i18n.logOutputEncoding=UTF-8", PLAIN_GIT_NAMES];

impl Command {
    /// Sets the environment of a git command: no prompts, and the repository of its directory.
    pub(crate) fn git_environment(self) -> Command {
        let command = NON_INTERACTIVE.into_iter().fold(self, |command, (name, value)| command.env(name, value));
        REMOVED.into_iter().fold(command, Command::env_remove)
    }

    /// Sets the environment of a git command that changes nothing.
    pub(crate) fn git_read_only(self) -> Command {
        READ_ONLY.into_iter().fold(self, |command, (name, value)| command.env(name, value))
    }
}

/// Maximum number of attempts to run a git command that meets a removed placeholder.
pub(crate) const GIT_ATTEMPTS_MAX: usize = 5;

/// Returns whether git ended before it did anything, because another process removed the
/// placeholder `commondir` after git saw it and before git read it.
pub(crate) fn met_removed_placeholder(code: i32, errors: &[u8]) -> bool {
    let line = errors.split(|byte| *byte == b'\n').next().unwrap_or_default();
    code == 128 && line.starts_with(b"fatal: failed to read ") && memmem::find(line, b"/commondir: ").is_some()
}
