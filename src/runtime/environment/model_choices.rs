//! The models that a session can choose: models in the settings, in the lists of the configured
//! providers, and in the catalogue.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Ability, ModelPatterns, Settings};
use crate::model::ModelError;
use crate::model::catalog::{Index, ModelLimits, ModelProperties};
use crate::model::endpoint::Endpoint;
use crate::model::list_cache::CachedLists;
use crate::model::listing::ListedModel;
use crate::model::providers::{self, KnownProvider, PROVIDERS};
use crate::runtime::services::Services;
use crate::runtime::services::models::Models;

/// Maximum number of values of the session option `model`.
const MODEL_CHOICES_MAX: usize = 200;

/// The origin of a model's name: the list of its provider, the settings, or the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelSource {
    Provider,
    Settings,
    Catalog,
}

/// A model that a session can select.
#[derive(Clone, Debug)]
pub(crate) struct OfferedModel {
    /// `PROVIDER/NAME`, or `scripted:FILE`.
    pub id: String,
    pub source: ModelSource,
    pub display_name: Option<String>,
    /// The properties in the settings, else in the list of the provider, else in the catalogue.
    pub properties: ModelProperties,
}

/// The sources of the properties of models.
struct Sources<'a> {
    settings: &'a Settings,
    patterns: ModelPatterns<'a>,
    catalog: &'a Index,
    lists: CachedLists,
}

/// The selection of the models that a list contains.
struct ListSelection<'a> {
    /// These models are returned in any case.
    chosen: Vec<&'a str>,
    /// Only models that sessions select: at most [`MODEL_CHOICES_MAX`] of each provider.
    choices: bool,
}

impl OfferedModel {
    fn new(id: String, source: ModelSource, listed: Option<&ListedModel>, sources: &Sources<'_>) -> OfferedModel {
        let settings = sources.settings;
        let mut properties = sources.catalog.properties(&id);
        if let Some(listed) = listed {
            override_properties(&mut properties, listed);
        }
        let own = sources.patterns.settings(&id);
        let provider = settings.providers.get(split(&id).0);
        let set = ModelLimits {
            context_window: own.context_window.or(provider.and_then(|provider| provider.context_window)),
            max_output_tokens: own.max_output_tokens.or(provider.and_then(|provider| provider.max_output_tokens)),
            price: own.price,
        };
        properties.limits = set.or(properties.limits);
        properties.abilities = own.abilities.or(properties.abilities);
        if !own.thinking.is_empty() {
            properties.thinking = own.thinking.into_keys().collect();
        }
        let display_name = listed.and_then(|listed| listed.display_name.clone());
        OfferedModel { id, source, display_name, properties }
    }

    /// Returns the provider; empty for a scripted model.
    pub(crate) fn provider(&self) -> &str {
        split(&self.id).0
    }

    /// Returns the name without the provider.
    pub(crate) fn name(&self) -> &str {
        split(&self.id).1
    }

    fn lacks_tools(&self) -> bool {
        self.properties.abilities.as_ref().is_some_and(|abilities| !abilities.contains(&Ability::Tools))
    }
}

/// Replaces the properties that the list of the provider states.
fn override_properties(properties: &mut ModelProperties, listed: &ListedModel) {
    properties.limits = listed.limits.clone().or(std::mem::take(&mut properties.limits));
    for (ability, stated) in listed.abilities() {
        let Some(stated) = stated.filter(|stated| *stated || properties.abilities.is_some() || ability == Ability::Tools) else {
            continue;
        };
        // Assume that a model with unknown capabilities supports tools.
        let abilities = properties.abilities.get_or_insert_with(|| vec![Ability::Tools]);
        abilities.retain(|other| *other != ability);
        abilities.extend(stated.then_some(ability));
    }
    if listed.tools == Some(false) {
        properties.abilities = properties.abilities.take().map(|mut abilities| {
            abilities.retain(|ability| *ability != Ability::ParallelTools);
            abilities
        });
    }
    if listed.thinking == Some(false) {
        properties.thinking.clear();
    } else if properties.thinking.is_empty() {
        properties.thinking = listed.levels.clone();
    }
}

fn split(id: &str) -> (&str, &str) {
    if id.starts_with("scripted:") { ("", id) } else { id.split_once('/').unwrap_or(("", id)) }
}

impl Models {
    /// Returns the providers whose models are listed: those with a key, those with a base URL in
    /// the settings, and the provider of the default model. Built-in providers come first.
    pub(in crate::runtime) fn configured(&self, settings: &Settings) -> Vec<String> {
        let stored = self.keys.list();
        let default = self.known_default_in(settings, &stored).unwrap_or_default();
        let default = split(&default).0;
        // `--base-url` applies to every provider: the keys of others must not be sent there.
        let applies = |name: &str| self.base_url.is_none() || name == default;
        let has_key = |known: &KnownProvider| self.key_source_in(known.name, settings, &stored).is_some();
        let known = PROVIDERS.iter().filter(|known| match settings.providers.get(known.name) {
            Some(own) => known.local || own.base_url.is_some() || has_key(known) || known.name == default,
            None => !known.local && has_key(known) || known.name == default,
        });
        let own = settings.providers.iter().filter(|(name, own)| providers::provider(name).is_none() && own.base_url.is_some());
        let mut names: Vec<&str> = known.map(|known| known.name).chain(own.map(|(name, _)| name.as_str())).collect();
        if !default.is_empty() && !names.contains(&default) {
            names.push(default);
        }
        names.into_iter().filter(|name| applies(name)).map(String::from).collect()
    }

