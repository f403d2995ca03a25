//! The built-in providers. The environment is read only through a closure.

use super::catalog::{self, LOCAL_CONTEXT_WINDOW};
use super::endpoint::{ApiKey, Endpoint, Protocol};
use super::error::{ModelError, Retry};
use super::variables::{Variables, set};

/// A built-in provider.
pub struct KnownProvider {
    pub name: &'static str,
    pub protocol: Protocol,
    pub base_url: &'static str,
    /// Environment variables for the API key. The first variable that is set applies.
    pub key_env: &'static [&'static str],
    /// Other base URLs of a local server: its default port differs between versions.
    pub other_base_urls: &'static [&'static str],
    /// Environment variable that overrides the base URLs.
    pub base_env: Option<&'static str>,
    /// Name of the model without a setting. Empty for local servers, which list their own.
    pub default_model: &'static str,
    /// Runs on this machine and needs no key.
    pub local: bool,
    /// How a local server of this provider is recognized.
    pub mark: Mark,
}

/// How a local server identifies itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    None,
    /// The value of `owned_by` of each model in the server's list.
    Owner(&'static str),
    /// A path next to `/v1` returns an object with a string at `pointer` (RFC 6901) that contains
    /// `contains`.
    Answer {
        path: &'static str,
        pointer: &'static str,
        contains: &'static str,
    },
}

const fn remote(
    name: &'static str,
    protocol: Protocol,
    base_url: &'static str,
    key_env: &'static [&'static str],
    base_env: &'static str,
    default_model: &'static str,
) -> KnownProvider {
    let (base_env, other_base_urls) = (Some(base_env), &[] as _);
    KnownProvider { name, protocol, base_url, other_base_urls, key_env, base_env, default_model, local: false, mark: Mark::None }
}

const fn local(
    name: &'static str,
    base_url: &'static str,
    other_base_urls: &'static [&'static str],
    key_env: &'static [&'static str],
    base_env: Option<&'static str>,
    mark: Mark,
) -> KnownProvider {
    let protocol = Protocol::OpenaiChat;
    KnownProvider { name, protocol, base_url, other_base_urls, key_env, base_env, default_model: "", local: true, mark }
}

/// All built-in providers, in the order in which they are searched for a default model.
#[rustfmt::skip]
pub(crate) const PROVIDERS: &[KnownProvider] = &[
    remote("anthropic", Protocol::Anthropic, "https://api.anthropic.com", &["ANTHROPIC_API_KEY"], "ANTHROPIC_BASE_URL", "claude-sonnet-5-5"),
    remote("openai", Protocol::OpenaiResponses, "https://api.openai.com/v1", &["OPENAI_API_KEY"], "OPENAI_BASE_URL", "gpt-6.1-sol"),
    remote("gemini", Protocol::Gemini, "https://generativelanguage.googleapis.com/v1beta", &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        "GEMINI_BASE_URL", "gemini-3.8-flash"),
    remote("openrouter", Protocol::OpenaiChat, "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"], "OPENROUTER_BASE_URL",
        "anthropic/claude-sonnet-5.5"),
    remote("groq", Protocol::OpenaiChat, "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], "GROQ_BASE_URL", "openai/gpt-oss-120b"),
    remote("mistral", Protocol::OpenaiChat, "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], "MISTRAL_BASE_URL", "mistral-medium-latest"),
    remote("deepseek", Protocol::OpenaiChat, "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], "DEEPSEEK_BASE_URL", "deepseek-v4-pro"),
    remote("xai", Protocol::OpenaiChat, "https://api.x.ai/v1", &["XAI_API_KEY"], "XAI_BASE_URL", "grok-4.7"),
    remote("cerebras", Protocol::OpenaiChat, "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"], "CEREBRAS_BASE_URL", "gpt-oss-120b"),
    remote("together", Protocol::OpenaiChat, "https://api.together.xyz/v1", &["TOGETHER_API_KEY"], "TOGETHER_BASE_URL", "openai/gpt-oss-120b"),
    remote("fireworks", Protocol::OpenaiChat, "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"], "FIREWORKS_BASE_URL",
        "accounts/fireworks/models/kimi-k3"),
    remote("zai", Protocol::OpenaiChat, "https://api.z.ai/api/paas/v4", &["ZAI_API_KEY"], "ZAI_BASE_URL", "glm-5.3"),
    remote("moonshot", Protocol::OpenaiChat, "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"], "MOONSHOT_BASE_URL", "kimi-k3"),
    remote("minimax", Protocol::OpenaiChat, "https://api.minimax.io/v1", &["MINIMAX_API_KEY"], "MINIMAX_BASE_URL", "MiniMax-M3"),
    remote("github", Protocol::OpenaiChat, "https://models.github.ai/inference", &["GITHUB_MODELS_TOKEN"], "GITHUB_MODELS_BASE_URL",
        "openai/gpt-4.1"),
    remote("bedrock", Protocol::Bedrock, "https://bedrock-runtime.{region}.amazonaws.com", &["AWS_BEARER_TOKEN_BEDROCK"],
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "global.anthropic.claude-sonnet-5-5"),
    remote("vertex", Protocol::Gemini, "https://{location}-aiplatform.googleapis.com", &[], "GOOGLE_VERTEX_BASE_URL", "gemini-3.8-flash"),
    remote("azure", Protocol::OpenaiResponses, "https://{resource}.openai.azure.com/openai/v1", &["AZURE_OPENAI_API_KEY"],
        "AZURE_OPENAI_ENDPOINT", ""),
    KnownProvider { protocol: Protocol::Ollama, ..local("ollama", "http://127.0.0.1:11434/v1", &[], &["OLLAMA_API_KEY"], Some("OLLAMA_HOST"),
        Mark::Answer { path: "/api/version", pointer: "/version", contains: "" }) },
    local("lmstudio", "http://127.0.0.1:1234/v1", &[], &["LM_API_TOKEN"], None, Mark::Owner("organization_owner")),
    local("llamacpp", "http://127.0.0.1:8080/v1", &["http://127.0.0.1:9931/v1"], &["LLAMA_API_KEY"], None, Mark::Owner("llamacpp")),
    local("vllm", "http://127.0.0.1:8000/v1", &[], &["VLLM_API_KEY"], None, Mark::Owner("vllm")),
    local("koboldcpp", "http://127.0.0.1:5001/v1", &[], &[], None, Mark::Owner("koboldcpp")),
    local("jan", "http://127.0.0.1:1337/v1", &[], &["JAN_API_KEY"], None,
        Mark::Answer { path: "/openapi.json", pointer: "/info/title", contains: "Jan" }),
];

