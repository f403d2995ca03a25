//! Records the file versions that a session has seen, so that the session does not overwrite
//! changes that it has not seen. Also holds the locks for files that are being written.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::output::ToolError;
use crate::workspace;

/// The whole content of a file that the model of a session has seen or written.
#[derive(Clone, Copy, Debug)]
pub struct KnownContent {
    /// When the model knew it, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// True if it is the content that [`FilesSeen`] has: the session has read no part since.
    pub is_last_seen: bool,
}

/// Finds what the model knows of a file; `None` if it does not know all of it.
pub(crate) type KnownFiles = Arc<dyn Fn(&Path) -> Option<KnownContent> + Send + Sync>;

/// Maximum number of bytes of a file that are compared. Larger files are not edited.
const COMPARED_BYTES_MAX: u64 = 64 << 20;

/// Identifies a state of a file on disk. The default value stands for a missing file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileState(Option<DiskState>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DiskState {
    /// Modification time in seconds and nanoseconds. Because file system clocks are coarse, the
    /// other fields are compared too.
    modified: (i64, i64),
    bytes: u64,
    inode: u64,
}

impl FileState {
    pub(crate) fn read(real: &Path) -> FileState {
        let state = |metadata: fs::Metadata| DiskState {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            bytes: metadata.len(),
            inode: metadata.ino(),
        };
        FileState(fs::metadata(real).ok().map(state))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ContentHash(u64);

impl ContentHash {
    pub(crate) fn new(content: &[u8]) -> ContentHash {
        let mut hasher = DefaultHasher::new();
        hasher.write(content);
        ContentHash(hasher.finish())
    }

    /// Returns the hash of a file on disk; `None` if there is no such file, or it cannot be read.
    pub(crate) fn read(real: &Path) -> Option<ContentHash> {
        let mut bytes = Vec::new();
        workspace::open(real).ok()?.take(COMPARED_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(ContentHash::new(&bytes))
    }
}

/// The version of a file that a session last saw.
#[derive(Debug)]
struct SeenVersion {
    content: ContentHash,
    /// True if it was a client's text with unsaved changes.
    is_unsaved: bool,
}

/// The files that a session has read or written, by real path.
#[derive(Debug, Default)]
pub struct FilesSeen {
    seen: Mutex<HashMap<PathBuf, SeenVersion>>,
    /// Contents that a refusal has shown, or refused as the new one of the file.
    refused: Mutex<HashSet<(PathBuf, ContentHash)>>,
    pub(super) locks: Arc<PathLocks>,
}

impl FilesSeen {
    /// Creates an empty record. `locks` are shared by all sessions.
    pub(crate) fn new(locks: Arc<PathLocks>) -> FilesSeen {
        FilesSeen { seen: Mutex::default(), refused: Mutex::default(), locks }
    }

    /// Records that the session has seen the file in its current state. `unsaved` is the client's
    /// text, if it has unsaved changes.
    pub fn note(&self, real: &Path, unsaved: Option<&str>) {
        let content = unsaved.map(|text| ContentHash::new(text.as_bytes())).or_else(|| ContentHash::read(real));
        if let Some(content) = content {
            self.seen.lock().insert(real.to_owned(), SeenVersion { content, is_unsaved: unsaved.is_some() });
        }
    }

    /// Returns whether the session has seen a version of the file since this process started.
    pub(super) fn has_seen(&self, real: &Path) -> bool {
        self.seen.lock().contains_key(real)
    }

    /// Records that a refusal has shown this content of a file, or refused it.
    pub(super) fn set_refused(&self, real: &Path, content: &[u8]) {
        self.refused.lock().insert((real.to_owned(), ContentHash::new(content)));
    }

    /// Returns whether a refusal has shown this content of a file, or refused it.
    pub(super) fn is_refused(&self, real: &Path, content: &[u8]) -> bool {
        self.refused.lock().contains(&(real.to_owned(), ContentHash::new(content)))
    }

    /// Returns whether the session last saw the file with unsaved changes in a client.
    pub(crate) fn is_unsaved(&self, real: &Path) -> bool {
        self.seen.lock().get(real).is_some_and(|seen| seen.is_unsaved)
    }

    /// Fails if the content differs from the one that the session last saw. A file that the session
    /// has not seen, or that no longer exists, may be written.
    pub(crate) fn check(&self, real: &Path, shown: &str, now: Option<ContentHash>) -> Result<(), ToolError> {
        let seen = self.seen.lock().get(real).map(|seen| seen.content);
        match (seen, now) {
            (Some(seen), Some(now)) if seen != now => {
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
