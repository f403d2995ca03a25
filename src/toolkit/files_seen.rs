//! Records the file versions that a session has seen, so that the session does not overwrite
//! changes that it has not seen. Also holds the locks for files that are being written.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::output::ToolError;

/// Identifies a version of a file, both on disk and in a client. The default value stands for a
/// missing file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileState {
    /// The state on disk.
    pub disk: Option<DiskState>,
    /// Hash of the client's text, if it had unsaved changes.
    pub unsaved: Option<u64>,
}

impl FileState {
    /// Returns the current state of the file. `unsaved` is the client's text, if it has unsaved
    /// changes.
    pub(crate) fn read(real: &Path, unsaved: Option<&str>) -> FileState {
        let hash = |text: &str| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        };
        FileState { disk: DiskState::read(real), unsaved: unsaved.map(hash) }
    }

    fn is_a_file(&self) -> bool {
        self.disk.is_some() || self.unsaved.is_some()
    }
}

/// Identifies a version of a file on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskState {
    /// Modification time in seconds and nanoseconds. Because file system clocks are coarse, the
    /// other fields are compared too.
    modified: (i64, i64),
    bytes: u64,
    inode: u64,
}

impl DiskState {
    fn read(path: &Path) -> Option<DiskState> {
        let metadata = fs::metadata(path).ok()?;
        Some(DiskState { modified: (metadata.mtime(), metadata.mtime_nsec()), bytes: metadata.len(), inode: metadata.ino() })
    }
}

/// The files that a session has read or written, by real path, with the state it last saw.
#[derive(Debug, Default)]
pub struct FilesSeen {
    seen: Mutex<HashMap<PathBuf, FileState>>,
    pub(super) locks: Arc<PathLocks>,
}

impl FilesSeen {
    /// Creates an empty record. `locks` are shared by all sessions.
    pub(crate) fn new(locks: Arc<PathLocks>) -> FilesSeen {
        FilesSeen { seen: Mutex::default(), locks }
    }

    /// Records that the session has seen the file in its current state. `unsaved` is the client's
    /// text, if it has unsaved changes.
    pub fn note(&self, real: &Path, unsaved: Option<&str>) {
        let seen = FileState::read(real, unsaved);
        if seen.is_a_file() {
            self.seen.lock().insert(real.to_owned(), seen);
        }
    }

    /// Returns whether the session last saw the file with unsaved changes in a client.
    pub(crate) fn is_unsaved(&self, real: &Path) -> bool {
        let seen = self.seen.lock();
        seen.get(real).is_some_and(|seen| seen.unsaved.is_some())
    }

    /// Fails if the file changed since the session last saw it. A file that the session has not
    /// seen, or that no longer exists, may be written.
    pub(crate) fn check(&self, real: &Path, shown: &str, now: FileState) -> Result<(), ToolError> {
        let seen = self.seen.lock().get(real).copied();
        match seen {
            Some(seen) if now.is_a_file() && seen != now => {
                Err(ToolError(format!("stale: {shown} changed since it was read; read it again")))
            }
            _ => Ok(()),
        }
    }
}

/// The locks of files that are being written.
#[derive(Debug, Default)]
pub(crate) struct PathLocks {
    locks: Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>,
}

impl PathLocks {
    /// Locks a file for writing; waits for other writers.
    pub(super) async fn lock(&self, real: &Path) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock();
            locks.retain(|_, lock| lock.strong_count() > 0);
            let lock = locks.get(real).and_then(Weak::upgrade).unwrap_or_default();
            locks.insert(real.to_owned(), Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }
}
