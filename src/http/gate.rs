//! The gate of the bridge, in this order: the host that was asked for, the page that asks, the token.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri};

use super::tokens::Tokens;
use crate::api::Client;
use crate::error::{Error, Kind, Result};
use crate::limits;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

pub struct Gate {
    pub tokens: Tokens,
    /// Names by which this server may be asked for, without ports, beside those of the loopback.
    hosts: Vec<String>,
    /// Origins beside our own whose pages may ask (RFC 6454: `https://name:port`).
    origins: Vec<String>,
    /// Directories that sessions may be in.
    roots: Arc<[PathBuf]>,
    failures: Mutex<Failures>,
}

/// Failed logins that may still be answered at once; they come back with time.
struct Failures {
    left: f64,
    since: Instant,
}

/// The origin of another site that may ask: answers say so to its browser.
pub type Foreign = Option<HeaderValue>;

impl Gate {
    pub fn new(tokens: Tokens, hosts: Vec<String>, origins: Vec<String>, roots: Arc<[PathBuf]>) -> Gate {
        let failures = Mutex::new(Failures { left: limits::LOGIN_FAILURES_MAX, since: Instant::now() });
        Gate { tokens, hosts: hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect(), origins, roots, failures }
    }

    /// The host and the origin: nothing else is looked at before them.
    pub fn address(&self, uri: &Uri, headers: &HeaderMap) -> Result<Foreign> {
        let host = self.host(uri, headers)?;
        self.origin(&host, headers)
    }

    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority> {
        let refused = |said: &str| {
            Error::new(Kind::Forbidden, format!("the host {said:?} is not allowed"))
                .hint("ask for a loopback name, or start the server with --allow-host")
        };
        let mut named = headers.get_all(HOST).iter();
        let (first, second) = (named.next(), named.next());
        let said = match (uri.authority(), first, second) {
            (_, _, Some(_)) => return Err(refused("given twice")),
            (Some(authority), _, None) => authority.as_str(),
            (None, Some(host), None) => host.to_str().map_err(|_| refused("unreadable"))?,
            (None, None, None) => return Err(refused("missing")),
        };
        let authority: Authority = said.parse().map_err(|_| refused(said))?;
        let name = authority.host().to_ascii_lowercase();
        // User information has no business here.
        let plain = !authority.as_str().contains('@');
        if plain && (LOOPBACK.contains(&name.as_str()) || self.hosts.contains(&name)) {
            return Ok(authority);
        }
        Err(refused(said))
    }

    fn origin(&self, host: &Authority, headers: &HeaderMap) -> Result<Foreign> {
        let mut named = headers.get_all(ORIGIN).iter();
        let Some(origin) = named.next() else { return Ok(None) };
        let said = origin.to_str().unwrap_or("unreadable");
        if named.next().is_none() {
            let own = said.strip_prefix("http://").or_else(|| said.strip_prefix("https://"));
            if own.is_some_and(|own| own.eq_ignore_ascii_case(host.as_str())) {
                return Ok(None);
            }
            if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(said)) {
                return Ok(Some(origin.clone()));
            }
        }
        Err(Error::new(Kind::Forbidden, format!("pages of {said:?} may not ask"))
            .hint("start the server with --allow-origin if they should"))
    }

    /// Who asks. Failed logins are slowed, others' are not.
    pub fn client(&self, headers: &HeaderMap) -> Result<Client> {
        let token = token(headers);
        let client = match token {
            Some(token) => self.tokens.client(token, &self.roots),
            None => None,
        };
        client.map_or_else(|| Err(self.failed(token.is_some())), Ok)
    }

    fn failed(&self, wrong: bool) -> Error {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let back = now.duration_since(failures.since).as_secs_f64() * limits::LOGIN_FAILURES_PER_S;
        failures.left = (failures.left + back).min(limits::LOGIN_FAILURES_MAX);
        failures.since = now;
        if wrong && failures.left < 1.0 {
            return Error::new(Kind::RateLimited, "too many failed logins").hint("wait a second");
        }
        if wrong {
            failures.left -= 1.0;
        }
        let said = if wrong { "the token is not one of this server's" } else { "a token is missing" };
        Error::new(Kind::Unauthenticated, said)
            .hint("send `Authorization: Bearer TOKEN`; the token is in the file `token` of nuncio's data")
    }
}

/// The token of a request, if it has exactly one.
pub fn token(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    match (given.next(), given.next()) {
        (Some(value), None) => value.to_str().ok().and_then(bearer),
        _ => None,
    }
}

/// The token of `Bearer TOKEN` (RFC 6750, section 2.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.trim())
}
