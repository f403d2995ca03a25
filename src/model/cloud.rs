//! Cloud platforms: the base URL and the credentials of a request depend on a region, a project or
//! a resource. docs/PROVIDERS.md lists the variables.

use std::sync::Arc;

use parking_lot::Mutex;

use super::aws::Profile;
use super::credentials::{ApiKey, Credentials};
use super::endpoint::Protocol;
use super::error::{ModelError, Retry};
use super::google::GoogleAccount;
use super::providers::KnownProvider;
use super::variables::{Variables, set};

/// Region for signatures if neither the settings nor the host name contain one.
const DEFAULT_REGION: &str = "us-east-1";

/// Base URL, protocol and credentials of a model on a cloud platform.
pub struct CloudAccess {
    pub base_url: String,
    pub protocol: Protocol,
    pub credentials: Credentials,
}

/// The Google account of the process, which stores its access token between requests.
#[derive(Default)]
pub struct SharedAccount(Mutex<Option<Arc<GoogleAccount>>>);

impl SharedAccount {
    /// Reads the credentials again. Keeps the account, and with it the token, if they are the same.
    fn find(&self, environment: Variables<'_>) -> Result<Arc<GoogleAccount>, ModelError> {
        let found = GoogleAccount::find(environment)?;
        let mut shared = self.0.lock();
        if let Some(known) = shared.as_ref().filter(|known| ***known == found) {
            return Ok(known.clone());
        }
        Ok(shared.insert(Arc::new(found)).clone())
    }
}

/// A request for the access to a model: its provider and name, and the settings.
pub struct CloudRequest<'a> {
    pub provider: &'a KnownProvider,
    pub model: &'a str,
    /// The complete base URL of the settings or the command line.
    pub base_url: Option<&'a str>,
    pub key: Option<ApiKey>,
    pub account: &'a SharedAccount,
}

impl CloudRequest<'_> {
    /// Returns the access to the model, or `None` if the provider is not a cloud platform. Fails
    /// with an unreachable error if credentials or the location are unknown.
    pub fn access(self, environment: Variables<'_>) -> Option<Result<CloudAccess, ModelError>> {
        match self.provider.name {
            "bedrock" => Some(self.bedrock(environment)),
            "vertex" => Some(self.vertex(environment)),
            "azure" => Some(self.azure(environment)),
            _ => None,
        }
    }

    /// Returns the base URL from the settings, else from the environment variable that overrides
    /// the built-in one.
    fn given_url(&self, environment: Variables<'_>) -> Option<String> {
        let variable = || self.provider.base_env.and_then(|name| set(environment, name));
        self.base_url.map(str::to_owned).or_else(variable)
    }

    fn bedrock(self, environment: Variables<'_>) -> Result<CloudAccess, ModelError> {
        let profile = Profile::read(environment)?;
        let region = profile.region(environment);
        let base_url = match (self.given_url(environment), &region) {
            (Some(url), _) => url,
            (None, Some(region)) => self.provider.base_url.replace("{region}", region),
            (None, None) => return Err(missing("no AWS region", "set AWS_REGION, for example to us-east-1")),
        };
        let credentials = match self.key {
            Some(key) => Credentials::Key(key),
            None => {
                let of_host = base_url.split_once("bedrock-runtime.").and_then(|(_, rest)| rest.split('.').next());
                let region = of_host.or(region.as_deref()).unwrap_or(DEFAULT_REGION);
                Credentials::Aws(profile.keys(region, environment)?)
            }
        };
        Ok(CloudAccess { base_url, protocol: Protocol::Bedrock, credentials })
    }

    fn vertex(self, environment: Variables<'_>) -> Result<CloudAccess, ModelError> {
        let (publisher, protocol) = match self.model.starts_with("claude") {
            true => ("anthropic", Protocol::Anthropic),
            false => ("google", Protocol::Gemini),
        };
        let project = set(environment, "GOOGLE_CLOUD_PROJECT");
        let location = set(environment, "GOOGLE_CLOUD_LOCATION").unwrap_or_else(|| "global".to_owned());
        // A project takes precedence over the key, as in Google's own libraries.
        let express = || set(environment, "GOOGLE_API_KEY").filter(|_| project.is_none());
        let key = self.key.clone().or_else(|| express().map(|secret| ApiKey::new(secret, "GOOGLE_API_KEY")));
        let host = match (self.given_url(environment), &key) {
            (Some(host), _) => host,
            (None, Some(_)) => "https://aiplatform.googleapis.com".to_owned(),
            (None, None) => format!("https://{}", vertex_host(&location)),
        };
        let complete = |path: String| match host.contains("/publishers/") {
            true => host.clone(),
            false => format!("{}/v1/{path}publishers/{publisher}", host.trim_end_matches('/')),
        };
        if let Some(key) = key {
            return Ok(CloudAccess { base_url: complete(String::new()), protocol, credentials: Credentials::Key(key) });
        }
        let account = self.account.find(environment)?;
        let Some(project) = project.or_else(|| account.project().map(str::to_owned)) else {
            return Err(missing("no Google Cloud project", "set GOOGLE_CLOUD_PROJECT"));
        };
        let base_url = complete(format!("projects/{project}/locations/{location}/"));
        Ok(CloudAccess { base_url, protocol, credentials: Credentials::Google(account) })
    }

    fn azure(self, environment: Variables<'_>) -> Result<CloudAccess, ModelError> {
        let resource = || Some(self.provider.base_url.replace("{resource}", &set(environment, "AZURE_RESOURCE_NAME")?));
        let Some(url) = self.given_url(environment).or_else(resource) else {
            let hint = "set AZURE_OPENAI_ENDPOINT, for example to https://RESOURCE.openai.azure.com";
            return Err(missing("no Azure resource", hint));
        };
        let has_path = reqwest::Url::parse(&url).is_ok_and(|url| url.path().starts_with("/openai"));
        let base_url = match self.base_url.is_some() || has_path {
            true => url,
            false => format!("{}/openai/v1", url.trim_end_matches('/')),
        };
        if self.key.is_none() && self.base_url.is_none() {
            return Err(self.provider.without_key());
        }
        Ok(CloudAccess { base_url, protocol: self.provider.protocol, credentials: self.key.into() })
    }
}

/// Returns the host of a location: `global`, a multi-region, or a region.
fn vertex_host(location: &str) -> String {
    match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        "us" | "eu" => format!("aiplatform.{location}.rep.googleapis.com"),
        region => format!("{region}-aiplatform.googleapis.com"),
    }
}

fn missing(what: &str, hint: &str) -> ModelError {
    ModelError::new(Retry::Never, what).hint(hint).unreachable()
}
