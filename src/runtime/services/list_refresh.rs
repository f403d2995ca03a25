//! Requests the lists of the models that the configured providers offer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::config::Settings;
use crate::model::ModelError;
use crate::model::list_cache::{CachedList, CachedLists};
use crate::model::listing;
use crate::runtime::services::Services;
use crate::session::clock::now_ms;
use crate::web::is_loopback;

/// How long a cached list of models is up to date.
const MODEL_LIST_FRESH: Duration = Duration::from_secs(24 * 3600);
/// How long a cached list of a server on this machine is up to date.
const MODEL_LIST_LOCAL_FRESH: Duration = Duration::from_secs(60);
/// How long after the creation of a session its process requests lists of models that are out of
/// date, so that the requests do not delay the first prompt.
const MODEL_LIST_DELAY: Duration = Duration::from_secs(3);

/// Which lists are requested from their providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refresh {
    /// The lists that are not in the cache or out of date.
    Stale,
    All,
}

/// The list of a provider after a refresh.
#[derive(Debug)]
pub(crate) struct RefreshedList {
    pub provider: String,
    /// When the cached list was received, in milliseconds since the Unix epoch.
    pub fetched_ms: Option<u64>,
    /// Why the provider did not return a list.
    pub error: Option<ModelError>,
}

/// Returns whether a list is up to date.
fn is_fresh(list: &CachedList) -> bool {
    let fresh = if is_loopback(&list.base_url) { MODEL_LIST_LOCAL_FRESH } else { MODEL_LIST_FRESH };
    // A time in the future means that the clock was wrong: the list counts as out of date.
    now_ms().checked_sub(list.fetched_ms).is_some_and(|age| Duration::from_millis(age) < fresh)
}

impl Services {
    /// Returns when the cached list of each configured provider was fetched, without a request.
    pub(crate) async fn cached_lists(&self, settings: &Settings) -> Vec<RefreshedList> {
        let cached = self.lists.cached().await;
        let list = |provider: String| {
            let cached = self.cached_list(&cached, &provider, settings);
            RefreshedList { provider, fetched_ms: cached.map(|list| list.fetched_ms), error: None }
        };
        self.models.configured(settings).into_iter().map(list).collect()
    }

    /// Returns the cached list of a configured provider.
    pub(in crate::runtime) fn cached_list<'a>(
        &self,
        cached: &'a CachedLists,
        provider: &str,
        settings: &Settings,
    ) -> Option<&'a CachedList> {
        cached.list(provider, &self.models.address(provider, settings)?)
    }

    /// Fetches the lists of these providers, or of all configured ones, and stores them in the
    /// cache.
    pub(crate) async fn refresh_lists(&self, settings: &Settings, providers: &[String], refresh: Refresh) -> Vec<RefreshedList> {
        let providers = if providers.is_empty() { self.models.configured(settings) } else { providers.to_vec() };
        let cached = self.lists.cached().await;
        let requests = providers.iter().map(|provider| {
            let fresh = |list: &&CachedList| refresh == Refresh::Stale && is_fresh(list);
            self.request_list(provider, settings, self.cached_list(&cached, provider, settings).filter(fresh))
        });
        let results = join_all(requests).await;
        let mut lists = Vec::new();
        let refreshed = providers.into_iter().zip(results).map(|(provider, result)| match result {
            Ok(ListResult::Cached(fetched_ms)) => RefreshedList { provider, fetched_ms, error: None },
            Ok(ListResult::Received(list)) => {
                let fetched_ms = Some(list.fetched_ms);
                lists.push(list);
                RefreshedList { provider, fetched_ms, error: None }
            }
            Err(error) => {
                let fetched_ms = self.cached_list(&cached, &provider, settings).map(|list| list.fetched_ms);
                RefreshedList { provider, fetched_ms, error: Some(error) }
            }
        });
        let refreshed = refreshed.collect();
        self.lists.store(lists).await;
        refreshed
    }

    /// Fetches the list of a provider, unless there is a `fresh` one.
    async fn request_list(
        &self,
        provider: &str,
        settings: &Settings,
        fresh: Option<&CachedList>,
    ) -> Result<ListResult, ModelError> {
        if !listing::has_list(provider) {
            return Ok(ListResult::Cached(None));
        }
        if let Some(list) = fresh {
            return Ok(ListResult::Cached(Some(list.fetched_ms)));
        }
        let endpoint = self.models.list_endpoint(provider, settings).await?;
        let models = listing::list(&endpoint, &self.models.clients).await?;
        let base_url = self.models.address(provider, settings).unwrap_or(endpoint.base_url);
        let list = CachedList { provider: provider.to_owned(), base_url, fetched_ms: now_ms(), models };
        Ok(ListResult::Received(list))
    }

    /// Starts a task that requests the lists that are out of date, after
    /// [`MODEL_LIST_DELAY`]. Skips providers whose key is printed by a command, because the
    /// command may ask the user for a password.
    pub(crate) fn refresh_lists_later(self: &Arc<Self>, settings: &Settings) {
        let (services, settings, stop) = (self.clone(), settings.clone(), self.lists.stop.clone());
        self.lists.tasks.spawn(async move {
            tokio::select! {
                () = services.refresh_silently(&settings) => {}
                () = stop.cancelled() => {}
            }
        });
    }

    async fn refresh_silently(&self, settings: &Settings) {
        let cached = self.lists.cached().await;
        let stale = |provider: &String| !self.cached_list(&cached, provider, settings).is_some_and(is_fresh);
        let silent = |provider: &String| settings.providers.get(provider).is_none_or(|own| own.api_key_command.is_none());
        let providers = self.models.configured(settings).into_iter();
        let due: Vec<String> = providers.filter(|one| silent(one) && stale(one) && self.lists.attempt(one)).collect();
        if due.is_empty() {
            return;
        }
        tokio::time::sleep(MODEL_LIST_DELAY).await;
        for RefreshedList { provider, error, .. } in self.refresh_lists(settings, &due, Refresh::Stale).await {
            if let Some(error) = error {
                tracing::debug!(%provider, error = error.message, "cannot refresh the list of models");
            }
        }
    }
}

/// The result of requesting a list.
enum ListResult {
    /// The list in the cache is up to date, or the provider has no list.
    Cached(Option<u64>),
    Received(CachedList),
}
