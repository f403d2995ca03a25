//! Where a model is reached and how it is spoken to, as plain data; [`open`] makes a [`Model`] of it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::http::Provider;
use super::retry::Retrying;
use super::{Again, Model, ModelError};
pub use crate::config::Protocol;
use crate::config::mask_urls;
use crate::limits::{MODEL_CONNECT, MODEL_IDLE, MODEL_KEEP_ALIVE, MODEL_LOCAL_IDLE};
use crate::web;

/// A secret and where it came from. Never shown, logged or serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    secret: String,
    origin: String,
}

impl Key {
    /// `origin` is what a person would change: the name of an environment variable or of a setting.
    pub fn new(secret: impl Into<String>, origin: impl Into<String>) -> Self {
        Self { secret: secret.into().trim().to_owned(), origin: origin.into() }
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(from {})", self.origin)
    }
}

#[derive(Clone, PartialEq)]
pub struct Endpoint {
    /// `PROVIDER/NAME`, as settings name the model.
    pub id: String,
    /// The model's name on the wire.
    pub model: String,
    pub protocol: Protocol,
    /// Without the protocol's own path: `https://api.openai.com/v1`.
    pub base_url: String,
    pub key: Option<Key>,
    /// Tokens.
    pub context_window: u64,
    /// Tokens of one answer. None leaves it to the provider, or where the protocol wants a number, to the catalog.
    pub max_output_tokens: Option<u32>,
    /// Sent with every request, beside the protocol's own.
    pub headers: Vec<(String, String)>,
}

impl Endpoint {
    /// The part of the id before the slash.
    pub fn provider(&self) -> &str {
        self.id.split_once('/').map_or(self.id.as_str(), |(provider, _)| provider)
    }

    /// `base_url` and `path`, a slash between them.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.base_url.trim_end_matches('/'))
    }

    /// Masks the key and credentials of URLs in `text`. All messages about a request pass it.
    pub(super) fn masked(&self, text: &str) -> String {
        match self.key.as_ref().map(Key::secret).filter(|secret| !secret.is_empty()) {
            Some(secret) => mask_urls(&text.replace(secret, "[key]")),
            None => mask_urls(text),
        }
    }

    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        is_loopback(&self.base_url)
    }
}

impl fmt::Debug for Endpoint {
    /// Without the values of headers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let base_url = mask_urls(&self.base_url);
        write!(f, "{} as {} at {base_url} with {:?} and {headers:?}", self.id, self.protocol.as_str(), self.key)
    }
}

/// A model that is ready to be asked and that asks again by itself where that helps.
pub fn open(endpoint: Endpoint, http: &Http) -> Arc<dyn Model> {
    Arc::new(Retrying::new(Provider::new(endpoint, http.clone())))
}

/// The HTTP clients of the process: made when they are first needed (about 2 ms each), shared by all clones.
#[derive(Clone, Default)]
pub struct Http(Arc<Clients>);

#[derive(Default)]
struct Clients {
    remote: OnceLock<reqwest::Client>,
    local: OnceLock<reqwest::Client>,
}

impl Http {
    pub fn new() -> Self {
        Self::default()
    }

    /// The client for `url`: on loopback one that knows no proxies and waits longer.
    pub fn client(&self, url: &str) -> Result<reqwest::Client, ModelError> {
        let (slot, builder): (_, fn() -> reqwest::ClientBuilder) = match is_loopback(url) {
            true => (&self.0.local, || builder().no_proxy().read_timeout(MODEL_LOCAL_IDLE)),
            false => (&self.0.remote, || builder().read_timeout(MODEL_IDLE)),
        };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = web::client(builder).map_err(|error| ModelError::new(Again::Never, format!("preparing for HTTP: {error}")))?;
        Ok(slot.get_or_init(|| client).clone())
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("nuncio/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(MODEL_CONNECT)
        .pool_idle_timeout(MODEL_KEEP_ALIVE)
}

/// Whether the URL's host is this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || address.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}
