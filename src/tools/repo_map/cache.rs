//! Cache of parsed source files, shared by all sessions of the process. A changed file is parsed
//! again.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::file::FileMap;
use super::languages::Grammars;

/// Maximum total size of the cached definitions of source files, over all sessions, in bytes.
const MAP_CACHE_BYTES_MAX: usize = 64 << 20;

/// Identifies a version of a file: modification time (seconds, nanoseconds), size in bytes, inode.
pub(crate) type FileVersion = (i64, i64, u64, u64);

/// Parsed files and compiled grammars. The cache checks no permissions: callers must not ask for
/// files that permission rules hide.
#[derive(Default)]
pub(crate) struct MapCache {
    pub(super) grammars: Grammars,
    files: Mutex<CachedFiles>,
}

#[derive(Default)]
struct CachedFiles {
    /// Maps the real path of a file to its version and its parsed form.
    maps: HashMap<PathBuf, (FileVersion, Arc<FileMap>)>,
    /// Approximate memory used by `maps`, in bytes.
    bytes: usize,
}

/// Returns the current version of a file.
pub(crate) fn stamp(metadata: &Metadata) -> FileVersion {
    (metadata.mtime(), metadata.mtime_nsec(), metadata.len(), metadata.ino())
}

impl MapCache {
    /// Returns the parsed file, if this version is cached. `real` is a path without symlinks.
    pub(super) fn get(&self, real: &Path, stamp: FileVersion) -> Option<Arc<FileMap>> {
        self.files.lock().maps.get(real).filter(|(cached, _)| *cached == stamp).map(|(_, file)| file.clone())
    }

    /// Stores a parsed file, replacing an older version.
    pub(super) fn put(&self, real: &Path, stamp: FileVersion, file: Arc<FileMap>) {
        let mut files = self.files.lock();
        files.bytes += file.bytes() + real.as_os_str().len();
        if let Some((_, old)) = files.maps.insert(real.to_owned(), (stamp, file)) {
            files.bytes -= old.bytes() + real.as_os_str().len();
        }
    }

    /// Removes all files that are not in `recent` if the cache exceeds
    /// `MAP_CACHE_BYTES_MAX`; if that is not enough, removes all files.
    pub(super) fn trim(&self, recent: &HashSet<&Path>) {
        let mut files = self.files.lock();
        if files.bytes <= MAP_CACHE_BYTES_MAX {
            return;
        }
        files.maps.retain(|path, _| recent.contains(path.as_path()));
        files.bytes = files.maps.iter().map(|(path, (_, file))| file.bytes() + path.as_os_str().len()).sum();
        if files.bytes > MAP_CACHE_BYTES_MAX {
            *files = CachedFiles::default();
        }
    }
}