    /// Returns the configured base URL of a provider. A local server may listen at another address.
    pub(in crate::runtime) fn address(&self, provider: &str, settings: &Settings) -> Option<String> {
        let own = || settings.providers.get(provider).and_then(|own| own.base_url.clone());
        let known = || Some(providers::provider(provider)?.base_url(&|name: &str| self.variable(name)));
        self.base_url.clone().or_else(own).or_else(known)
    }

    /// Returns the endpoint for the list of a provider. Fails if a required key is missing.
    pub(crate) async fn list_endpoint(&self, provider: &str, settings: &Settings) -> Result<Endpoint, ModelError> {
        // The list does not depend on the name of a model.
        let id = format!("{provider}/-");
        let mut endpoint = self.endpoint(&id, settings).await?;
        let found = self.found.get().filter(|found| split(&found.id).0 == provider).map(|found| found.base_url.clone());
        if let Some(base_url) = found.or(self.local_address(&id, settings).await) {
            endpoint.base_url = base_url;
        }
        Ok(endpoint)
    }
}

impl Services {
    /// Returns whether a provider is configured.
    pub(crate) fn has_providers(&self, settings: &Settings) -> bool {
        !self.models.configured(settings).is_empty()
    }

    /// Returns the models of the configured providers, without sending a request: the models of the
    /// settings, and the cached list of each provider, or the models of the catalogue if there is
    /// none. `current` and the default model come first. `only` limits the list to these providers,
    /// unless it is empty.
    pub(crate) async fn offered_models(&self, settings: &Settings, current: &str, only: &[String]) -> Vec<OfferedModel> {
        self.offered(settings, current, only, false).await
    }

    async fn offered(&self, settings: &Settings, current: &str, only: &[String], choices: bool) -> Vec<OfferedModel> {
        let mut providers = if only.is_empty() { self.models.configured(settings) } else { only.to_vec() };
        if only.is_empty() {
            let others = settings.providers.iter().filter(|(_, own)| !own.models.is_empty()).map(|(name, _)| name);
            let others: Vec<String> = others.filter(|name| !providers.contains(name)).cloned().collect();
            providers.extend(others);
        }
        let lists = self.lists.cached().await;
        let sources = Sources { settings, patterns: ModelPatterns::new(&settings.models), catalog: self.models.catalog(), lists };
        let found = self.models.found.get().map(|found| found.id.as_str());
        let chosen = [found, settings.model.as_deref(), Some(current)].into_iter().flatten().filter(|id| !id.is_empty());
        let wanted = ListSelection { chosen: chosen.collect(), choices };
        let mut offered: Vec<OfferedModel> =
            providers.iter().flat_map(|provider| self.offered_by(provider, &sources, &wanted)).collect();
        for id in wanted.chosen {
            if !only.is_empty() && !only.iter().any(|provider| provider == split(id).0) {
                continue;
            }
            let model = match offered.iter().position(|model| model.id == id) {
                Some(position) => offered.remove(position),
                None => OfferedModel::new(id.to_owned(), ModelSource::Settings, None, &sources),
            };
            offered.insert(0, model);
        }
        offered
    }

    fn offered_by(&self, provider: &str, sources: &Sources<'_>, wanted: &ListSelection<'_>) -> Vec<OfferedModel> {
        let own = sources.settings.providers.get(provider).map_or(&[][..], |own| &own.models);
        let list = self.cached_list(&sources.lists, provider, sources.settings);
        let listed: HashMap<&str, &ListedModel> =
            list.iter().flat_map(|list| &list.models).map(|model| (model.name.as_str(), model)).collect();
        // Known models come first: they are the most useful ones, and many lists have no order.
        let known = providers::provider(provider).into_iter().flat_map(KnownProvider::models);
        let known: Vec<&str> = known.filter(|_| list.is_some() || own.is_empty()).collect();
        let known = known.iter().copied().filter(|name| list.is_none() || listed.contains_key(*name));
        let names = list.iter().flat_map(|list| &list.models).map(|model| model.name.as_str());
        let mut unique = HashSet::new();
        let names = own.iter().map(String::as_str).chain(known).chain(names).filter(|name| unique.insert(*name));
        let mut offered = Vec::new();
        for (index, name) in names.enumerate() {
            let source = match &list {
                _ if index < own.len() => ModelSource::Settings,
                Some(_) => ModelSource::Provider,
                None => ModelSource::Catalog,
            };
            let id = format!("{provider}/{name}");
            let needed = !wanted.choices || wanted.chosen.contains(&id.as_str());
            // The models in the settings replace the list.
            let replaced = source == ModelSource::Provider && !own.is_empty();
            if !needed && (replaced || offered.len() >= MODEL_CHOICES_MAX) {
                continue;
            }
            let model = OfferedModel::new(id, source, listed.get(name).copied(), sources);
            if needed || !model.lacks_tools() {
                offered.push(model);
            }
        }
        offered
    }

    /// Returns the models that a session can select: at most [`MODEL_CHOICES_MAX`], with `current`
    /// first. The models of a provider in the settings replace its list. Models without tools are
    /// omitted.
    pub(crate) async fn model_choices(&self, settings: &Settings, current: &str) -> Vec<OfferedModel> {
        let mut choices = self.offered(settings, current, &[], true).await;
        let mut counts: HashMap<String, usize> = HashMap::new();
        for model in &choices {
            *counts.entry(model.provider().to_owned()).or_default() += 1;
        }
        // A provider with many models must not displace the models of the others.
        let total = |each: usize| counts.values().map(|count| each.min(*count)).sum::<usize>();
        let each = (1..=MODEL_CHOICES_MAX).rev().find(|each| total(*each) <= MODEL_CHOICES_MAX).unwrap_or(1);
        let mut left: HashMap<String, usize> = counts.into_iter().map(|(provider, count)| (provider, each.min(count))).collect();
        choices.retain(|model| match left.get_mut(model.provider()) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        });
        choices
    }
}
