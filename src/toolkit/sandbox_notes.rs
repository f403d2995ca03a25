//! Notes on the sandbox in the results of commands.

use crate::process::{ExitStatus, Sandbox};

/// Messages of git and other programs about a read-only control file, in lower case. Some git
/// commands print one and end with exit code 0.
const CONTROL_FILE_ERRORS: [&str; 4] =
    ["could not lock config file", "could not write config file", "read-only file system", "device or resource busy"];

const CONTROL_FILES: &str = "sandbox: git's configuration and hooks, and .nuncio, are read-only, so that a part of the command may not have been done; git_branch sets upstreams and remotes";

/// Messages about a full disk, which no sandbox causes (ENOSPC, EDQUOT), in lower case.
const FULL_DISK_ERRORS: [&str; 4] = ["no space left on device", "disk quota exceeded", "enospc", "disk is full"];

/// Messages about a refused access to a file (EACCES, EPERM, EROFS), in lower case.
const FILE_ERRORS: [&str; 5] = ["permission denied", "operation not permitted", "read-only file system", "eacces", "eperm"];

/// Messages about a refused socket, a network that cannot be reached, or a package manager that is
/// offline, in lower case.
const NETWORK_ERRORS: [&str; 14] = [
    "resolve host",
    "name resolution",
    "network is unreachable",
    "socket: ",
    "getaddrinfo",
    "enotfound",
    "dial tcp",
    "unknownhost",
    "--offline",
    "enotcached",
    "goproxy=off",
    "network access",
    "network was disabled",
    "no matching distribution found",
];

/// Notes on the sandbox in the result of a command. A person needs fewer than a model.
#[derive(Clone, Debug, Default)]
pub(crate) struct SandboxNotes {
    /// All notes, for the model.
    pub model: Vec<String>,
    /// Protections that this system does not support, and files that were restored or created.
    pub facts: Vec<String>,
    /// The setting that probably allows the failed command.
    pub setting: Option<&'static str>,
}

impl SandboxNotes {
    /// Describes protections that this system does not support, control files that were restored
    /// and, if the command failed with a message about a refused access, what the sandbox permits.
    /// `output` is what the command printed.
    pub(crate) fn new(sandbox: &Sandbox, status: &ExitStatus, output: &str) -> SandboxNotes {
        let output = output.to_ascii_lowercase();
        let prints = |errors: &[&str]| errors.iter().any(|error| output.contains(error));
        let unsupported = |calls: &String| format!("sandbox: not blocked on this system: {calls}");
        let restored = |files: &String| format!("sandbox: commands cannot change these files, so they were restored: {files}");
        let facts = [
            status.unsupported.as_ref().map(unsupported),
            status.restored.as_ref().map(restored),
            status.created.as_ref().map(|created| format!("sandbox: {created}")),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        let mut model = facts.clone();
        let is_control_file = !sandbox.writable.is_empty() && !sandbox.git_config && prints(&CONTROL_FILE_ERRORS);
        if is_control_file {
            model.push(CONTROL_FILES.into());
        }
        let has_failed = status.code != 0 && !prints(&FULL_DISK_ERRORS);
        // An ordinary failure, such as that of a test, must not look like one of the sandbox.
        if has_failed && (is_control_file || prints(&FILE_ERRORS) || prints(&NETWORK_ERRORS)) {
            model.push(permitted(sandbox));
        }
        let setting = if is_control_file && output.contains("git") {
            Some("`git_config = true` in [sandbox] of your settings allows changes of git's configuration")
        } else if !has_failed || (!sandbox.settings && output.contains(".nuncio")) {
            None
        } else if !sandbox.network && prints(&NETWORK_ERRORS) {
            Some("`network = true` in [sandbox] of your settings allows it")
        } else if !prints(&FILE_ERRORS) {
            None
        } else if sandbox.writable.is_empty() {
            Some("--sandbox workspace-write allows writes in the project")
        } else {
            Some("`writable` in [sandbox] of your settings allows writes in more directories")
        };
        SandboxNotes { model, facts, setting }
    }

    /// Returns the notes for a person, in lines.
    pub(crate) fn person(&self) -> String {
        let setting = self.setting.map(|setting| format!("sandbox: {setting}"));
        in_lines(self.facts.iter().chain(&setting))
    }

    /// Returns the notes for the model, in lines of an error.
    pub(crate) fn model_lines(&self) -> String {
        in_lines(&self.model)
    }
}

/// Returns notes as lines of a text.
pub(super) fn in_lines<'a>(notes: impl IntoIterator<Item = &'a String>) -> String {
    notes.into_iter().map(|note| format!("[{note}]\n")).collect()
}

/// Describes in a line what the sandbox permits.
fn permitted(sandbox: &Sandbox) -> String {
    let mode = if sandbox.writable.is_empty() { "read-only" } else { "workspace-write" };
    let writable: String = sandbox.writable.iter().map(|path| format!("{}, ", path.display())).collect();
    let network = if sandbox.network { "network, but no unix sockets" } else { "no network, no sockets" };
    let private = if sandbox.private.is_empty() {
        ""
    } else {
        "; nuncio's own directories cannot be read, and those above them cannot be listed"
    };
    format!("sandbox {mode}: writes only below {writable}$TMPDIR; {network}{private}")
}
