//! Resolves `PROVIDER/NAME` to a model: combines the settings with the provider catalog and reads
//! the API key.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use super::stored_keys::{KeyPlaces, StoredKeys};
use crate::config::{
    Ability, CREDENTIALS_HINT, Effort, Environment, ModelSettings, Protocol, Provider, SecretText, Settings, has_credentials,
    model_settings,
};
use crate::limits;
use crate::model::catalog::Index;
use crate::model::cloud::{CloudAccess, CloudRequest, SharedAccount};
use crate::model::endpoint::{ApiKey, Endpoint};
use crate::model::local::{self, Candidate, LocalServer, LocalServers};
use crate::model::providers::{self, KnownProvider};
use crate::model::scripted::{self, Script};
use crate::model::wire_formats::wire_format;
use crate::model::{self, ImageConverter, Media, Model, ModelError, ModelProvider, Retry};
use crate::process::ProcessLauncher;
use crate::session::shared_files::SESSION_DIRECTORIES;
use crate::web::{ClientOptions, HttpClients};
use crate::workspace::{self, real_path};

/// Names the file to which debug builds write the requests to scripted models, for tests.
#[cfg(debug_assertions)]
const WRITTEN_REQUESTS_VARIABLE: &str = "NUNCIO_TEST_REQUESTS";

/// Opens models by id, with the keys and base URLs from the environment and the settings.
pub struct Models {
    pub(in crate::runtime) environment: Environment,
    /// `--base-url`: overrides the base URL of every provider.
    pub(in crate::runtime) base_url: Option<String>,
    pub(super) launcher: ProcessLauncher,
    /// Keys that `nuncio login` stored.
    pub(crate) keys: StoredKeys,
    /// Base directory of relative script paths.
    pub(crate) cwd: PathBuf,
    /// The HTTP clients of the process.
    pub clients: HttpClients,
    /// The Google account of Vertex AI.
    account: SharedAccount,
    /// Properties of models that local servers reported.
    servers: LocalServers,
    /// The local model server, after it was detected.
    pub(in crate::runtime) found: tokio::sync::OnceCell<LocalServer>,
    /// The index of the catalogue, created at its first use.
    catalog: OnceLock<Index>,
    /// Directories with files that other processes and nodes write for sessions.
    session_files: [PathBuf; 4],
    /// Providers of the embedder, by name.
    registered: Mutex<BTreeMap<String, Arc<dyn ModelProvider>>>,
}

/// A parsed model id with its provider: `own` from the settings, `known` from the catalog.
struct ParsedId<'a> {
    provider: &'a str,
    name: &'a str,
    own: Option<&'a Provider>,
    known: Option<&'static KnownProvider>,
}

fn permanent(message: impl Into<String>) -> ModelError {
    ModelError::new(Retry::Never, message)
}

impl Models {
    /// Creates the collection without opening a model. `base_url` overrides the base URL of every
    /// provider; `cwd` is the base directory of relative script paths; `data` has the stored keys.
    pub(crate) fn new(
        environment: Environment,
        base_url: Option<String>,
        launcher: ProcessLauncher,
        cwd: PathBuf,
        data: &Path,
    ) -> Models {
        let (clients, servers, found) =
            (HttpClients::new(|name| environment.get(name)), LocalServers::default(), tokio::sync::OnceCell::new());
        Models {
            keys: StoredKeys::new(data, launcher.clone(), &environment),
            environment,
            base_url,
            launcher,
            cwd,
            clients,
            account: SharedAccount::default(),
            servers,
            found,
            catalog: OnceLock::new(),
            session_files: SESSION_DIRECTORIES.map(|name| data.join(name)),
            registered: Mutex::default(),
        }
    }

    /// Stores model properties from errors of servers in this directory, for later processes.
    pub(in crate::runtime) fn keep_in(&self, data: &Path) {
        self.servers.keep_in(data);
    }

    /// Registers a provider, which takes precedence over the settings and the catalogue.
    pub(crate) fn register(&self, name: String, provider: Arc<dyn ModelProvider>) {
        self.registered.lock().insert(name, provider);
    }

    pub(in crate::runtime) fn registered(&self, id: &str) -> Option<Arc<dyn ModelProvider>> {
        let (provider, _) = id.split_once('/')?;
        self.registered.lock().get(provider).cloned()
    }

    /// Returns the index of the catalogue. The first call creates it.
    pub(in crate::runtime) fn catalog(&self) -> &Index {
        self.catalog.get_or_init(Index::new)
    }

