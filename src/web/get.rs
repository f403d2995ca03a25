//! GET requests for pages, without cookies, credentials and proxy. Redirections are returned, not
//! followed.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};

use super::address::{Address, is_public};
use super::client::{self, causes};
use crate::limits;

/// HTTP clients for pages, created on first use. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Web(Arc<Clients>);

#[derive(Debug, Default)]
struct Clients {
    /// Connects to public IP addresses only.
    public: OnceLock<reqwest::Client>,
    /// Connects anywhere, for hosts that the settings allow.
    any: OnceLock<reqwest::Client>,
}

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

impl Web {
    /// Requests a page. A host that is not on the public web is contacted only if `allowed` names
    /// it. The check applies to the resolved IP addresses that are connected to, so that a change
    /// of the name's resolution cannot bypass it. The error is a message for the caller of a tool.
    pub(crate) async fn get(&self, address: &Address, allowed: &[String]) -> Result<WebResponse, String> {
        let anywhere = address.is_among(allowed);
        if !anywhere && address.ip().is_some_and(|ip| !is_public(ip)) {
            return Err(format!("{address}: {NOT_PUBLIC}"));
        }
        let failed = |error: reqwest::Error| format!("fetching {address}: {}", causes(&error));
        let accept = "text/markdown, text/html, text/plain, application/json, */*;q=0.5";
        let request = self.client(anywhere).map_err(failed)?.get(address.url()).header(ACCEPT, accept);
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

    fn client(&self, anywhere: bool) -> Result<reqwest::Client, reqwest::Error> {
        let slot = if anywhere { &self.0.any } else { &self.0.public };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = client::client(|| if anywhere { builder() } else { builder().dns_resolver(Arc::new(PublicOnly)) })?;
        Ok(slot.get_or_init(|| client).clone())
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(concat!("nuncio/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .http1_only()
        .referer(false)
        .connect_timeout(limits::FETCH_CONNECT)
}

const NOT_PUBLIC: &str = "the host is not on the public web; the setting tools.fetch_allowed_hosts lists the exceptions";

/// A DNS resolver that returns public IP addresses only.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(NOT_PUBLIC.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}