/// Returns the built-in provider of this name.
pub fn provider(name: &str) -> Option<&'static KnownProvider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

impl KnownProvider {
    /// Returns the API key from the first environment variable that is set.
    pub(crate) fn key(&self, environment: Variables<'_>) -> Option<ApiKey> {
        self.key_env.iter().find_map(|name| set(environment, name).map(|secret| ApiKey::new(secret, *name)))
    }

    /// Returns the base URL: the value of the overriding environment variable if it is set, else
    /// the default.
    pub fn base_url(&self, environment: Variables<'_>) -> String {
        match self.base_env.and_then(|name| set(environment, name)) {
            None => self.base_url.to_owned(),
            Some(host) if self.local => local_url(&host, self.base_url),
            Some(url) => url,
        }
    }

    /// Returns all base URLs: several only for a local server whose base URL is not overridden.
    pub fn base_urls(&self, environment: Variables<'_>) -> Vec<String> {
        let first = self.base_url(environment);
        let others = self.other_base_urls.iter().filter(|_| first == self.base_url).map(|url| (*url).to_owned());
        [first.clone()].into_iter().chain(others).collect()
    }

    /// Creates the endpoint of a model of this provider. Fails with an unreachable error if a
    /// required key is missing.
    pub fn endpoint(&self, model: &str, environment: Variables<'_>) -> Result<Endpoint, ModelError> {
        let (key, base_url) = (self.key(environment), self.base_url(environment));
        if key.is_none() && !self.local && base_url == self.base_url {
            return Err(self.without_key());
        }
        let mut endpoint = Endpoint::new(format!("{}/{model}", self.name), self.protocol, base_url);
        endpoint.credentials = key.into();
        if self.local {
            endpoint.context_window = LOCAL_CONTEXT_WINDOW;
        }
        Ok(endpoint)
    }

    /// Returns the names of the models in the catalogue, beginning with the default model.
    pub(crate) fn models(&self) -> impl Iterator<Item = &'static str> {
        let others = catalog::names(self.name).filter(|name| *name != self.default_model);
        std::iter::once(self.default_model).filter(|name| !name.is_empty()).chain(others)
    }

    /// Creates the error for a missing API key.
    pub(crate) fn without_key(&self) -> ModelError {
        let name = self.key_env.first().copied().unwrap_or("api_key_env");
        ModelError::new(Retry::Never, format!("no API key for {}", self.name))
            .hint(format!("set {name}, store a key: nuncio login {}, or use --model ollama/NAME", self.name))
            .unreachable()
    }
}

/// Converts `OLLAMA_HOST` (`host`, `:port`, `host:port` or a URL) to a base URL. Missing parts are
/// taken from `default`.
fn local_url(host: &str, default: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/').trim_end_matches("/v1");
    let port = default.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let (name, given) = match rest.rsplit_once(':') {
        Some((name, given)) if given.bytes().all(|byte| byte.is_ascii_digit()) => (name, given),
        _ => (rest, if host.contains("://") { "" } else { port }),
    };
    let name = match name {
        // A wildcard listen address is not a valid destination.
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        name => name,
    };
    match given {
        "" => format!("{scheme}://{name}/v1"),
        port => format!("{scheme}://{name}:{port}/v1"),
    }
}

/// Returns the default model of the first provider that has a key, as `PROVIDER/NAME`.
pub fn default_model(has_key: impl Fn(&KnownProvider) -> bool) -> Option<String> {
    let mut named = PROVIDERS.iter().filter(|provider| !provider.default_model.is_empty());
    let provider = named.find(|provider| has_key(provider))?;
    Some(format!("{}/{}", provider.name, provider.default_model))
}

/// Creates the error for the case that no provider has a key and no local server was found.
pub fn nothing() -> ModelError {
    ModelError::new(Retry::Never, "no model: no API key was found and no local server answers")
        .hint("set ANTHROPIC_API_KEY, store a key: nuncio login, or use --model ollama/NAME")
        .unreachable()
}
