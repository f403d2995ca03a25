//! Retention of artifacts. They are removed [`limits::ARTIFACTS_KEPT`] after the last event of
//! their session. A closed session keeps only its newest artifacts, up to
//! [`limits::ARTIFACTS_BYTES_MAX`]. Empty directories are removed.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::clock::now_ms;
use super::shared_files::ARTIFACTS;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::limits;
use crate::store::Store;
use crate::toolkit::remove_orphans;

/// Time for which an empty artifacts directory is kept, because a running process may be about to
/// use it.
const ARTIFACTS_EMPTY_KEPT: Duration = Duration::from_secs(86_400);

/// Removes the artifacts of sessions without recent events, and of sessions that are not in the
/// store. Removes the files of deleted sessions from all `directories`. The first one is that of
/// artifacts; each has a directory for each session with such files. Blocks.
pub(super) async fn remove_old(store: &Store, directories: &[PathBuf]) {
    let before_ms = now_ms().saturating_sub(limits::ARTIFACTS_KEPT.as_millis() as u64);
    if let Err(error) = store.remove_old_files(ARTIFACTS, before_ms).await {
        return tracing::warn!(%error, "removing old artifacts failed");
    }
    for (index, directory) in directories.iter().enumerate() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            // Attachments and drafts do not get old.
            let before_ms = if index == 0 { before_ms } else { 0 };
            if let Err(error) = removed_if_old(store, &entry, before_ms).await {
                tracing::warn!(path = %entry.path().display(), %error, "removing old files failed");
                if error.kind == Kind::StoreUnavailable {
                    return;
                }
            }
        }
    }
}

async fn removed_if_old(store: &Store, entry: &DirEntry, before_ms: u64) -> Result<()> {
    let failed = |error| Error::io(format_args!("removing {}", entry.path().display()), error);
    let Some(id) = entry.file_name().to_str().map(SessionId::from) else { return Ok(()) };
    if !entry.file_type().map_err(failed)?.is_dir() {
        return Ok(());
    }
    let used_ms = match store.session(&id).await? {
        // Deleted.
        Some(row) if row.head == 0 => return fs::remove_dir_all(entry.path()).map_err(failed),
        Some(row) => row.updated_ms,
        None => modified(entry).as_millis() as u64,
    };
    if used_ms >= before_ms {
        if modified(entry) + ARTIFACTS_EMPTY_KEPT < Duration::from_millis(now_ms()) {
            // Fails unless the directory is empty.
            let _ = fs::remove_dir(entry.path());
        }
        return Ok(());
    }
    remove_orphans(&entry.path());
    for (file, ..) in files(&entry.path()) {
        fs::remove_file(file.path()).map_err(failed)?;
    }
    // Fails if running processes still have temporary directories here.
    let _ = fs::remove_dir(entry.path());
    tracing::info!(session = %id, "removed the artifacts of an unused session");
    Ok(())
}

/// Returns the time of the entry's last change since the Unix epoch, or the current time if the
/// last change is unknown.
fn modified(entry: &DirEntry) -> Duration {
    let modified = entry.metadata().and_then(|metadata| metadata.modified()).unwrap_or_else(|_| SystemTime::now());
    modified.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the files in a directory, oldest first, each with the time of its last change and its
/// size.
fn files(dir: &Path) -> Vec<(DirEntry, Duration, u64)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(|metadata| !metadata.is_dir())?;
            let modified = modified(&entry);
            Some((entry, modified, metadata.len()))
        })
        .collect();
    files.sort_by_key(|(_, modified, _)| *modified);
    files
}

/// Removes the oldest artifacts in `dir` until the rest fits in
/// [`limits::ARTIFACTS_BYTES_MAX`], and the directory if it is empty. Returns the removed names.
/// Blocks.
pub(super) fn trim(dir: &Path) -> Vec<String> {
    let files = files(dir);
    let mut total: u64 = files.iter().map(|(_, _, size)| size).sum();
    let mut removed = Vec::new();
    for (file, _, size) in files {
        if total <= limits::ARTIFACTS_BYTES_MAX {
            break;
        }
        if fs::remove_file(file.path()).is_ok() {
            removed.push(file.file_name().to_string_lossy().into_owned());
        }
        total -= size;
    }
    // Fails unless the directory is empty.
    let _ = fs::remove_dir(dir);
    removed
}
