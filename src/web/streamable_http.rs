//! The transport "streamable HTTP" of the Model Context Protocol.

use std::collections::HashMap;
use std::error::Error;
use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthError, AuthorizationManager, WWWAuthenticateParams};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

use super::address::is_loopback;
use super::client::{ClientOptions, Destination, HttpClients};
use crate::limits;

/// A transport to an MCP server.
pub(crate) type StreamableHttp = StreamableHttpClientTransport<reqwest::Client>;

/// A transport to an MCP server to which the user has signed in with OAuth.
pub(crate) type AuthorizedHttp = StreamableHttpClientTransport<AuthClient<reqwest::Client>>;

/// Why a program that embeds nuncio cannot sign in to an MCP server: rmcp's OAuth client uses the
/// default provider.
const NO_PROVIDER: &str =
    "the program has no default TLS provider: call rustls::crypto::ring::default_provider().install_default()";

impl HttpClients {
    /// Creates the transport to the MCP server at `url`. A server on this machine is reached
    /// without a proxy. Must be called within a tokio runtime. The error is a message.
    pub(crate) fn streamable_http(
        &self,
        url: &str,
        headers: &[(String, String)],
        bearer_token: Option<String>,
    ) -> Result<StreamableHttp, String> {
        let mut config = config(url, headers)?;
        config.auth_header = bearer_token;
        Ok(StreamableHttpClientTransport::with_client(self.mcp_client(url)?, config))
    }

    /// Creates a transport like [`HttpClients::streamable_http`], with the tokens of `manager`,
    /// which it refreshes.
    pub(crate) fn authorized_http(
        &self,
        url: &str,
        headers: &[(String, String)],
        manager: AuthorizationManager,
    ) -> Result<AuthorizedHttp, String> {
        let client = AuthClient::new(self.mcp_client(url)?, manager);
        Ok(StreamableHttpClientTransport::with_client(client, config(url, headers)?))
    }

    /// Creates the OAuth client for the MCP server at `url`. It reaches authorization servers at
    /// private addresses only if all addresses of the MCP server are private. The error is a
    /// message.
    pub(crate) async fn authorization(&self, url: &str) -> Result<AuthorizationManager, String> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(NO_PROVIDER.into());
        }
        let manager = match is_private(url).await {
            true => AuthorizationManager::new_allowing_private_addresses(url).await,
            false => AuthorizationManager::new(url).await,
        };
        manager.map_err(|error| error.to_string())
    }

    fn mcp_client(&self, url: &str) -> Result<reqwest::Client, String> {
        let proxy = is_loopback(url).then(|| "none".to_owned());
        self.client_with(Destination::McpServer, &ClientOptions { proxy, ..ClientOptions::default() })
    }
}

fn config(url: &str, headers: &[(String, String)]) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.max_sse_event_size = limits::MCP_MESSAGE_BYTES_MAX;
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, value) = parsed.ok_or_else(|| format!("headers.{name}: invalid header"))?;
        custom.insert(name, value);
    }
    config.custom_headers = custom;
    Ok(config)
}

/// Returns whether all addresses of the URL's host are private.
async fn is_private(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let Ok(addresses) = tokio::net::lookup_host((host, 0)).await else { return false };
    let mut addresses = addresses.peekable();
    addresses.peek().is_some()
        && addresses.all(|address| match address.ip() {
            IpAddr::V4(address) => address.is_private(),
            IpAddr::V6(address) => address.is_unique_local(),
        })
}

/// How a request to an MCP server failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpFailure {
    /// The server requires that the user signs in.
    Unauthorized,
    /// The token lacks a scope.
    Scope,
    /// The access token could not be refreshed.
    Refresh,
    Other,
    /// The transport has ended, or is not HTTP.
    Closed,
}

impl HttpFailure {
    /// Classifies an error of the transport.
    pub(crate) fn from_error(error: &(dyn Error + 'static)) -> HttpFailure {
        match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::Auth(AuthError::AuthorizationRequired)) => {
                HttpFailure::Unauthorized
            }
            Some(StreamableHttpError::InsufficientScope(_)) => HttpFailure::Scope,
            Some(StreamableHttpError::Auth(AuthError::TokenRefreshFailed(_) | AuthError::TokenRefreshRejected(_))) => {
                HttpFailure::Refresh
            }
            Some(StreamableHttpError::TransportChannelClosed) | None => HttpFailure::Closed,
            Some(_) => HttpFailure::Other,
        }
    }
}

/// Returns the scope that a refused request required, if the server named it.
pub(crate) fn required_scope<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a str> {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::InsufficientScope(error)) => error.get_required_scope(),
        _ => None,
    }
}

/// Returns the scope that a challenge (header `WWW-Authenticate`) names.
pub(crate) fn challenge_scope(url: &str, challenge: &str) -> Option<String> {
    WWWAuthenticateParams::parse(challenge, &Url::parse(url).ok()?).scope
}

/// Returns the challenge with which a server refused a request, if it did.
pub(crate) fn request_challenge<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a str> {
    error.downcast_ref::<StreamableHttpError<reqwest::Error>>()?.auth_challenge()
}

/// Returns the error of the HTTP request that caused an error of the transport, which does not name
/// it as its source.
pub(crate) fn request_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => Some(error),
        _ => None,
    }
}
