//! The list of the models that the configured providers offer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::config::{Ability, Price};
use crate::error::Result;
use crate::event::timestamp;
use crate::runtime::{ModelSource, OfferedModel, Refresh, RefreshedList};

/// Prices in US dollars per million tokens. `cacheRead` and `cacheWrite` default to `input`.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ModelPrice")]
pub(crate) struct PriceView {
    pub input: f64,
    pub output: f64,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    /// The prices of a request whose input is larger than `aboveTokens`.
    above: Option<Box<PriceView>>,
    above_tokens: Option<u64>,
}

impl PriceView {
    fn new(price: Price) -> PriceView {
        let above_tokens = price.above.as_ref().map(|above| above.tokens);
        let above = price.above.map(|above| PriceView {
            input: above.input,
            output: above.output,
            cache_read: above.cache_read,
            cache_write: above.cache_write,
            above: None,
            above_tokens: None,
        });
        let Price { input, output, cache_read, cache_write, above: _ } = price;
        PriceView { input, output, cache_read, cache_write, above: above.map(Box::new), above_tokens }
    }
}

/// A model. `id` is `PROVIDER/NAME`. A missing property is unknown.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Model")]
pub(crate) struct ModelView {
    pub id: String,
    pub name: String,
    /// Missing for a scripted model.
    pub provider: Option<String>,
    /// The provider's name of the model for people.
    pub display_name: Option<String>,
    /// Context window in tokens.
    pub context_window: Option<u64>,
    /// Maximum size of one answer, in tokens.
    pub max_output_tokens: Option<u32>,
    pub price: Option<PriceView>,
    /// Missing if they are unknown.
    pub abilities: Option<Vec<Ability>>,
    /// The thinking levels that the model distinguishes; empty if there are none or if they are
    /// unknown.
    pub thinking: Vec<String>,
    /// True for the model of a session that has none selected.
    pub is_default: bool,
    source: ModelSource,
}

/// The state of a provider's list.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ModelProvider")]
pub(crate) struct ProviderView {
    pub name: String,
    /// When the list was received; missing if the provider never returned one.
    pub updated_at: Option<String>,
    /// Why the provider did not return its list now.
    pub error: Option<String>,
    /// The remedy for the error.
    pub hint: Option<String>,
}

/// The usable models. `default` is the model of a session that has none selected; missing when no
/// model is usable.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ModelList {
    pub models: Vec<ModelView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The configured providers, in the order of `models`.
    pub providers: Vec<ProviderView>,
}

impl ModelList {
    /// Creates the list from the models that are offered, and the state of the providers' lists.
    pub(crate) fn new(models: Vec<OfferedModel>, lists: Vec<RefreshedList>, default: Option<String>) -> ModelList {
        let providers = lists.into_iter().map(|list| ProviderView {
            name: list.provider,
            updated_at: list.fetched_ms.map(timestamp),
            hint: list.error.as_ref().and_then(|error| error.hint.clone()),
            error: list.error.map(|error| error.message),
        });
        let models = models.into_iter().map(|model| model_view(model, default.as_deref())).collect();
        ModelList { models, providers: providers.collect(), default }
    }
}

fn model_view(model: OfferedModel, default: Option<&str>) -> ModelView {
    let (name, provider) = (model.name().to_owned(), Some(model.provider()).filter(|name| !name.is_empty()).map(String::from));
    let properties = model.properties;
    ModelView {
        is_default: default == Some(&model.id),
        id: model.id,
        name,
        provider,
        display_name: model.display_name,
        context_window: properties.limits.context_window,
        max_output_tokens: properties.limits.max_output_tokens,
        price: properties.limits.price.map(PriceView::new),
        abilities: properties.abilities,
        thinking: properties.thinking.iter().map(|level| level.as_str().to_owned()).collect(),
        source: model.source,
    }
}

/// Params of `_nuncio/model/list`.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListModelsParams {
    /// Request the lists of all providers before the answer, which requires the controller role.
    /// Otherwise the answer has the cached lists, and those that are out of date are requested
    /// after it.
    #[serde(default)]
    refresh: bool,
}

pub(crate) struct ListModels;

impl Method for ListModels {
    type Params = ListModelsParams;
    type Result = ModelList;
    const NAME: &'static str = "_nuncio/model/list";
    const ROUTES: &'static [Route] = &[Route::get("/v1/models")];
    const ROLE: ClientRole = ClientRole::Observer;
    const EXAMPLE: &'static str = r#"{"refresh": false}"#;
    const DOC: &'static str =
        "Lists the models of the settings, of providers with an API key, and of a local server, with their properties.";

    async fn call(cx: CallContext, params: ListModelsParams) -> Result<Reply<ModelList>> {
        let (services, settings) = (&cx.app.services, &cx.app.services.user.settings);
        if params.refresh {
            cx.client.require_role(ClientRole::Controller)?;
        }
        let default = services.models.default_id(settings).await.ok();
        let lists = match params.refresh {
            true => services.refresh_lists(settings, &[], Refresh::All).await,
            false => {
                services.refresh_lists_later(settings);
                services.cached_lists(settings).await
            }
        };
        let models = services.offered_models(settings, default.as_deref().unwrap_or_default(), &[]).await;
        Ok(Reply::new(ModelList::new(models, lists, default)))
    }
}
