//! Paths of nuncio's files, and a copy of the environment at startup.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::worktree_origin::worktrees_in;
use crate::error::{Error, Result};

/// The environment variable with the nesting depth of a process; see [`Environment::depth`].
pub(crate) const DEPTH_VARIABLE: &str = "NUNCIO_DEPTH";

/// The environment variable with the id of the session of a command or of a hosted agent.
pub(crate) const SESSION_VARIABLE: &str = "NUNCIO_SESSION";
/// The environment variable with the directory of the session.
const WORKSPACE_VARIABLE: &str = "NUNCIO_WORKSPACE";
/// The environment variable with the base URL of this process, if it serves HTTP.
const HTTP_VARIABLE: &str = "NUNCIO_HTTP";
/// The environment variables with the port of a hosted agent's own server on 127.0.0.1, and with
/// the id of the session in the agent.
pub(crate) const AGENT_PORT_VARIABLE: &str = "NUNCIO_AGENT_PORT";
pub(crate) const AGENT_SESSION_VARIABLE: &str = "NUNCIO_AGENT_SESSION";

/// The environment variable with more private paths, separated by colons. `nuncio eval` hides its
/// tasks and results from the runs with it.
pub(crate) const HIDDEN_VARIABLE: &str = "NUNCIO_HIDDEN";

/// Environment variables with which the programs of a session find it. A variable without a value
/// is unset.
#[derive(Clone, Debug, Default)]
pub struct SessionVariables(Vec<(&'static str, Option<OsString>)>);

impl SessionVariables {
    /// Creates the variables of a session in `cwd`. `url` is the base URL of this process.
    pub(crate) fn new(session: Option<&str>, cwd: &Path, url: Option<&str>) -> SessionVariables {
        SessionVariables(vec![
            (SESSION_VARIABLE, session.map(OsString::from)),
            (WORKSPACE_VARIABLE, Some(cwd.into())),
            (HTTP_VARIABLE, url.map(OsString::from)),
            (AGENT_PORT_VARIABLE, None),
            (AGENT_SESSION_VARIABLE, None),
        ])
    }

    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, Some(value.into())));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(&'static str, Option<OsString>)> {
        self.0.iter()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| *other == name)
    }
}

/// The environment variables of this process, read once.
#[derive(Clone, Debug, Default)]
pub struct Environment(HashMap<String, String>);

impl Environment {
    /// Reads the variables of the process. Variables that are not UTF-8 are ignored. Without
    /// `HOME`, the home directory is that of passwd(5).
    pub fn capture() -> Environment {
        let variables = std::env::vars_os();
        let mut all: HashMap<_, _> =
            variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect();
        if let (None, Some(home)) = (all.get("HOME"), std::env::home_dir()) {
            all.insert("HOME".into(), home.to_string_lossy().into_owned());
        }
        Environment(all)
    }

    /// Returns the directories in which this process searches programs, as in execvp(3): its PATH.
    pub(crate) fn search_path() -> OsString {
        std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into())
    }

    /// Overwrites the values of these variables in the process's memory, so that other processes
    /// cannot read them in /proc/PID/environ (proc(5)). Must be called at startup, before another
    /// thread uses the environment.
    pub(crate) fn hide(&self, names: &[String]) {
        unsafe extern "C" {
            static environ: *const *mut std::ffi::c_char;
        }
        // SAFETY: environ(7) is a null-terminated array of C strings. Only bytes of values are
        // overwritten, never a terminator.
        unsafe {
            let mut variable = environ;
            while !variable.is_null() && !(*variable).is_null() {
                let text = std::ffi::CStr::from_ptr(*variable).to_bytes();
                let end = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
                if names.iter().any(|name| name.as_bytes() == &text[..end]) && end < text.len() {
                    std::ptr::write_bytes((*variable).add(end + 1), b'*', text.len() - end - 1);
                }
                variable = variable.add(1);
            }
        }
    }

    /// Returns the nesting depth of this process: the number of parent sessions of its sessions.
    /// nuncio sets the variable for the processes that it starts.
    pub(crate) fn depth(&self) -> u32 {
        self.get(DEPTH_VARIABLE).and_then(|depth| depth.trim().parse().ok()).unwrap_or(0)
    }

    /// Returns the user that started nuncio with sudo(8), if nuncio runs as root.
    fn sudo_user(&self) -> Option<u32> {
        self.get("SUDO_UID").filter(|_| rustix::process::geteuid().is_root())?.parse().ok()
    }

    /// Returns this environment, with nuncio's files in `directory` unless there is a home
    /// directory.
    pub(crate) fn with_home(mut self, directory: &Path) -> Environment {
        if self.get("HOME").is_none() && self.get("NUNCIO_HOME").is_none() {
            self.0.insert("NUNCIO_HOME".into(), directory.to_string_lossy().into_owned());
        }
        self
    }

    pub(crate) fn with(mut self, name: &str, value: String) -> Environment {
        self.0.insert(name.into(), value);
        self
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns the value of a variable; `None` if it is unset or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Environment(variables.into_iter().collect())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Environment(variables.map(|(name, value)| (name.into(), value.into())).into())
    }
}

