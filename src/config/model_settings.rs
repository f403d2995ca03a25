//! Settings of model providers and models.

use std::collections::BTreeMap;
use std::path::PathBuf;

use globset::{Glob, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_with::skip_serializing_none;
use toml::Table;

use super::price::Price;
use super::project_program::ProjectProgram;
use super::secret::MASK;
use crate::limits::MODEL_WAIT;
use crate::options::Thinking;

/// A model provider. An absent setting has the value of the built-in provider of this name.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Provider {
    pub protocol: Option<Protocol>,
    /// Base URL, including the version: `http://127.0.0.1:8080/v1`.
    pub base_url: Option<String>,
    /// Name of the environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// A command that prints the key on its standard output.
    pub api_key_command: Option<Vec<String>>,
    /// Set if a project's settings name `api_key_command`.
    #[serde(skip)]
    #[schemars(skip)]
    pub project: Option<ProjectProgram>,
    /// Models that clients can choose; replaces the provider's list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Context window of the models, in tokens.
    pub context_window: Option<u64>,
    /// Longest answer of a model, in tokens.
    pub max_output_tokens: Option<u32>,
    /// The models may call several tools in one answer. `false` also sends earlier answers
    /// with one call per message. Default: true.
    pub parallel_tool_calls: Option<bool>,
    /// How long the provider keeps cached prompts (Anthropic, Bedrock). Default: `5m`.
    pub cache_ttl: Option<CacheTtl>,
    /// Additional headers of every request. A value `$NAME` is the value of the environment
    /// variable NAME.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretText>,
    /// Additional query parameters of every request, such as `api-version` of Azure. A value
    /// `$NAME` is the value of the environment variable NAME.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, SecretText>,
    /// PEM file with certificates to trust besides those of the system, relative to the settings
    /// file.
    pub ca_file: Option<PathBuf>,
    /// URL of the proxy, or `none`. Default: `HTTPS_PROXY` and `HTTP_PROXY` of the environment, and
    /// none for a server on this machine.
    pub proxy: Option<String>,
    /// Maximum seconds for connecting. Default: 15; for a server on this machine: 5.
    pub connect_timeout_s: Option<u64>,
    /// Maximum seconds without a byte of the answer. Default: 180; for a server on this machine:
    /// 900.
    pub idle_timeout_s: Option<u64>,
}

/// The value of an HTTP header or a query parameter, which may be secret. Serialized masked, unless
/// it names an environment variable: `$NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretText(pub String);

impl SecretText {
    /// Returns the name of the environment variable that contains the value. `None` if the text is
    /// the value itself.
    pub(crate) fn variable(&self) -> Option<&str> {
        self.0.strip_prefix('$').filter(|name| !name.starts_with('$'))
    }

    /// Returns the value itself, if no variable contains it. `$$` at the start stands for `$`.
    pub(crate) fn plain(&self) -> &str {
        if self.0.starts_with("$$") { &self.0[1..] } else { &self.0 }
    }

    /// Creates a text whose value is `value`, also if that starts with `$`.
    pub(crate) fn literal(value: String) -> SecretText {
        SecretText(if value.starts_with('$') { format!("${value}") } else { value })
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.variable().is_some() { &self.0 } else { MASK })
    }
}

/// Settings of the models whose `PROVIDER/NAME` matches a pattern; they override the built-in
/// catalogue. If several patterns match, the longer one takes precedence for each setting.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// Maximum size of a request, in tokens.
    pub context_window: Option<u64>,
    /// Maximum size of an answer, in tokens.
    pub max_output_tokens: Option<u32>,
    pub price: Option<Price>,
    /// Abilities of the models. A model without `tools` gets no tools.
    pub abilities: Option<Vec<Ability>>,
    /// Names and globs of the tools that the models get in sessions without such a list. Default:
    /// those that fit the model (see TOOLS.md); `["*"]`: all.
    pub tools: Option<Vec<String>>,
    /// The models may call several tools in one answer. `false` also sends earlier answers with one
    /// call per message. Default: true.
    pub parallel_tool_calls: Option<bool>,
    /// The provider's values for thinking levels. A level without a value uses the nearest lower
    /// one, else the nearest higher one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub thinking: BTreeMap<Thinking, Effort>,
    /// Additional fields of the request's JSON body, such as `temperature`, `top_p`, `seed`,
    /// `chat_template_kwargs` or `provider` (OpenRouter). Objects are merged with those of the
    /// request.
    #[serde(skip_serializing_if = "Table::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub body: Table,
    /// The provider's service tier, such as `flex` or `priority`.
    pub service_tier: Option<String>,
    /// How long the provider keeps cached prompts (Anthropic, Bedrock). Default: `5m`.
    pub cache_ttl: Option<CacheTtl>,
    /// Models, as `PROVIDER/NAME`, that get a request in this order when the model is overloaded,
    /// limits the rate of requests, has no quota left, or cannot be reached.
    pub fallback: Option<Vec<String>>,
}

