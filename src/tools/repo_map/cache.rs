//! What is known of source files, for all sessions of the process: a file is read again only when it changed.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::file::FileMap;
use super::languages::Grammars;
use crate::limits;

/// Modified (seconds, nanoseconds), bytes, inode.
pub type Stamp = (i64, i64, u64, u64);

/// Who may see a file is decided by whoever asks; here it is only known.
#[derive(Default)]
pub struct MapCache {
    pub grammars: Grammars,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    /// By real path.
    known: HashMap<PathBuf, (Stamp, Arc<FileMap>)>,
    bytes: usize,
}

pub fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.mtime(), metadata.mtime_nsec(), metadata.len(), metadata.ino())
}

impl MapCache {
    pub fn get(&self, real: &Path, stamp: Stamp) -> Option<Arc<FileMap>> {
        self.files().known.get(real).filter(|(known, _)| *known == stamp).map(|(_, file)| file.clone())
    }

    pub fn put(&self, real: &Path, stamp: Stamp, file: Arc<FileMap>) {
        let mut files = self.files();
        files.bytes += file.bytes() + real.as_os_str().len();
        if let Some((_, old)) = files.known.insert(real.to_owned(), (stamp, file)) {
            files.bytes -= old.bytes() + real.as_os_str().len();
        }
    }

    /// Forgets, when it is too much, first what is not among `recent`, then everything.
    pub fn trim(&self, recent: &HashSet<&Path>) {
        let mut files = self.files();
        if files.bytes <= limits::MAP_CACHE_BYTES_MAX {
            return;
        }
        files.known.retain(|path, _| recent.contains(path.as_path()));
        files.bytes = files.known.iter().map(|(path, (_, file))| file.bytes() + path.as_os_str().len()).sum();
        if files.bytes > limits::MAP_CACHE_BYTES_MAX {
            *files = Files::default();
        }
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
