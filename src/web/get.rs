//! One request for a page: no cookies, no credentials, no proxy, redirections told and not followed.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};

use super::{Address, causes, is_public};
use crate::limits;

/// The clients of the process for pages: made when they are first needed, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Web(Arc<Clients>);

#[derive(Debug, Default)]
struct Clients {
    public: OnceLock<reqwest::Client>,
    any: OnceLock<reqwest::Client>,
}

/// What a host answered.
pub struct Answer {
    pub status: u16,
    /// `404 Not Found`
    pub status_text: String,
    /// Where it says that the page is instead.
    pub redirect: Option<Address>,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
    /// There is more than `limits::FETCH_BYTES_MAX`.
    pub cut: bool,
}

impl Web {
    /// Asks for a page. A host that is not on the public web is asked only if `allowed` names it; which one it is, is seen where it is
    /// connected to, so that a name cannot lead elsewhere in between. The error says what was wrong.
    pub async fn get(&self, address: &Address, allowed: &[String]) -> Result<Answer, String> {
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
            return Err(format!("fetching {address}: its content is packed as {encoding}, which was not asked for"));
        }
        let redirect = match header(LOCATION) {
            Some(location) if status.is_redirection() => Some(address.join(&location)?),
            _ => None,
        };
        let content_type = header(CONTENT_TYPE);
        let mut body = Vec::new();
        let mut cut = false;
        while redirect.is_none()
            && !cut
            && let Some(chunk) = response.chunk().await.map_err(failed)?
        {
            cut = body.len() + chunk.len() > limits::FETCH_BYTES_MAX;
            body.extend_from_slice(&chunk[..chunk.len().min(limits::FETCH_BYTES_MAX - body.len())]);
        }
        Ok(Answer { status: status.as_u16(), status_text: status.to_string(), redirect, content_type, body, cut })
    }

    fn client(&self, anywhere: bool) -> Result<reqwest::Client, reqwest::Error> {
        let slot = if anywhere { &self.0.any } else { &self.0.public };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = super::client(|| if anywhere { builder() } else { builder().dns_resolver(Arc::new(PublicOnly)) })?;
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

const NOT_PUBLIC: &str =
    "that host is not on the public web; who may be asked nevertheless stands in the setting tools.fetch_allowed_hosts";

/// Looks names up, and finds of their addresses only public ones.
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
