//! GET requests for pages, without cookies, credentials or a proxy. Redirections are returned, not
//! followed.

use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};

use super::address::{Address, is_public};
use super::client::{Destination, HttpClients, NOT_PUBLIC, causes};
use crate::limits;

/// The response to a GET request.
pub(crate) struct WebResponse {
    pub(crate) status: u16,
    /// Status code and reason: `404 Not Found`.
    pub(crate) status_text: String,
    /// The target of a redirection.
    pub(crate) redirect: Option<Address>,
    pub(crate) content_type: Option<String>,
    /// At most `limits::FETCH_BYTES_MAX` bytes; empty for a redirection.
    pub(crate) body: Vec<u8>,
    /// True if the body was longer.
    pub(crate) truncated: bool,
}

impl HttpClients {
    /// Fetches a page. A host that is not on the public web is contacted only if `allowed` names
    /// it. The check applies to the resolved IP addresses that are connected to, so that a later
    /// change to the host's DNS records cannot bypass the check. The error is a message for the
    /// caller of a tool.
    pub(crate) async fn get(&self, address: &Address, allowed: &[String]) -> Result<WebResponse, String> {
        let anywhere = address.is_among(allowed);
        if !anywhere && address.ip().is_some_and(|ip| !is_public(ip)) {
            return Err(format!("{address}: {NOT_PUBLIC}"));
        }
        let failed = |error: reqwest::Error| format!("fetching {address}: {}", causes(&error));
        let accept = "text/markdown, text/html, text/plain, application/json, */*;q=0.5";
        let destination = if anywhere { Destination::AllowedPage } else { Destination::PublicPage };
        let request = self.client(destination).map_err(failed)?.get(address.url()).header(ACCEPT, accept);
        let mut response = request.send().await.map_err(failed)?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(String::from);
        let status = response.status();
        if let Some(encoding) = header(CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
            return Err(format!("fetching {address}: unsupported content encoding {encoding}"));
        }
        let redirect = match header(LOCATION) {
            Some(location) if status.is_redirection() => Some(address.join(&location)?),
            _ => None,
        };
        let content_type = header(CONTENT_TYPE);
        let mut body = Vec::new();
        let mut truncated = false;
        while redirect.is_none()
            && !truncated
            && let Some(chunk) = response.chunk().await.map_err(failed)?
        {
            truncated = body.len() + chunk.len() > limits::FETCH_BYTES_MAX;
            body.extend_from_slice(&chunk[..chunk.len().min(limits::FETCH_BYTES_MAX - body.len())]);
        }
        Ok(WebResponse { status: status.as_u16(), status_text: status.to_string(), redirect, content_type, body, truncated })
    }
}
