//! The cached lists of the models that providers offer, and the tasks that refresh them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::model::list_cache::{CachedList, CachedLists, ListCache};
use crate::session::clock::now_ms;
use crate::task::TaskTracker;

/// How long a process waits before it requests a provider's list of models again in the background.
const MODEL_LIST_AGAIN: Duration = Duration::from_secs(3600);

/// The cache of the lists, and the tasks that refresh it.
pub(crate) struct ModelLists {
    cache: Arc<ListCache>,
    /// When a task last requested the list of a provider.
    attempts: Mutex<HashMap<String, Instant>>,
    pub(in crate::runtime) tasks: TaskTracker,
    pub(in crate::runtime) stop: CancellationToken,
}

impl ModelLists {
    /// Creates the lists of this data directory, without reading the cache.
    pub(in crate::runtime) fn new(data: &Path) -> ModelLists {
        ModelLists {
            cache: Arc::new(ListCache::new(data)),
            attempts: Mutex::default(),
            tasks: TaskTracker::default(),
            stop: CancellationToken::new(),
        }
    }

    /// Returns the cached lists. They may be out of date.
    pub(in crate::runtime) async fn cached(&self) -> CachedLists {
        if let Some(lists) = self.cache.unchanged_lists() {
            return lists;
        }
        let cache = self.cache.clone();
        tokio::task::spawn_blocking(move || cache.lists()).await.unwrap_or_default()
    }

    /// Returns whether a task should request the list of a provider now.
    pub(in crate::runtime) fn attempt(&self, provider: &str) -> bool {
        let mut attempts = self.attempts.lock();
        let now = Instant::now();
        let due = attempts.get(provider).is_none_or(|before| now - *before >= MODEL_LIST_AGAIN);
        if due {
            attempts.insert(provider.to_owned(), now);
        }
        due
    }

    /// Adds lists to the cache. A failure is logged: the lists are requested again later.
    pub(in crate::runtime) async fn store(&self, lists: Vec<CachedList>) {
        if lists.is_empty() {
            return;
        }
        let cache = self.cache.clone();
        match tokio::task::spawn_blocking(move || cache.store(lists, now_ms)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot store the lists of models"),
            Err(_) => tracing::warn!("storing the lists of models panicked"),
        }
    }

    /// Ends the tasks and waits for them.
    pub(crate) async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
