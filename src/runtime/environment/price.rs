//! The price of a model.

use crate::config::{CacheTtl, Price, PriceAbove, Settings, model_settings};
use crate::model::{catalog, providers};
use crate::runtime::services::Services;

impl Services {
    /// Returns the price of the model `id` in the settings, else in the list of its provider, else
    /// in the catalogue. Models of local servers and scripts have only a price in the settings.
    pub(crate) async fn price(&self, id: &str, settings: &Settings) -> Option<Price> {
        let own = model_settings(&settings.models, id);
        if own.price.is_some() {
            return own.price;
        }
        let (provider, name) = id.split_once('/').filter(|_| !id.starts_with("scripted:"))?;
        if providers::provider(provider).is_some_and(|known| known.local) {
            return None;
        }
        let lists = self.lists.cached().await;
        let listed = self.cached_list(&lists, provider, settings).and_then(|list| {
            let model = list.models.iter().find(|model| model.name == name)?;
            model.limits.price.clone()
        });
        let known = || {
            let ttl = own.cache_ttl.or(settings.providers.get(provider).and_then(|provider| provider.cache_ttl));
            let price = self.models.catalog().properties(id).limits.price?;
            let hour = ttl == Some(CacheTtl::OneHour) && catalog::bare_name(id).contains("claude");
            Some(if hour { with_hour(price) } else { price })
        };
        listed.or_else(known)
    }
}

/// Returns the price of requests whose cache is kept for an hour: writing to it costs twice the
/// input. The catalogue has the price of a cache that is kept for 5 minutes.
fn with_hour(price: Price) -> Price {
    let above = price.above.map(|above| PriceAbove { cache_write: Some(2.0 * above.input), ..above });
    Price { cache_write: Some(2.0 * price.input), above, ..price }
}
