//! Bounded requests to a local server.

use reqwest::header::HeaderValue;
use reqwest::{RequestBuilder, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::model::authorize::key_header;
use crate::model::endpoint::{Endpoint, client};
use crate::model::limited_body::{self, MissingPart};
use crate::web::HttpClients;

/// Maximum size of the response that identifies a local model server, in bytes.
const MODEL_PROBE_BYTES_MAX: usize = 1 << 20;

/// The address of a local server and the headers of its requests.
pub(super) struct LocalApi<'a> {
    client: Option<reqwest::Client>,
    /// The address without `/v1`.
    root: &'a str,
    key: Option<(&'static str, HeaderValue)>,
    headers: &'a [(String, String)],
}

/// The server cannot answer now: it does not run, or it loads a model.
#[derive(Debug)]
pub(super) struct Unavailable;

impl<'a> LocalApi<'a> {
    /// Creates the API client for a server, without a key.
    pub(super) fn new(clients: &'a HttpClients, base_url: &'a str) -> Self {
        let root = base_url.trim_end_matches('/').trim_end_matches("/v1");
        LocalApi { client: client(clients, base_url).ok(), root, key: None, headers: &[] }
    }

    /// Creates the API client for an endpoint's server, with the endpoint's key and headers.
    pub(super) fn from_endpoint(clients: &'a HttpClients, endpoint: &'a Endpoint) -> Self {
        let key = key_header(endpoint).unwrap_or_default();
        let client = endpoint.client(clients).ok();
        LocalApi { client, key, headers: &endpoint.headers, ..LocalApi::new(clients, &endpoint.base_url) }
    }

    /// Sets the key.
    pub(super) fn bearer(self, key: &str) -> Self {
        let value = HeaderValue::from_str(&format!("Bearer {key}")).ok();
        LocalApi { key: value.map(|value| ("authorization", value)), ..self }
    }

    /// Sends `GET {root}{path}?{query}`. Returns `None` for any answer but JSON of the expected
    /// structure.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<Option<T>, Unavailable> {
        let Ok(mut url) = Url::parse(&format!("{}{path}", self.root)) else { return Ok(None) };
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let Some(client) = &self.client else { return Ok(None) };
        self.read(client.get(url)).await
    }

    /// Sends `POST {root}{path}` with a JSON body, and reads the answer like [`LocalApi::get`].
    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<Option<T>, Unavailable> {
        let Some(client) = &self.client else { return Ok(None) };
        let request = client.post(format!("{}{path}", self.root)).header("content-type", "application/json");
        self.read(request.body(body.to_string())).await
    }

    /// Reads an answer of at most [`MODEL_PROBE_BYTES_MAX`].
    async fn read<T: DeserializeOwned>(&self, mut request: RequestBuilder) -> Result<Option<T>, Unavailable> {
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        if let Some((name, value)) = &self.key {
            request = request.header(*name, value);
        }
        let response = request.send().await.map_err(|_| Unavailable)?;
        if response.status().is_server_error() {
            return Err(Unavailable);
        }
        let Ok(response) = response.error_for_status() else { return Ok(None) };
        let body = limited_body::read(response, MODEL_PROBE_BYTES_MAX).await;
        match body.incomplete {
            Some(MissingPart::Failed(_)) => Err(Unavailable),
            Some(MissingPart::TooLarge) => Ok(None),
            None => Ok(serde_json::from_slice(&body.bytes).ok()),
        }
    }
}