    pub(in crate::runtime) fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).map(String::from)
    }

    /// Returns the id of the default model: from the settings, else from the first provider with a
    /// key, else from a local server.
    pub(crate) async fn default_id(&self, settings: &Settings) -> Result<String, ModelError> {
        if let Some(model) = self.known_default(settings) {
            return Ok(model);
        }
        let probe = async || {
            let (mut candidates, stored) = (Vec::new(), self.keys.list());
            for provider in providers::PROVIDERS.iter().filter(|provider| provider.local) {
                candidates.extend(self.candidates(provider, settings, &stored).await);
            }
            local::probe(&self.clients, candidates).await.ok_or_else(providers::nothing)
        };
        self.found.get_or_try_init(probe).await.map(|found| found.id.clone())
    }

    /// Returns the addresses where a local server may listen: `--base-url`, else the address in the
    /// settings, else the usual addresses of the provider. A server at `--base-url` may belong to
    /// any provider, so it receives no provider's key.
    async fn candidates(&self, provider: &'static KnownProvider, settings: &Settings, stored: &KeyPlaces) -> Vec<Candidate> {
        let variable = |name: &str| self.variable(name);
        let own = settings.providers.get(provider.name);
        let set = self.base_url.clone().or_else(|| own?.base_url.clone());
        let own_key = || {
            let name = own?.api_key_env.as_ref()?;
            Some(ApiKey::new(self.variable(name)?, name))
        };
        let key = match own_key().or_else(|| provider.key(&variable)) {
            None => self.stored_key(provider.name, stored).await.ok().flatten(),
            key => key,
        };
        let key = key.filter(|_| self.base_url.is_none());
        let base_urls = set.map_or_else(|| provider.base_urls(&variable), |url| vec![url]);
        base_urls.into_iter().map(|base_url| Candidate { provider, base_url, key: key.clone() }).collect()
    }

    /// Returns the id of the default model, or `None` if only a request to a local server could
    /// determine it.
    pub(crate) fn known_default(&self, settings: &Settings) -> Option<String> {
        settings.model.clone().or_else(|| self.known_default_in(settings, &self.keys.list()))
    }

    /// Returns the id of the default model, as [`Models::known_default`] does. `stored` has the
    /// stored keys.
    pub(in crate::runtime) fn known_default_in(&self, settings: &Settings, stored: &KeyPlaces) -> Option<String> {
        let keyed = || providers::default_model(|provider| self.has_variable(provider) || stored.contains_key(provider.name));
        settings.model.clone().or_else(keyed).or_else(|| self.found.get().map(|found| found.id.clone()))
    }

    /// Returns the base URL of the detected local server, if `id` is its model.
    pub(crate) fn found_at(&self, id: &str) -> Option<&str> {
        self.found.get().filter(|found| found.id == id).map(|found| found.base_url.as_str())
    }

    /// Checks that the provider of `id` is in the catalog or in the settings.
    pub(crate) fn check(&self, id: &str, settings: &Settings) -> Result<(), ModelError> {
        if id.starts_with("scripted:") || self.registered(id).is_some() { Ok(()) } else { self.split(id, settings).map(drop) }
    }

    fn split<'a>(&self, id: &'a str, settings: &'a Settings) -> Result<ParsedId<'a>, ModelError> {
        let Some((provider, name)) = id.split_once('/').filter(|(provider, name)| !provider.is_empty() && !name.is_empty()) else {
            let example = "e.g. anthropic/claude-sonnet-5 or ollama/qwen3";
            return Err(permanent(format!("model {id}: expected the form PROVIDER/NAME")).hint(example));
        };
        let (own, known) = (settings.providers.get(provider), providers::provider(provider));
        if own.is_none() && known.is_none() && self.base_url.is_none() {
            let names = provider_names(settings).join(", ");
            let hint = format!("known providers: {names}; for another one, set base_url in [providers.{provider}]");
            return Err(permanent(format!("model {id}: provider {provider} is unknown")).hint(hint));
        }
        let address = known.and_then(|known| known.base_env).filter(|name| self.environment.get(name).is_some_and(has_credentials));
        if let Some(variable) = address {
            let key = known.and_then(|known| known.key_env.first()).unwrap_or(&"api_key_env");
            return Err(permanent(format!("{variable} contains a user name or password"))
                .hint(format!("remove them from the URL and set {key} instead")));
        }
        if self.base_url.as_deref().is_some_and(has_credentials) {
            return Err(permanent("--base-url contains a user name or password").hint(CREDENTIALS_HINT));
        }
        Ok(ParsedId { provider, name, own, known })
    }

    /// Opens a model. A scripted model starts at its first step.
    pub(crate) async fn open(&self, id: &str, settings: &Settings) -> Result<Arc<dyn Model>, ModelError> {
        let last = model_settings(&settings.models, id).fallback.is_none_or(|ids| ids.is_empty());
        self.open_fallback(id, settings, last).await
    }

    /// Opens a model. Unless it is the last model that can answer a request, it waits only briefly
    /// for an overloaded provider.
    pub(crate) async fn open_fallback(&self, id: &str, settings: &Settings, last: bool) -> Result<Arc<dyn Model>, ModelError> {
        if let Some(file) = id.strip_prefix("scripted:") {
            let path = self.cwd.join(file);
            let text = self.read_script(&path).map_err(|error| permanent(format!("reading script {}: {error}", path.display())))?;
            let script =
                Script::parse(&text).map_err(|error| permanent(format!("reading script {}: {}", path.display(), error.message)))?;
            #[cfg(debug_assertions)]
            if let Some(file) = self.variable(WRITTEN_REQUESTS_VARIABLE) {
                return Ok(scripted::open_written(id, script, file.into()));
            }
            return Ok(scripted::open(id, script));
        }
        if let Some(provider) = self.registered(id) {
            return provider.open(id);
        }
        let mut endpoint = self.endpoint(id, settings).await?;
        if !last {
            endpoint.wait = endpoint.wait.min(limits::MODEL_FALLBACK_WAIT);
        }
        if let Some(base_url) = self.local_address(id, settings).await {
            endpoint.base_url = base_url;
        }
        Ok(model::open(endpoint, &self.clients, &self.servers, self.image_converter()))
    }

    /// Returns a converter that reads images in processes of their own.
    pub(crate) fn image_converter(&self) -> ImageConverter {
        let launcher = self.launcher.clone();
        ImageConverter::new(move |image| {
            let launcher = launcher.clone();
            Box::pin(async move { launcher.shrink_image(&image).await })
        })
    }

    /// Reads a regular file of at most [`limits::SCRIPT_BYTES_MAX`]; other file types are errors.
    /// Never blocks, even on a FIFO. A file of a session is an error: its content is data.
    fn read_script(&self, path: &Path) -> io::Result<String> {
        let real = path.canonicalize()?;
        if self.session_files.iter().any(|directory| real.starts_with(real_path(directory))) {
            return Err(io::Error::other("a file of a session is no script"));
        }
        let mut text = String::new();
        workspace::open(&real)?.take(limits::SCRIPT_BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > limits::SCRIPT_BYTES_MAX {
            return Err(io::Error::other(format!("file is larger than {} MiB", limits::SCRIPT_BYTES_MAX >> 20)));
        }
        Ok(text)
    }

    /// Finds the address of a local server with several possible addresses.
    pub(in crate::runtime) async fn local_address(&self, id: &str, settings: &Settings) -> Option<String> {
        if let Some(base_url) = self.found_at(id) {
            return Some(base_url.to_owned());
        }
        let known = self.split(id, settings).ok()?.known.filter(|known| known.local)?;
        let candidates = self.candidates(known, settings, &self.keys.list()).await;
        if candidates.len() > 1 { local::locate(&self.clients, candidates).await } else { None }
    }

    pub(in crate::runtime) async fn endpoint(&self, id: &str, settings: &Settings) -> Result<Endpoint, ModelError> {
        let ParsedId { provider, name, own, known } = self.split(id, settings)?;
        let own = own.cloned().unwrap_or_default();
        let variable = |name: &str| self.variable(name);
        let key = self.key(provider, &own, known).await?;
        let base_url = self.base_url.clone().or(own.base_url.clone());
        let cloud = known.and_then(|provider| {
            let base_url = base_url.as_deref();
            CloudRequest { provider, model: name, base_url, key: key.clone(), account: &self.account }.access(&variable)
        });
        let mut endpoint = match (cloud.transpose()?, known) {
            (Some(CloudAccess { base_url, protocol, credentials }), _) => {
                Endpoint { credentials, ..Endpoint::new(id, protocol, base_url) }
            }
            (None, Some(known)) => {
                // A server at a configured base URL may require no key.
                let is_open = key.is_some() || base_url.is_some() || own.api_key_env.is_some();
                let endpoint = match known.endpoint(name, &variable) {
                    Err(_) if is_open => Endpoint::new(id, known.protocol, known.base_url(&variable)),
                    endpoint => endpoint?,
                };
                Endpoint { credentials: key.into(), base_url: base_url.unwrap_or(endpoint.base_url), ..endpoint }
            }
            (None, None) => {
                let base_url =
                    base_url.ok_or_else(|| permanent(format!("model {id}: providers.{provider}.base_url is not set")))?;
                Endpoint { credentials: key.into(), ..Endpoint::new(id, Protocol::OpenaiChat, base_url) }
            }
        };
        endpoint.wait = Duration::from_secs(settings.retry.wait_s);
        apply_provider(&mut endpoint, own, &variable)?;
        apply_model(&mut endpoint, model_settings(&settings.models, id))?;
        Ok(endpoint)
    }
}

