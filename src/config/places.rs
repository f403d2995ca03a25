//! Where things are, and the environment as it was at the start.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::error::{Error, Result};

/// The environment variables of this process, read once.
#[derive(Clone, Debug, Default)]
pub struct Environment(HashMap<String, String>);

impl Environment {
    /// Those that are text; others can name neither a key nor a path that settings could hold.
    pub fn capture() -> Environment {
        Environment(
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect(),
        )
    }

    /// Wipes the values of these variables out of the memory in which the system shows them to others (proc(5), /proc/PID/environ).
    /// For the beginning of the process, while no other thread looks at its environment.
    pub fn hide(&self, names: &[String]) {
        unsafe extern "C" {
            static environ: *const *mut std::ffi::c_char;
        }
        // SAFETY: environ(7) is an array of C strings that ends with a null; only bytes of values are changed, none of them a terminator.
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

    /// An empty variable counts as none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Environment(variables.map(|(name, value)| (name.into(), value.into())).into())
    }
}

/// `NUNCIO_HOME` holds everything; without it the XDG directories do.
#[derive(Clone, Debug)]
pub struct Places {
    /// `config.toml`, or what `--config` names.
    pub file: PathBuf,
    /// Holds `nuncio.db`, `locks/`, `artifacts/`, `attachments/`, `token`, `tokens.json`, `trusted`.
    pub data: PathBuf,
    /// The directory where `config.toml` is looked for, whatever `--config` names.
    pub config: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
}

impl Places {
    /// `data` overrides where the data is (`--data-dir`).
    pub fn new(environment: &Environment, data: Option<&Path>) -> Result<Places> {
        let home = environment.get("HOME").map(PathBuf::from);
        let mut places = match environment.get("NUNCIO_HOME") {
            Some(all) => {
                let all = std::path::absolute(all).map_err(|error| Error::io("resolving NUNCIO_HOME", error))?;
                Places { file: all.join("config.toml"), config: all.clone(), data: all, home }
            }
            None => {
                let base = etcetera::choose_base_strategy()
                    .map_err(|_| Error::invalid_params("no home directory is known").hint("set HOME or NUNCIO_HOME"))?;
                let config = base.config_dir().join("nuncio");
                Places { file: config.join("config.toml"), config, data: base.data_dir().join("nuncio"), home }
            }
        };
        if let Some(data) = data {
            places.data = std::path::absolute(data).map_err(|error| Error::io("resolving --data-dir", error))?;
        }
        Ok(places)
    }

    /// Files that decide what may be done, or hold what was: nobody but nuncio writes them.
    pub fn own_files(&self) -> Vec<PathBuf> {
        let names =
            ["nuncio.db", "nuncio.db-wal", "nuncio.db-shm", "token", "tokens.json", "trusted", "locks", "artifacts", "attachments"];
        names.iter().map(|name| self.data.join(name)).chain([self.file.clone()]).collect()
    }

    /// Directories of which a confined command reads and locks nothing: they hold the owner's token.
    pub fn private(&self) -> Vec<PathBuf> {
        vec![self.data.clone(), self.config.clone()]
    }

    /// Files that tools of a session leave.
    pub fn artifacts(&self, session: &str) -> PathBuf {
        self.data.join("artifacts").join(session)
    }

    /// Files that came along with a session's messages.
    pub fn attachments(&self, session: &str) -> PathBuf {
        self.data.join("attachments").join(session)
    }
}
