//! Address, protocol and credentials of a model as plain data, and its HTTP client.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::catalog::{self, CONTEXT_WINDOW, LOCAL_CONTEXT_WINDOW};
pub use super::credentials::{ApiKey, Credentials};
use super::error::{ModelError, Retry};
use super::media::Media;
use crate::config::mask_urls;
pub use crate::config::{Ability, CacheTtl, Effort, Protocol};
use crate::limits::MODEL_WAIT;
use crate::options::Thinking;
use crate::web::{ClientOptions, Destination, HttpClients, is_loopback};

/// Minimum length of a key that messages mask. Shorter values are not secret, and occur in ordinary
/// words: the key of a server on this machine is often `none` or `x`.
const MASKED_BYTES_MIN: usize = 8;
/// Parts of the names of parameters whose values are secret, also if the settings have the value.
const SECRET_NAMES: &[&str] = &["key", "token", "secret", "sig", "password"];

/// Everything that is needed to send requests to a model.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// `PROVIDER/NAME`, as in the settings.
    pub id: String,
    /// The model's name in requests.
    pub model: String,
    pub protocol: Protocol,
    /// Base URL without the path of the protocol: `https://api.openai.com/v1`.
    pub base_url: String,
    #[serde(skip)]
    pub credentials: Credentials,
    /// Context window in tokens.
    pub context_window: u64,
    /// The user has set the context window: a local server's own value does not replace it.
    pub window_is_setting: bool,
    /// The user has set whether the model can call tools.
    pub tools: Option<bool>,
    /// The model reads images; `None` if that is not known.
    pub images: Option<bool>,
    /// The documents and audio that the model reads, if the protocol can transfer them.
    pub media: Media,
    /// Maximum size of one answer that the user set, in tokens.
    pub max_output_tokens: Option<u32>,
    /// Maximum size of one answer that the model supports, in tokens.
    pub output_limit: Option<u32>,
    /// The thinking levels that the model accepts, in ascending order. Empty: unknown.
    pub thinking: Vec<Thinking>,
    /// Values of thinking levels that the user set; they precede `thinking`.
    pub efforts: BTreeMap<Thinking, Effort>,
    /// Additional headers of every request.
    pub headers: Vec<(String, String)>,
    /// Additional query parameters of every request.
    pub query: Vec<(String, String)>,
    /// Values of `headers` and `query` that are masked in messages.
    #[serde(skip)]
    pub secrets: Vec<String>,
    /// Additional fields of the body of every request.
    pub body: Map<String, Value>,
    /// How to connect.
    #[serde(skip)]
    pub connection: ClientOptions,
    /// The model may call several tools in one answer.
    pub parallel_tool_calls: bool,
    pub cache_ttl: CacheTtl,
    /// How long a request waits for an overloaded provider, or for a server that loads the model.
    #[serde(skip)]
    pub wait: Duration,
}

impl Endpoint {
    /// Creates an endpoint with the properties of the catalogue, and without credentials. `id` is
    /// `PROVIDER/NAME`.
    pub fn new(id: impl Into<String>, protocol: Protocol, base_url: impl Into<String>) -> Endpoint {
        let id = id.into();
        let (properties, base_url) = (catalog::properties(&id), base_url.into());
        // A server on this machine may have a variant of the model that reads images.
        let abilities = properties.abilities.as_ref().filter(|_| !is_loopback(&base_url));
        Endpoint {
            model: id.split_once('/').map_or(id.as_str(), |(_, name)| name).to_owned(),
            protocol,
            credentials: Credentials::None,
            context_window: properties.limits.context_window.unwrap_or(CONTEXT_WINDOW),
            window_is_setting: false,
            tools: None,
            images: abilities.map(|abilities| abilities.contains(&Ability::Images)),
            media: Media::new(properties.abilities.as_deref().unwrap_or_default()),
            max_output_tokens: None,
            output_limit: properties.limits.max_output_tokens,
            thinking: properties.thinking,
            efforts: BTreeMap::new(),
            headers: Vec::new(),
            query: Vec::new(),
            secrets: Vec::new(),
            body: Map::new(),
            connection: ClientOptions::default(),
            parallel_tool_calls: true,
            cache_ttl: CacheTtl::default(),
            wait: MODEL_WAIT,
            base_url,
            id,
        }
    }

    /// Returns the provider's value for a thinking level: the value of the level itself, else of
    /// the nearest lower level, else of the nearest higher level. Returns `None` if the model's
    /// levels are unknown, and for [`Thinking::Off`] if no value turns thinking off.
    pub(super) fn effort(&self, level: Thinking) -> Option<Effort> {
        let named = |level: &Thinking| {
            let name = if *level == Thinking::Off { "none" } else { level.as_str() };
            (*level, Effort::Name(name.to_owned()))
        };
        let efforts = match self.efforts.is_empty() {
            true => &self.thinking.iter().map(named).collect(),
            false => &self.efforts,
        };
        let lowest = if level == Thinking::Off { Thinking::Off } else { Thinking::Minimal };
        let lower = efforts.range(lowest..=level).next_back();
        let higher = || efforts.range(level..).next().filter(|_| level != Thinking::Off);
        lower.or_else(higher).map(|(_, effort)| effort.clone())
    }

