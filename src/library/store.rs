//! The place of an agent's sessions.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The place of the sessions of an agent, and of their files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Store {
    /// A private temporary directory, which exists as long as the agent.
    #[default]
    Memory,
    /// The user's own data directory, as that of the program `nuncio`: other processes show these
    /// sessions. The environment must have `HOME` or `NUNCIO_HOME`.
    User,
    /// A directory, which is created if it does not exist.
    Directory(PathBuf),
}

/// A directory that is removed with this value.
pub(super) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Creates a directory in `parent` that only this user can read.
    pub(super) fn create(parent: &Path) -> Result<TemporaryDirectory> {
        let path = parent.join(format!("nuncio-{}", uuid::Uuid::now_v7().simple()));
        let created = std::fs::DirBuilder::new().mode(0o700).create(&path);
        created.map_err(|error| Error::io(format_args!("creating {}", path.display()), error))?;
        Ok(TemporaryDirectory(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Fails if another process removed it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