/// Returns the names of the providers: the built-in ones, then those of the settings.
pub(crate) fn provider_names(settings: &Settings) -> Vec<&str> {
    let known = || providers::PROVIDERS.iter().map(|known| known.name);
    let own = settings.providers.keys().map(String::as_str).filter(|name| !known().any(|known| known == *name));
    known().chain(own).collect()
}

fn apply_provider(endpoint: &mut Endpoint, own: Provider, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), ModelError> {
    let value = |kind: &str, name: &str, text: SecretText| match text.variable() {
        None => Ok(text.plain().to_owned()),
        Some(variable_name) => variable(variable_name).ok_or_else(|| {
            permanent(format!("model {}: the {kind} {name} needs the environment variable {variable_name}", endpoint.id))
                .hint(format!("set {variable_name}"))
                .unreachable()
        }),
    };
    let mut secrets = Vec::new();
    let (mut headers, mut query) = (Vec::new(), Vec::new());
    for (name, text) in own.headers {
        let value = value("header", &name, text)?;
        secrets.push(value.clone());
        headers.push((name, value));
    }
    for (name, text) in own.query {
        let is_secret = text.variable().is_some();
        let value = value("query parameter", &name, text)?;
        secrets.extend(is_secret.then(|| value.clone()));
        query.push((name, value));
    }
    (endpoint.headers, endpoint.query, endpoint.secrets) = (headers, query, secrets);
    let seconds = |seconds: Option<u64>| seconds.map(Duration::from_secs);
    endpoint.connection = ClientOptions {
        ca_file: own.ca_file,
        proxy: own.proxy,
        connect_timeout: seconds(own.connect_timeout_s),
        idle_timeout: seconds(own.idle_timeout_s),
    };
    endpoint.protocol = own.protocol.unwrap_or(endpoint.protocol);
    endpoint.set_context_window(own.context_window);
    endpoint.max_output_tokens = own.max_output_tokens;
    endpoint.parallel_tool_calls = own.parallel_tool_calls.unwrap_or(endpoint.parallel_tool_calls);
    endpoint.cache_ttl = own.cache_ttl.unwrap_or(endpoint.cache_ttl);
    Ok(())
}