/// Models for parts of the work, as `PROVIDER/NAME`. Default: the model of the session; titles are
/// the start of the first prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[skip_serializing_none]
pub struct RoleSettings {
    /// Answers in the mode `plan`.
    pub plan: Option<String>,
    /// Writes summaries, if the conversation fits into its context window, and titles of sessions.
    pub small: Option<String>,
    /// Works in subagents whose definition names no model.
    pub subagent: Option<String>,
}

impl ModelSettings {
    /// Adds the settings of a shorter pattern that this one does not have.
    fn or(self, shorter: &ModelSettings) -> ModelSettings {
        let mut body = shorter.body.clone();
        body.extend(self.body);
        let mut thinking = self.thinking;
        if thinking.is_empty() {
            thinking = shorter.thinking.clone();
        }
        ModelSettings {
            context_window: self.context_window.or(shorter.context_window),
            max_output_tokens: self.max_output_tokens.or(shorter.max_output_tokens),
            price: self.price.or_else(|| shorter.price.clone()),
            abilities: self.abilities.or_else(|| shorter.abilities.clone()),
            parallel_tool_calls: self.parallel_tool_calls.or(shorter.parallel_tool_calls),
            thinking,
            body,
            tools: self.tools.or_else(|| shorter.tools.clone()),
            service_tier: self.service_tier.or_else(|| shorter.service_tier.clone()),
            cache_ttl: self.cache_ttl.or(shorter.cache_ttl),
            fallback: self.fallback.or_else(|| shorter.fallback.clone()),
        }
    }
}

/// Fields of requests that nuncio writes itself, and that `body` cannot replace.
const RESERVED_FIELDS: &[&str] = &[
    "model",
    "messages",
    "input",
    "contents",
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
    "tools",
    "stream",
];

/// Rejects settings of providers and models that no request could use.
pub(super) fn check(providers: &BTreeMap<String, Provider>, models: &BTreeMap<String, ModelSettings>) -> Result<(), String> {
    for (name, provider) in providers {
        positive(&format!("providers.{name}.context_window"), provider.context_window)?;
        positive(&format!("providers.{name}.max_output_tokens"), provider.max_output_tokens.map(u64::from))?;
        positive(&format!("providers.{name}.connect_timeout_s"), provider.connect_timeout_s)?;
        positive(&format!("providers.{name}.idle_timeout_s"), provider.idle_timeout_s)?;
        let is_url = |proxy: &str| proxy == "none" || proxy.starts_with("http://") || proxy.starts_with("https://");
        if provider.proxy.as_deref().is_some_and(|proxy| !is_url(proxy)) {
            return Err(format!("providers.{name}.proxy: expected a URL or none"));
        }
        for (header, SecretText(value)) in &provider.headers {
            if !is_token(header) || value.bytes().any(|byte| byte.is_ascii_control()) {
                return Err(format!("providers.{name}.headers.{header}: not a valid HTTP header"));
            }
        }
    }
    for (pattern, model) in models {
        Glob::new(pattern).map_err(|error| format!("models.{pattern:?}: {error}"))?;
        if let Some(field) = model.body.keys().find(|field| RESERVED_FIELDS.contains(&field.as_str())) {
            return Err(format!("models.{pattern:?}.body.{field}: nuncio sets this field"));
        }
        positive(&format!("models.{pattern:?}.context_window"), model.context_window)?;
        positive(&format!("models.{pattern:?}.max_output_tokens"), model.max_output_tokens.map(u64::from))?;
        if let Some(price) = &model.price {
            price.check(&format!("models.{pattern:?}.price"))?;
        }
        let fallback = model.fallback.iter().flatten().find(|id| !id.contains('/') || id.starts_with("scripted:"));
        if let Some(id) = fallback {
            return Err(format!("models.{pattern:?}.fallback: {id}: expected the form PROVIDER/NAME"));
        }
    }
    Ok(())
}

