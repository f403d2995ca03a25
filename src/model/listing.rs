//! The models that a provider offers: requests the provider's list, page by page.

use std::time::Duration;

mod read;

use serde_json::Value;

use super::authorize::authorize;
use super::connect_error::send_error;
use super::endpoint::{Endpoint, Protocol};
use super::error::{ModelError, Retry};
use super::limited_body::{self, MissingPart};
use super::provider_error::response_error;
use super::wire_formats::wire_format;
use crate::limits::MODEL_ERROR_BYTES_MAX;
use crate::similar_names;
use crate::web::{HttpClients, causes};
pub(crate) use read::ListedModel;

/// How long an error about a model's name waits for the names that the provider offers.
const MODEL_NAMES: Duration = Duration::from_secs(2);
/// How long a provider may take to list its models.
const MODEL_LIST: Duration = Duration::from_secs(10);
/// Maximum size of one page of a provider's list of models, in bytes.
const MODEL_LIST_BYTES_MAX: usize = 8 << 20;
/// Maximum number of pages of a provider's list of models.
const MODEL_LIST_PAGES_MAX: usize = 20;
/// Maximum number of models of a provider. Further models are left out.
const MODEL_LIST_MODELS_MAX: usize = 2_000;
/// Maximum number of names in the hint of an error about a model's name.
const MODEL_NAMES_SHOWN_MAX: usize = 3;

/// Lists with more properties than `/models`: the provider, and the path that replaces the end of
/// the base URL.
const NATIVE_LISTS: &[(&str, &str, &str)] =
    &[("ollama", "/v1", "/api/tags"), ("lmstudio", "/v1", "/api/v0/models"), ("github", "/inference", "/catalog/models")];

/// Providers without a list of the models that an account can use: their models are those of the
/// catalogue and of the settings.
const UNLISTED: &[&str] = &["azure", "bedrock", "vertex"];

/// Returns whether a provider lists its models.
pub(crate) fn has_list(provider: &str) -> bool {
    !UNLISTED.contains(&provider)
}

/// Fetches the list of chat models that the endpoint's provider offers, for [`MODEL_LIST`] at most.
/// The model of the endpoint is not used.
pub(crate) async fn list(endpoint: &Endpoint, clients: &HttpClients) -> Result<Vec<ListedModel>, ModelError> {
    let listed = match tokio::time::timeout(MODEL_LIST, request(endpoint, clients)).await {
        Ok(listed) => listed,
        Err(_) => Err(ModelError::new(Retry::Never, format!("no list of models within {} s", MODEL_LIST.as_secs())).unreachable()),
    };
    listed.map_err(|error| {
        let message = endpoint.masked(&format!("{}: {}", endpoint.provider(), error.message));
        ModelError { message, hint: error.hint.map(|hint| endpoint.masked(&hint)), ..error }
    })
}

/// Returns the names that are most similar to the endpoint's model, or none if the provider does
/// not list its models within [`MODEL_NAMES`].
pub(crate) async fn similar(endpoint: &Endpoint, clients: &HttpClients) -> Vec<String> {
    let listed = tokio::time::timeout(MODEL_NAMES, request(endpoint, clients)).await;
    let mut names: Vec<String> = listed.ok().and_then(Result::ok).into_iter().flatten().map(|model| model.name).collect();
    let similarity = |name: &str| similar_names::similarity(name, &endpoint.model);
    names.sort_by(|one, other| similarity(other).total_cmp(&similarity(one)));
    names.truncate(MODEL_NAMES_SHOWN_MAX);
    names
}

async fn request(endpoint: &Endpoint, clients: &HttpClients) -> Result<Vec<ListedModel>, ModelError> {
    let provider = if endpoint.protocol == Protocol::Ollama { "ollama" } else { endpoint.provider() };
    if let Some((_, end, path)) = NATIVE_LISTS.iter().find(|(name, ..)| *name == provider) {
        let root = endpoint.base_url.trim_end_matches('/').trim_end_matches(end);
        // Another server at this address may lack the native list.
        if let Ok(list) = get(endpoint, clients, &format!("{root}{path}")).await {
            return Ok(read::models(&list));
        }
    }
    let mut models = Vec::new();
    let mut url = (wire_format(endpoint.protocol).list)(endpoint);
    for _ in 0..MODEL_LIST_PAGES_MAX {
        let list = get(endpoint, clients, &url).await?;
        models.extend(read::models(&list));
        let Some(next) = next_page(endpoint, &list).filter(|_| models.len() < MODEL_LIST_MODELS_MAX) else { break };
        url = next;
    }
    models.truncate(MODEL_LIST_MODELS_MAX);
    Ok(models)
}

/// Returns the URL of the page after `list`: from `has_more` and `last_id` (Anthropic), or from
/// `nextPageToken` (Google). Returns `None` for the last page.
fn next_page(endpoint: &Endpoint, list: &Value) -> Option<String> {
    let (name, cursor) = match endpoint.protocol {
        Protocol::Gemini => ("pageToken", list["nextPageToken"].as_str()?),
        _ if list["has_more"] == true => ("after_id", list["last_id"].as_str()?),
        _ => return None,
    };
    let cursor = percent_encoding::utf8_percent_encode(cursor, percent_encoding::NON_ALPHANUMERIC);
    let url = (wire_format(endpoint.protocol).list)(endpoint);
    let separator = if url.contains('?') { '&' } else { '?' };
    Some(format!("{url}{separator}{name}={cursor}")).filter(|_| !cursor.to_string().is_empty())
}

/// Reads a JSON response of at most [`MODEL_LIST_BYTES_MAX`].
async fn get(endpoint: &Endpoint, clients: &HttpClients, url: &str) -> Result<Value, ModelError> {
    let client = endpoint.client(clients)?;
    let mut get = client.get(url);
    for (name, value) in &endpoint.headers {
        get = get.header(name, value);
    }
    if endpoint.protocol == Protocol::Anthropic {
        get = get.header("anthropic-version", "2023-06-01");
    }
    let mut request = get.build().map_err(|error| send_error(url, &error))?;
    authorize(endpoint, clients, &mut request).await?;
    let response = client.execute(request).await.map_err(|error| send_error(url, &error))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes_max = if status.is_success() { MODEL_LIST_BYTES_MAX } else { MODEL_ERROR_BYTES_MAX };
    let body = limited_body::read(response, bytes_max).await;
    if !status.is_success() {
        return Err(response_error(endpoint, status.as_u16(), &headers, &String::from_utf8_lossy(&body.bytes)));
    }
    if let Some(MissingPart::Failed(error)) = &body.incomplete {
        return Err(ModelError::new(Retry::Never, format!("reading the list: {}", causes(error))));
    }
    let list = serde_json::from_slice(&body.bytes).ok().filter(read::is_list);
    list.ok_or_else(|| ModelError::new(Retry::Never, format!("{url} does not return a list of models")).hint("check base_url"))
}