/// Applies the settings of the model, which take precedence over the settings of its provider.
fn apply_model(endpoint: &mut Endpoint, own: ModelSettings) -> Result<(), ModelError> {
    endpoint.set_context_window(own.context_window);
    endpoint.max_output_tokens = own.max_output_tokens.or(endpoint.max_output_tokens);
    endpoint.parallel_tool_calls = own.parallel_tool_calls.unwrap_or(endpoint.parallel_tool_calls);
    endpoint.cache_ttl = own.cache_ttl.unwrap_or(endpoint.cache_ttl);
    let (format, protocol) = (wire_format(endpoint.protocol), endpoint.protocol.as_str());
    if !format.has_thinking_budget && own.thinking.values().any(|effort| matches!(effort, Effort::Tokens(_))) {
        return Err(permanent(format!(
            "model {}: a thinking level with a number of tokens is not supported by {protocol}",
            endpoint.id
        ))
        .hint("set the name of an effort in [models], such as high = \"high\""));
    }
    if let Some(abilities) = &own.abilities {
        endpoint.media = Media::new(abilities);
        endpoint.images = Some(abilities.contains(&Ability::Images));
    }
    endpoint.tools = own.abilities.map(|abilities| abilities.contains(&Ability::Tools));
    endpoint.efforts = own.thinking;
    endpoint.body = own.body.into_iter().map(|(name, value)| (name, json(value))).collect();
    if let Some(tier) = own.service_tier {
        if !format.has_service_tier {
            return Err(permanent(format!("model {}: service_tier is not supported by {protocol}", endpoint.id))
                .hint("use body in [models] for fields of the provider"));
        }
        endpoint.body.insert("service_tier".to_owned(), tier.into());
    }
    Ok(())
}

/// Converts a value of a settings file.
fn json(value: toml::Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