fn positive(setting: &str, value: Option<u64>) -> Result<(), String> {
    if value == Some(0) { Err(format!("{setting}: must be greater than 0")) } else { Ok(()) }
}

/// Returns whether `text` is a token (RFC 9110, section 5.6.2), such as the name of a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Merges the settings of the model `id` from all patterns in `models` that match.
pub(crate) fn model_settings(models: &BTreeMap<String, ModelSettings>, id: &str) -> ModelSettings {
    ModelPatterns::new(models).settings(id)
}

/// The patterns of models in the settings, compiled to find the settings of several models.
pub(crate) struct ModelPatterns<'a> {
    models: &'a BTreeMap<String, ModelSettings>,
    /// The longest pattern comes first.
    patterns: Vec<(&'a str, GlobMatcher, &'a ModelSettings)>,
}

impl<'a> ModelPatterns<'a> {
    /// Compiles the patterns.
    pub(crate) fn new(models: &'a BTreeMap<String, ModelSettings>) -> ModelPatterns<'a> {
        let compiled = |(pattern, settings): (&'a String, &'a ModelSettings)| {
            Some((pattern.as_str(), Glob::new(pattern).ok()?.compile_matcher(), settings))
        };
        let mut patterns: Vec<_> = models.iter().rev().filter_map(compiled).collect();
        patterns.sort_by_key(|(pattern, ..)| std::cmp::Reverse(pattern.len()));
        ModelPatterns { models, patterns }
    }

    /// Merges the settings of the model `id` from all patterns that match. The exact name takes
    /// precedence, then the longest pattern.
    pub(crate) fn settings(&self, id: &str) -> ModelSettings {
        let matching = self.patterns.iter().filter(|(pattern, glob, _)| *pattern != id && glob.is_match(id));
        let all = self.models.get(id).into_iter().chain(matching.map(|(.., settings)| *settings));
        all.fold(ModelSettings::default(), ModelSettings::or)
    }
}

/// An ability of a model besides reading and writing text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    Tools,
    /// Several tool calls in one answer.
    ParallelTools,
    /// Reads images.
    Images,
    /// Reads PDF documents.
    Pdf,
    /// Reads audio.
    Audio,
}

/// The provider's value for a thinking level: a name, or a maximum number of tokens (Anthropic,
/// Gemini).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Effort {
    Name(String),
    Tokens(u32),
}

impl Effort {
    /// Returns the name; `None` if the value is a number of tokens.
    pub(crate) fn name(self) -> Option<String> {
        match self {
            Effort::Name(name) => Some(name),
            Effort::Tokens(_) => None,
        }
    }
}

/// How long a provider keeps cached prompts after their last use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheTtl {
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// Writing to the cache costs more.
    #[serde(rename = "1h")]
    OneHour,
}

/// Repeated model requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetrySettings {
    /// Seconds for which a model request is repeated while the provider is overloaded, limits the
    /// rate of requests, or loads the model. 0: never.
    pub wait_s: u64,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self { wait_s: MODEL_WAIT.as_secs() }
    }
}

/// The API of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// OpenAI Chat Completions, and compatible APIs.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini `generateContent`.
    Gemini,
    /// Ollama's own API.
    Ollama,
    /// Amazon Bedrock `ConverseStream`.
    Bedrock,
}

impl Protocol {
    /// Returns the name of the protocol in settings files.
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::OpenaiChat => "openai-chat",
            Protocol::OpenaiResponses => "openai-responses",
            Protocol::Anthropic => "anthropic",
            Protocol::Gemini => "gemini",
            Protocol::Ollama => "ollama",
            Protocol::Bedrock => "bedrock",
        }
    }
}
