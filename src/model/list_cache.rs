//! The cache of the lists of models that providers offer: the file `models.json` in the data
//! directory. Several processes may read and write it at the same time: a write replaces the file
//! and keeps the lists of other providers.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::listing::ListedModel;
use crate::workspace::{create_private_dir, replace_private};

/// Maximum number of lists in the cache. The oldest lists are removed.
const MODEL_CACHE_LISTS_MAX: usize = 64;
/// Maximum size of the cache of lists of models, in bytes. The oldest lists are removed, and a
/// larger file is ignored.
const MODEL_CACHE_BYTES_MAX: usize = 4 << 20;
/// How long writing to the cache of lists of models waits for other processes.
const MODEL_CACHE_LOCKED: Duration = Duration::from_secs(2);
/// Interval between attempts to lock the cache of lists of models.
const MODEL_CACHE_LOCK_AGAIN: Duration = Duration::from_millis(20);

/// Version of the file's format. A file of another version is ignored.
const VERSION: u32 = 1;

/// The list of the models of one provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CachedList {
    pub provider: String,
    pub base_url: String,
    /// When the list was received, in milliseconds since the Unix epoch.
    pub fetched_ms: u64,
    pub models: Vec<ListedModel>,
}

#[derive(Serialize, Deserialize)]
struct Content<T> {
    version: u32,
    lists: T,
}

/// The cache in a data directory. The file is read when it is used, and again when it changes.
pub(crate) struct ListCache {
    file: PathBuf,
    read: Mutex<Option<(Stamp, CachedLists)>>,
}

/// The lists in the cache at one time.
#[derive(Clone, Default)]
pub(crate) struct CachedLists(Arc<[Arc<CachedList>]>);

impl CachedLists {
    pub(crate) fn list(&self, provider: &str, base_url: &str) -> Option<&CachedList> {
        self.0.iter().map(Arc::as_ref).find(|list| list.provider == provider && list.base_url == base_url)
    }
}

/// Differs between versions of a file.
type Stamp = (u64, u64, i64, i64);

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

impl ListCache {
    /// Creates the cache of this data directory without reading its file.
    pub(crate) fn new(data: &Path) -> ListCache {
        ListCache { file: data.join("models.json"), read: Mutex::default() }
    }

    /// Returns the cached lists if no file has to be read for them: the file is absent, or did not
    /// change since it was read.
    pub(crate) fn unchanged_lists(&self) -> Option<CachedLists> {
        match std::fs::metadata(&self.file) {
            Ok(metadata) => {
                let read = self.read.try_lock()?;
                read.as_ref().filter(|(before, _)| *before == stamp(&metadata)).map(|(_, lists)| lists.clone())
            }
            Err(error) => (error.kind() == io::ErrorKind::NotFound).then(CachedLists::default),
        }
    }

    /// Returns the cached lists; none if the file is absent or damaged. Blocks while the file is
    /// read.
    pub(crate) fn lists(&self) -> CachedLists {
        let mut read = self.read.lock();
        let Ok(mut file) = File::open(&self.file) else { return CachedLists::default() };
        let Some(metadata) = file.metadata().ok().filter(Metadata::is_file) else { return CachedLists::default() };
        let stamp = stamp(&metadata);
        if let Some((_, lists)) = read.as_ref().filter(|(before, _)| *before == stamp) {
            return lists.clone();
        }
        let lists = CachedLists(parse(&mut file).unwrap_or_default().into());
        *read = Some((stamp, lists.clone()));
        lists
    }

    /// Adds lists. Of several lists of a provider, the one that was received last remains; a time
    /// in the future is wrong. Blocks while another process writes, for [`MODEL_CACHE_LOCKED`] at
    /// most.
    pub(crate) fn store(&self, added: Vec<CachedList>, now_ms: fn() -> u64) -> io::Result<()> {
        if let Some(dir) = self.file.parent() {
            create_private_dir(dir).map_err(io::Error::other)?;
        }
        let lock = File::options().write(true).create(true).truncate(false).open(self.file.with_extension("lock"))?;
        wait_for(&lock)?;
        let mut lists = self.lists().0.to_vec();
        lists.extend(added.into_iter().map(Arc::new));
        let now = now_ms();
        let received = |list: &CachedList| if list.fetched_ms > now { 0 } else { list.fetched_ms };
        lists.sort_by_key(|list| Reverse(received(list)));
        let mut known = HashSet::new();
        lists.retain(|list| known.insert((list.provider.clone(), list.base_url.clone())));
        lists.truncate(MODEL_CACHE_LISTS_MAX);
        let mut text = serde_json::to_vec(&Content { version: VERSION, lists: &lists })?;
        while text.len() > MODEL_CACHE_BYTES_MAX && lists.pop().is_some() {
            text = serde_json::to_vec(&Content { version: VERSION, lists: &lists })?;
        }
        replace_private(&self.file, &text)
    }
}

/// Locks a file that another process may have locked.
fn wait_for(lock: &File) -> io::Result<()> {
    let deadline = Instant::now() + MODEL_CACHE_LOCKED;
    loop {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(MODEL_CACHE_LOCK_AGAIN),
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another process locks the file")),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => return Ok(()),
        }
    }
}

fn parse(file: &mut File) -> Option<Vec<Arc<CachedList>>> {
    let mut bytes = Vec::new();
    file.take(MODEL_CACHE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() > MODEL_CACHE_BYTES_MAX {
        return None;
    }
    let content: Content<Vec<Arc<CachedList>>> = serde_json::from_slice(&bytes).ok()?;
    (content.version == VERSION).then_some(content.lists)
}
