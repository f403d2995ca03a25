//! API keys of providers: where they come from, and the names of the variables that hold secrets.

use super::models::{Models, provider_names};
use super::stored_keys::KeyPlaces;
use crate::config::{HostedAgent, McpServer, Provider, SecretText, Settings};
use crate::model::endpoint::ApiKey;
use crate::model::providers::{self, KnownProvider};
use crate::model::{ModelError, Retry};
use crate::runtime::services::confinement::token_command;

impl Models {
    /// Returns the key of a provider: of the command or the variable in the settings, else of the
    /// provider's variables, else the stored one.
    pub(super) async fn key(
        &self,
        name: &str,
        own: &Provider,
        known: Option<&KnownProvider>,
    ) -> Result<Option<ApiKey>, ModelError> {
        if let Some(command) = &own.api_key_command {
            return self.key_of_command(name, command, own).await.map(Some);
        }
        let key = match &own.api_key_env {
            Some(variable) => self.variable(variable).map(|key| ApiKey::new(key, variable)),
            None => known.and_then(|known| known.key(&|name: &str| self.variable(name))),
        };
        if key.is_some() {
            return Ok(key);
        }
        match (self.stored_key(name, &self.keys.list()).await?, &own.api_key_env) {
            (None, Some(variable)) => Err(ModelError::new(Retry::Never, format!("no API key for {name}"))
                .hint(format!("set {variable}, store a key: nuncio login {name}, or use --model ollama/NAME"))
                .unreachable()),
            (stored, _) => Ok(stored),
        }
    }

    pub(super) async fn stored_key(&self, provider: &str, stored: &KeyPlaces) -> Result<Option<ApiKey>, ModelError> {
        match self.keys.get_from(stored, provider).await {
            Ok(key) => Ok(key.map(|key| ApiKey::new(key, format!("nuncio login {provider}")))),
            Err(error) => Err(ModelError::new(Retry::Never, error.message).hint(error.hint.unwrap_or_default()).unreachable()),
        }
    }

    /// Returns where the key of a provider comes from, `None` without a key.
    pub(crate) fn key_source(&self, name: &str, settings: &Settings) -> Option<String> {
        self.key_source_in(name, settings, &self.keys.list())
    }

    /// Returns where the key of a provider comes from, as [`Models::key_source`] does. `stored` has
    /// the stored keys: a caller that asks for many providers reads them once.
    pub(in crate::runtime) fn key_source_in(&self, name: &str, settings: &Settings, stored: &KeyPlaces) -> Option<String> {
        let own = settings.providers.get(name).cloned().unwrap_or_default();
        if own.api_key_command.is_some() {
            return Some(format!("providers.{name}.api_key_command"));
        }
        let known: &[&str] = providers::provider(name).map_or(&[], |known| known.key_env);
        let mut variables = match &own.api_key_env {
            Some(variable) => vec![variable.as_str()],
            None => known.to_vec(),
        };
        variables.retain(|variable| self.environment.get(variable).is_some());
        let stored = || stored.get(name).map(|stored| format!("nuncio login, in {}", self.keys.place(stored)));
        variables.first().map(|variable| format!("${variable}")).or_else(stored)
    }

    /// Returns the providers that have a key, and where it comes from.
    pub(crate) fn key_sources(&self, settings: &Settings) -> Vec<(String, String)> {
        let (names, stored) = (provider_names(settings).into_iter(), self.keys.list());
        names.filter_map(|name| Some((name.to_owned(), self.key_source_in(name, settings, &stored)?))).collect()
    }

    /// Returns whether a variable with a key of the provider is set.
    pub(super) fn has_variable(&self, provider: &KnownProvider) -> bool {
        provider.key(&|name: &str| self.variable(name)).is_some()
    }

    /// Runs a command of the provider's settings that prints a key.
    async fn key_of_command(&self, provider: &str, words: &[String], own: &Provider) -> Result<ApiKey, ModelError> {
        let origin = format!("providers.{provider}.api_key_command");
        let project = own.project.as_ref();
        let printed = match (self.launcher.printed(&token_command(words, project)).await, project) {
            (Err(why), Some(program)) => Err(program.with_hint(why)),
            (printed, _) => printed,
        };
        printed
            .map(|key| ApiKey::new(key, origin.clone()))
            .map_err(|why| ModelError::new(Retry::Never, format!("{origin}: {why}")).unreachable())
    }

    /// Returns the names of the environment variables that hold API keys or tokens.
    pub(crate) fn secret_names(settings: &Settings) -> Vec<String> {
        let known = providers::PROVIDERS.iter().flat_map(|provider| provider.key_env.iter().map(|name| name.to_string()));
        let own = settings.providers.values().filter_map(|provider| provider.api_key_env.clone());
        let of_mcp = settings.mcp.values().flat_map(McpServer::secret_names);
        let of_agents = settings.agents.agents.values().flat_map(HostedAgent::secret_names);
        let of_provider = |provider: &Provider| provider.headers.values().chain(provider.query.values()).cloned().collect();
        let set: Vec<SecretText> = settings.providers.values().flat_map::<Vec<_>, _>(of_provider).collect();
        let set = set.iter().filter_map(|text| text.variable().map(str::to_owned));
        known.chain(own).chain(set).chain(of_mcp).chain(of_agents).chain(["NUNCIO_TOKEN".into()]).collect()
    }

    /// Returns the names of the variables that an MCP server receives only if its `env` names them:
    /// also the secrets of cloud services, which commands receive.
    pub(crate) fn server_secret_names(settings: &Settings) -> Vec<String> {
        Models::secret_names(settings).into_iter().chain(CLOUD_SECRETS.map(String::from)).collect()
    }
}

/// Variables with secrets of cloud services.
const CLOUD_SECRETS: [&str; 7] = [
    "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    "AZURE_CLIENT_SECRET",
    "AZURE_PASSWORD",
    "DIGITALOCEAN_ACCESS_TOKEN",
];
