//! The size and the fingerprint of a directory.

use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ring::digest::{Context, SHA256};

/// Maximum number of files and directories of a git worktree that are counted.
const WORKTREE_ENTRIES_MAX: usize = 2_000_000;

/// The size of a directory, and a digest of the names, sizes and modification times of all entries
/// below it.
pub(super) struct DirectorySize {
    /// Space on the disk, in bytes.
    pub bytes: u64,
    /// Number of files and directories.
    pub entries: u64,
    pub digest: Vec<u8>,
}

/// Measures a directory. Symlinks are not followed. At most [`WORKTREE_ENTRIES_MAX`]
/// entries are counted.
pub(super) fn measure(directory: &Path) -> DirectorySize {
    let (mut size, mut all) = (DirectorySize { bytes: 0, entries: 0, digest: Vec::new() }, Context::new(&SHA256));
    let mut stack = vec![directory.to_owned()];
    while let Some(directory) = stack.pop() {
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let entries = entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
        let mut entries: Vec<(_, Metadata)> = entries.take(WORKTREE_ENTRIES_MAX - size.entries as usize).collect();
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        for (path, metadata) in entries {
            size.entries += 1;
            size.bytes += metadata.blocks() * 512;
            all.update(path.as_os_str().as_bytes());
            // The separator cannot be part of a path.
            all.update(&[0]);
            if metadata.is_dir() {
                stack.push(path);
                continue;
            }
            for number in [metadata.size() as i64, metadata.mtime(), metadata.mtime_nsec(), metadata.mode().into()] {
                all.update(&number.to_le_bytes());
            }
        }
    }
    size.digest = all.finish().as_ref().into();
    size
}
