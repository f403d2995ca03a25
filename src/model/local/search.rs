//! The search for a local server. A server is used only if its answers identify it.

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use serde::Deserialize;
use serde_json::Value;

use super::api::LocalApi;
use crate::config::has_credentials;
use crate::limits::MODEL_PROBE;
use crate::model::endpoint::{ApiKey, client};
use crate::model::providers::{KnownProvider, Mark};
use crate::web::HttpClients;

/// A discovered local server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// `PROVIDER/NAME` of its first model.
    pub id: String,
    pub base_url: String,
}

/// An address where a server of `provider` may listen.
#[derive(Clone)]
pub struct Candidate {
    pub provider: &'static KnownProvider,
    pub base_url: String,
    pub key: Option<ApiKey>,
}

/// Response of `GET /v1/models`.
#[derive(Deserialize)]
struct ModelList {
    object: String,
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
    object: String,
    owned_by: Option<String>,
}

/// Returns whether this name in a list of models cannot answer: it is a model for embeddings, or
/// KoboldCpp has loaded no model.
fn is_unusable(name: &str) -> bool {
    name.contains("embed") || name == "inactive" || name == "koboldcpp/inactive"
}

/// Queries all candidates concurrently, for [`MODEL_PROBE`] at most. Returns the first candidate
/// that identifies itself and has a model.
pub async fn probe(clients: &HttpClients, candidates: Vec<Candidate>) -> Option<LocalServer> {
    let (candidate, model) = first(clients, candidates).await?;
    Some(LocalServer { id: format!("{}/{model}", candidate.provider.name), base_url: candidate.base_url })
}

/// Returns the base URL of the first candidate that identifies itself.
pub async fn locate(clients: &HttpClients, candidates: Vec<Candidate>) -> Option<String> {
    first(clients, candidates).await.map(|(candidate, _)| candidate.base_url)
}

async fn first(clients: &HttpClients, candidates: Vec<Candidate>) -> Option<(Candidate, String)> {
    // Create the HTTP client before the timeout starts: loading certificates may take longer than
    // the requests.
    client(clients, "http://127.0.0.1").ok()?;
    let answers: FuturesOrdered<_> = candidates
        .into_iter()
        .map(|candidate| async move {
            let Candidate { provider, base_url, key } = &candidate;
            let identified = identify(clients, provider, base_url, key.clone());
            let model = tokio::time::timeout(MODEL_PROBE, identified).await.ok()??;
            Some((candidate, model))
        })
        .collect();
    let found = answers.filter_map(|found| async { found });
    std::pin::pin!(found).next().await
}

/// Returns the first model of the server at `base_url` that can answer. Returns `None` unless the
/// server's list of models has the expected structure and the server has the mark of `provider`.
pub async fn identify(clients: &HttpClients, provider: &KnownProvider, base_url: &str, key: Option<ApiKey>) -> Option<String> {
    if has_credentials(base_url) {
        return None;
    }
    let server = LocalApi::new(clients, base_url);
    let native = async {
        let Mark::Answer { path, pointer, contains } = provider.mark else { return true };
        let answer: Option<Value> = LocalApi::new(clients, base_url).get(path, &[]).await.ok().flatten();
        answer.is_some_and(|answer| answer.pointer(pointer).and_then(Value::as_str).is_some_and(|text| text.contains(contains)))
    };
    let (list, native) = tokio::join!(server.get::<ModelList>("/v1/models", &[]), native);
    let list = match (list.ok()?, &key) {
        // The server may require the key.
        (None, Some(key)) => server.bearer(&key.secret).get("/v1/models", &[]).await.ok().flatten(),
        (list, _) => list,
    };
    let list = list.filter(|_| native)?;
    if list.object != "list" || list.data.iter().any(|entry| entry.object != "model") {
        return None;
    }
    if let Mark::Owner(owner) = provider.mark
        && list.data.iter().any(|entry| entry.owned_by.as_deref() != Some(owner))
    {
        return None;
    }
    list.data.into_iter().map(|entry| entry.id).find(|name| !is_unusable(name))
}