/// The paths that nuncio uses: below `NUNCIO_HOME` if it is set, else in the XDG directories.
#[derive(Clone, Debug)]
pub struct DataPaths {
    /// `config.toml`, or the file given with `--config`.
    pub file: PathBuf,
    /// Holds `nuncio.db`, `session-key`, `session-signatures`, `locks/`, `artifacts/`,
    /// `attachments/`, `drafts/`, `requests/`, `token`, `tokens.json`, `keys.json`, `trusted`,
    /// `trusted-content/`, `models.json`, `mcp-tokens/`, `mcp-work/`, `caches/`, `worktrees/`.
    pub data: PathBuf,
    /// The default directory of `config.toml`, regardless of `--config`.
    pub config: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The user that started nuncio with sudo.
    pub sudo_user: Option<u32>,
    /// More paths that commands cannot read; see [`HIDDEN_VARIABLE`].
    pub hidden: Vec<PathBuf>,
}

impl DataPaths {
    /// Determines the paths from the environment. `data` overrides the data directory
    /// (`--data-dir`).
    pub(crate) fn new(environment: &Environment, data: Option<&Path>) -> Result<DataPaths> {
        let (home, sudo_user) = (environment.get("HOME").map(PathBuf::from), environment.sudo_user());
        let hidden: Vec<PathBuf> =
            environment.get(HIDDEN_VARIABLE).map(|paths| std::env::split_paths(paths).collect()).unwrap_or_default();
        let mut places = match environment.get("NUNCIO_HOME") {
            Some(all) => {
                let all = std::path::absolute(all).map_err(|error| Error::io("resolving NUNCIO_HOME", error))?;
                DataPaths { file: all.join("config.toml"), config: all.clone(), data: all, home, sudo_user, hidden }
            }
            None => {
                let unknown = || Error::invalid_params("the home directory is unknown").hint("set HOME or NUNCIO_HOME");
                let below = home.as_deref().ok_or_else(unknown)?;
                // XDG Base Directory Specification: relative paths are invalid.
                let base = |variable, default| match environment.get(variable).map(PathBuf::from) {
                    Some(directory) if directory.is_absolute() => directory.join("nuncio"),
                    _ => below.join(default).join("nuncio"),
                };
                let (config, data) = (base("XDG_CONFIG_HOME", ".config"), base("XDG_DATA_HOME", ".local/share"));
                DataPaths { file: config.join("config.toml"), config, data, home, sudo_user, hidden }
            }
        };
        if let Some(data) = data {
            places.data = std::path::absolute(data).map_err(|error| Error::io("resolving --data-dir", error))?;
        }
        Ok(places)
    }

    /// Lists the files and directories that hold nuncio's permissions, state or settings, with the
    /// scripts, commands and instructions next to these. Tools must not write them.
    pub(crate) fn own_files(&self) -> Vec<PathBuf> {
        let names = [
            "nuncio.db",
            "nuncio.db-wal",
            "nuncio.db-shm",
            "session-key",
            "session-signatures",
            "token",
            "tokens.json",
            "trusted",
            "trusted-content",
            "keys.json",
            "models.json",
            "models.lock",
            "locks",
            "artifacts",
            "attachments",
            "chat-history.ndjson",
            "drafts",
            "requests",
            "mcp-tokens",
            "mcp-work",
            "caches",
            "temp",
        ];
        names.iter().map(|name| self.data.join(name)).chain([self.file.clone(), self.config.clone()]).collect()
    }

    /// Returns paths that sandboxed commands can neither read nor lock, because they hold the owner
    /// token and the settings, or are hidden.
    pub(crate) fn private(&self) -> Vec<PathBuf> {
        [self.data.clone(), self.config.clone()].into_iter().chain(self.hidden.iter().cloned()).collect()
    }

    /// Returns the directory of the files that a session's tools produce.
    pub(crate) fn artifacts(&self, session: &str) -> PathBuf {
        self.data.join("artifacts").join(session)
    }

    /// Returns the directory of the files attached to a session's messages.
    pub(crate) fn attachments(&self, session: &str) -> PathBuf {
        self.data.join("attachments").join(session)
    }

    /// Returns the path of the list of trusted directories.
    pub(crate) fn trusted(&self) -> PathBuf {
        trusted_in(&self.data)
    }

    /// Returns the directory of the OAuth tokens of MCP servers.
    pub(crate) fn mcp_tokens(&self) -> PathBuf {
        self.data.join("mcp-tokens")
    }

    /// Returns the directory in which the user's MCP server `name` runs, outside of all projects.
    pub(crate) fn mcp_work(&self, name: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
        self.data.join("mcp-work").join(name.chars().map(plain).collect::<String>())
    }

    /// Returns the directory of the git worktrees that nuncio creates, `PROJECT/NAME` each. The
    /// path is free of symlinks.
    pub(crate) fn worktrees(&self) -> PathBuf {
        worktrees_in(&self.data)
    }
}

/// Returns the path of the list of trusted directories in a data directory.
pub(super) fn trusted_in(data: &Path) -> PathBuf {
    data.join("trusted")
}

/// Returns the path of the settings file of a project in `directory`.
pub(super) fn project_file(directory: &Path) -> PathBuf {
    directory.join(".nuncio").join("config.toml")
}
