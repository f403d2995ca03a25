//! Which files a session has seen, and as what, so that it does not overwrite what it has not; and who writes a file now.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

use super::ToolError;

/// What tells one state of a file from another: on the disk, and as a client has it. The default is that of no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub disk: Option<Stamp>,
    /// Of the text that the client had and the disk did not.
    pub unsaved: Option<u64>,
}

impl Seen {
    pub fn of(real: &Path, unsaved: Option<&str>) -> Seen {
        let hash = |text: &str| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            hasher.finish()
        };
        Seen { disk: Stamp::of(real), unsaved: unsaved.map(hash) }
    }

    fn is_a_file(&self) -> bool {
        self.disk.is_some() || self.unsaved.is_some()
    }
}

/// What tells one state of a file on the disk from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Seconds and nanoseconds. Clocks of file systems are coarse, hence the rest.
    modified: (i64, i64),
    bytes: u64,
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let metadata = fs::metadata(path).ok()?;
        Some(Stamp { modified: (metadata.mtime(), metadata.mtime_nsec()), bytes: metadata.len(), inode: metadata.ino() })
    }
}

/// The files that a session has read or written, by real path, as it saw them last.
#[derive(Debug, Default)]
pub struct FilesSeen {
    seen: Mutex<HashMap<PathBuf, Seen>>,
    locks: Arc<PathLocks>,
}

impl FilesSeen {
    /// `locks` are shared by all sessions.
    pub fn new(locks: Arc<PathLocks>) -> FilesSeen {
        FilesSeen { seen: Mutex::default(), locks }
    }

    /// The session sees the file as it is now, `unsaved` by a client.
    pub fn note(&self, real: &Path, unsaved: Option<&str>) {
        let seen = Seen::of(real, unsaved);
        if seen.is_a_file() {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(real.to_owned(), seen);
        }
    }

    /// Whether the session last saw a text of the file that a client had and the disk did not.
    pub(super) fn is_unsaved(&self, real: &Path) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(real).is_some_and(|seen| seen.unsaved.is_some())
    }

    /// An error when the file changed since the session last saw it. A file it has not seen, or that is gone, may be written.
    pub fn check(&self, real: &Path, shown: &str, now: Seen) -> Result<(), ToolError> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(real).copied();
        match seen {
            Some(seen) if now.is_a_file() && seen != now => {
                Err(ToolError(format!("stale: {shown} changed since it was read; read it again")))
            }
            _ => Ok(()),
        }
    }

    /// Waits until nobody else writes the file.
    pub async fn lock(&self, real: &Path) -> OwnedMutexGuard<()> {
        self.locks.lock(real).await
    }
}

/// A lock for each file that is being written.
#[derive(Debug, Default)]
pub struct PathLocks {
    locks: Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>,
}

impl PathLocks {
    async fn lock(&self, real: &Path) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let lock = locks.get(real).and_then(Weak::upgrade).unwrap_or_default();
            locks.insert(real.to_owned(), Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }
}
