//! Temporary directories of sandboxed processes. Each process has a new one below a directory that
//! it cannot write, so that no process chooses by a symlink where the next one may write.

use std::fs::{DirBuilder, File, read_dir, remove_dir_all};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::workspace::{lock_files, real_path};

/// The start of the names.
const PREFIX: &str = "process-";

/// The temporary directory of one process. It is removed when the value is dropped.
#[derive(Debug)]
pub(super) struct ProcessTemp {
    pub path: PathBuf,
    /// Shows other processes of nuncio that the directory is in use.
    _lock: File,
}

impl ProcessTemp {
    /// Creates a directory in `parent`, which must be free of symlinks, and removes those that a
    /// killed nuncio left there.
    pub(super) fn new(parent: &Path) -> Result<ProcessTemp> {
        let _changes = lock_files(parent)?;
        if real_path(parent) != parent {
            let message = format!("{}: a symlink is no directory for temporary files", parent.display());
            return Err(Error::new(Kind::Forbidden, message).hint("remove the symlink"));
        }
        remove_unused(parent);
        let path = parent.join(format!("{PREFIX}{}", uuid::Uuid::now_v7().simple()));
        let lock = DirBuilder::new().mode(0o700).create(&path).and_then(|()| File::open(&path));
        let lock = lock.map_err(|error| Error::io(format_args!("creating directory {}", path.display()), error))?;
        // A file system without locks has no unlocked directories either.
        let _ = lock.try_lock_shared();
        Ok(ProcessTemp { path, _lock: lock })
    }
}

impl Drop for ProcessTemp {
    fn drop(&mut self) {
        // A later process removes what could not be removed.
        let _ = remove_dir_all(&self.path);
    }
}

/// Removes the directories that no process of nuncio has locked.
fn remove_unused(parent: &Path) {
    for entry in read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && File::open(entry.path()).is_ok_and(|opened| opened.try_lock().is_ok()) {
            let _ = remove_dir_all(entry.path());
        }
    }
}
