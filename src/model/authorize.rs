//! Adds an endpoint's credentials to a request.

use std::time::SystemTime;

use reqwest::Request;
use reqwest::header::{AUTHORIZATION, HeaderValue};

use super::credentials::Credentials;
use super::endpoint::{Endpoint, client};
use super::error::{ModelError, Retry};
use super::google::GoogleAccount;
use super::sigv4;
use super::wire_formats::wire_format;
use crate::web::HttpClients;

/// The URL of a client that uses no proxy.
const WITHOUT_PROXY: &str = "http://127.0.0.1";

/// Adds the credentials of `endpoint` to a complete request. A signature covers the URL, the body
/// and some headers, so the request must not change afterwards.
pub(super) async fn authorize(endpoint: &Endpoint, clients: &HttpClients, request: &mut Request) -> Result<(), ModelError> {
    let invalid = |origin: &str| {
        let message = format!("the credentials of {origin} contain characters that are invalid in an HTTP header");
        ModelError::new(Retry::Never, message).hint(format!("check {origin}")).unreachable()
    };
    match &endpoint.credentials {
        Credentials::None => {}
        Credentials::Key(_) => {
            if let Some((name, value)) = key_header(endpoint)? {
                request.headers_mut().insert(name, value);
            }
        }
        Credentials::Aws(keys) => {
            sigv4::sign(keys, "bedrock", SystemTime::now(), request).map_err(|_| invalid(&keys.origin))?;
        }
        Credentials::Google(account) => {
            let token = format!("Bearer {}", token(endpoint, account, clients).await?);
            let mut token = HeaderValue::from_str(&token).map_err(|_| invalid(&account.origin))?;
            token.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, token);
            if let Some(project) = account.quota_project() {
                let project = HeaderValue::from_str(project).map_err(|_| invalid(&account.origin))?;
                request.headers_mut().insert("x-goog-user-project", project);
            }
        }
    }
    Ok(())
}

/// Returns the header with the API key, which depends on the provider and the protocol. Returns
/// `None` if the credentials are not a key.
pub(super) fn key_header(endpoint: &Endpoint) -> Result<Option<(&'static str, HeaderValue)>, ModelError> {
    let Credentials::Key(key) = &endpoint.credentials else { return Ok(None) };
    let (name, prefix) = match endpoint.provider() {
        "azure" => ("api-key", ""),
        _ => wire_format(endpoint.protocol).key_header,
    };
    let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.secret)).map_err(|_| {
        let message = format!("the key of {} contains characters that are invalid in an HTTP header", key.origin);
        ModelError::new(Retry::Never, message).hint(format!("check {}", key.origin)).unreachable()
    })?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

/// Returns the name of the header with the credentials.
pub(super) fn key_header_name(endpoint: &Endpoint) -> Option<&'static str> {
    match &endpoint.credentials {
        Credentials::None => None,
        Credentials::Key(_) => key_header(endpoint).ok().flatten().map(|(name, _)| name),
        Credentials::Aws(_) | Credentials::Google(_) => Some("authorization"),
    }
}

/// Discards the access token in the header `authorization` of a request that the API refused.
/// Returns whether the request can be repeated with a new token.
pub(super) fn discard_token(endpoint: &Endpoint, authorization: Option<&HeaderValue>) -> bool {
    let Credentials::Google(account) = &endpoint.credentials else { return false };
    let sent = authorization.and_then(|value| value.to_str().ok());
    if let Some(token) = sent.and_then(|value| value.strip_prefix("Bearer ")) {
        account.discard(token);
    }
    true
}

async fn token(endpoint: &Endpoint, account: &GoogleAccount, clients: &HttpClients) -> Result<String, ModelError> {
    let client = if account.is_metadata() { client(clients, WITHOUT_PROXY) } else { endpoint.client(clients) };
    account.token(&client?).await
}
