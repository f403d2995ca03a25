//! Creates and removes placeholders, under locks that tell whether a running command needs them.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::files::{ControlFiles, is_absent};

/// Longest wait for another process that removes placeholders.
const GIT_LOCK: Duration = Duration::from_secs(1);
/// Pause between two attempts to lock a git directory.
const GIT_LOCK_RETRY: Duration = Duration::from_millis(1);
/// Directory of the locks, in nuncio's data directory.
const LOCKS: &str = "git-locks";

impl ControlFiles {
    /// Returns locks on the git directories: no process removes placeholders while they are open.
    /// Fails if a lock in nuncio's `data` directory is not free within [`GIT_LOCK`]. The lock on
    /// the git directory itself, which other programs can hold, is only tried.
    pub(super) fn lock(&self, data: Option<&Path>) -> Result<Vec<File>, String> {
        let mut locks = Vec::new();
        for git_dir in &self.git_dirs {
            if let Some(data) = data {
                let locked =
                    lock_file(data, git_dir).and_then(|file| locked(file, FlockOperation::NonBlockingLockShared, GIT_LOCK));
                locks.push(locked.ok_or_else(|| format!("the lock for {} is not free", git_dir.display()))?);
            }
            let own = File::open(git_dir).ok();
            locks.extend(own.and_then(|file| locked(file, FlockOperation::NonBlockingLockShared, Duration::ZERO)));
        }
        Ok(locks)
    }

    /// Creates the files that must exist to be mounted. If this fails for a file, its mount fails.
    pub(super) fn create_placeholders(&self) {
        for file in self.files.iter().filter(|file| is_absent(&file.path)) {
            file.placeholder.create(&file.path);
        }
    }

    /// Removes the placeholders that no running command needs. Must be called outside of the mount
    /// namespaces of commands.
    pub(super) fn remove_placeholders(&self, data: Option<&Path>) {
        let exclusive = |file| locked(file, FlockOperation::NonBlockingLockExclusive, Duration::ZERO);
        for git_dir in &self.git_dirs {
            let own = File::open(git_dir).ok().and_then(exclusive);
            let shared = data.map(|data| lock_file(data, git_dir).and_then(exclusive));
            if own.is_some() && shared.as_ref().is_none_or(Option::is_some) {
                self.files
                    .iter()
                    .filter(|file| file.path.parent() == Some(git_dir))
                    .for_each(|file| file.placeholder.remove(&file.path));
            }
        }
        let is_named = |path: &Path| self.git_dirs.iter().any(|git_dir| path.parent() == Some(git_dir));
        self.files.iter().filter(|file| !is_named(&file.path)).for_each(|file| file.placeholder.remove(&file.path));
    }
}

/// Opens the lock of a git directory in nuncio's data directory.
fn lock_file(data: &Path, git_dir: &Path) -> Option<File> {
    let locks = data.join(LOCKS);
    let mut hasher = DefaultHasher::new();
    git_dir.hash(&mut hasher);
    let path: PathBuf = locks.join(format!("{:016x}", hasher.finish()));
    let open = || File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    open().or_else(|_| fs::DirBuilder::new().recursive(true).mode(0o700).create(&locks).and_then(|()| open())).ok()
}

fn locked(file: File, operation: FlockOperation, wait: Duration) -> Option<File> {
    let until = Instant::now() + wait;
    loop {
        match flock(&file, operation) {
            Ok(()) => return Some(file),
            Err(_) if Instant::now() < until => std::thread::sleep(GIT_LOCK_RETRY),
            Err(_) => return None,
        }
    }
}