    /// Returns the value of the lowest thinking level above [`Thinking::Off`], for models that
    /// always think.
    pub(super) fn lowest_effort(&self) -> Option<Effort> {
        self.effort(Thinking::Minimal)
    }

    pub(super) fn client(&self, clients: &HttpClients) -> Result<reqwest::Client, ModelError> {
        clients.client_with(destination(&self.base_url), &self.connection).map_err(|problem| {
            ModelError::new(Retry::Never, format!("creating the HTTP client: {problem}"))
                .hint(format!("check ca_file and proxy in [providers.{}]", self.provider()))
                .unreachable()
        })
    }

    /// Sets the context window to a value of the user, if there is one.
    pub(crate) fn set_context_window(&mut self, tokens: Option<u64>) {
        self.window_is_setting |= tokens.is_some();
        self.context_window = tokens.unwrap_or(self.context_window);
    }

    /// Returns the context window: the user's setting, else the value that a local server reported,
    /// else the default. The default for Ollama is at most [`LOCAL_CONTEXT_WINDOW`], because Ollama
    /// reserves memory for the whole window.
    pub(super) fn window(&self, reported: Option<u64>) -> u64 {
        let default = match self.protocol {
            Protocol::Ollama if !self.window_is_setting => self.context_window.min(LOCAL_CONTEXT_WINDOW),
            _ => self.context_window,
        };
        reported.filter(|_| !self.window_is_setting).unwrap_or(default)
    }

    /// Returns the name of the provider: the part of `id` before the slash.
    pub(crate) fn provider(&self) -> &str {
        self.id.split_once('/').map_or(self.id.as_str(), |(provider, _)| provider)
    }

    /// Returns whether this is the provider with this name or this host.
    pub(super) fn is_at(&self, provider: &str, host: &str) -> bool {
        self.provider() == provider || self.base_url.contains(host)
    }

    /// Returns whether this is a model of Google Vertex AI, whose URLs name the publisher of the
    /// model.
    pub(super) fn is_vertex(&self) -> bool {
        self.base_url.contains("/publishers/")
    }

    /// Joins `base_url` and `path` with a slash, and adds the query parameters of the settings.
    pub(super) fn url(&self, path: &str) -> String {
        self.with_query(format!("{}/{path}", self.base_url.trim_end_matches('/')))
    }

    /// Returns a URL like [`Endpoint::url`], for a path next to `/v1`.
    pub(super) fn native_url(&self, path: &str) -> String {
        self.with_query(format!("{}/{path}", self.base_url.trim_end_matches('/').trim_end_matches("/v1")))
    }

    fn with_query(&self, mut url: String) -> String {
        for (name, value) in &self.query {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.extend(utf8_percent_encode(name, NON_ALPHANUMERIC));
            url.push('=');
            url.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
        }
        url
    }

    /// Returns the endpoint without credentials. `mask` replaces the secrets of the settings.
    pub(super) fn without_secrets(&self, mask: &str) -> Endpoint {
        let masked = |(name, value): &(String, String)| {
            let is_secret = self.secrets.iter().any(|secret| !secret.is_empty() && value.contains(secret));
            let name_lower = name.to_ascii_lowercase();
            let is_secret = is_secret || SECRET_NAMES.iter().any(|part| name_lower.contains(part));
            (name.clone(), if is_secret { mask.to_owned() } else { value.clone() })
        };
        Endpoint {
            base_url: mask_urls(&self.base_url),
            headers: self.headers.iter().map(masked).collect(),
            query: self.query.iter().map(masked).collect(),
            credentials: Credentials::None,
            secrets: Vec::new(),
            connection: ClientOptions::default(),
            wait: Duration::ZERO,
            ..self.clone()
        }
    }

    /// Masks the credentials, also those in URLs, and the secrets of the settings in `text`.
    /// Must be applied to every message about a request.
    pub(super) fn masked(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        let secrets = self.secrets.iter().cloned().chain(self.credentials.secrets());
        for secret in secrets.filter(|secret| secret.len() >= MASKED_BYTES_MIN) {
            if text.contains(&secret) {
                text = text.replace(&secret, "[key]").into();
            }
        }
        mask_urls(&text)
    }
}

impl fmt::Debug for Endpoint {
    /// Omits the values of headers, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let base_url = mask_urls(&self.base_url);
        write!(f, "{} as {} at {base_url} with {:?} and {headers:?}", self.id, self.protocol.as_str(), self.credentials)
    }
}

/// Returns the HTTP client for `url`. The client for servers on this machine uses no proxy and has
/// a longer timeout.
pub fn client(clients: &HttpClients, url: &str) -> Result<reqwest::Client, ModelError> {
    clients.client(destination(url)).map_err(|error| ModelError::new(Retry::Never, format!("creating the HTTP client: {error}")))
}

fn destination(url: &str) -> Destination {
    if is_loopback(url) { Destination::LocalModel } else { Destination::ModelProvider }
}
