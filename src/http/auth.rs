//! Authentication of requests. Checks the host, the origin and the token, in this order.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri};
use parking_lot::Mutex;

use super::logins::Logins;
use super::tokens::{TokenDigest, Tokens, sha256};
use crate::api::{Client, ClientRole};
use crate::error::{Error, Kind, Result};
use crate::runtime::{AgentTokens, McpAccess};
use crate::workspace::real_path;

/// Maximum number of failed logins in a burst. Further failed logins are rejected as
/// `rate_limited`.
const LOGIN_FAILURES_MAX: f64 = 20.0;
/// Rate per second at which failed logins are permitted again after a burst.
const LOGIN_FAILURES_PER_S: f64 = 2.0;

/// The directory of the session to which a request of a hosted agent belongs.
const WORKSPACE_PATH: &str = "x-workspace-path";

/// The header in which browsers say whose page makes a request (W3C Fetch Metadata).
const FETCH_SITE: &str = "sec-fetch-site";

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Checks whether a request is allowed, and which client sent it.
pub(crate) struct Auth {
    pub tokens: Tokens,
    /// The browsers that have signed in.
    pub logins: Logins,
    /// Allowed host names without ports, in addition to the loopback names.
    hosts: Vec<String>,
    /// Allowed origins in addition to the server's own (RFC 6454: `https://name:port`).
    origins: Vec<String>,
    /// Directories that sessions may work in.
    roots: Arc<[PathBuf]>,
    failures: Mutex<Failures>,
}

/// A token bucket that limits failed logins.
struct Failures {
    left: f64,
    since: Instant,
}

/// The allowed origin of a cross-origin request, for the response's CORS headers.
pub(crate) type CrossOrigin = Option<HeaderValue>;

impl Auth {
    /// Allows `hosts` and `origins` in addition to the server's own; sessions are limited to
    /// `roots`.
    pub(crate) fn new(tokens: Tokens, logins: Logins, hosts: Vec<String>, origins: Vec<String>, roots: Arc<[PathBuf]>) -> Auth {
        let failures = Mutex::new(Failures { left: LOGIN_FAILURES_MAX, since: Instant::now() });
        Auth { tokens, logins, hosts: hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect(), origins, roots, failures }
    }

    /// Checks the host and the origin of a request on a connection to the address `local`. Call
    /// this before using any other part of the request.
    pub(crate) fn address(&self, uri: &Uri, headers: &HeaderMap, local: IpAddr) -> Result<CrossOrigin> {
        let is_probe = matches!(uri.path(), "/health" | "/ready");
        if is_probe && !headers.contains_key(ORIGIN) {
            // A probe names the server as its network does, and reads no secrets.
            return Ok(None);
        }
        let host = self.host(uri, headers, local)?;
        self.origin(&host, headers)
    }

    fn host(&self, uri: &Uri, headers: &HeaderMap, local: IpAddr) -> Result<Authority> {
        let refused = |host: &str| {
            Error::new(Kind::Forbidden, format!("host {host:?} is not allowed"))
                .hint("use the address of the server, or start it with --allow-host HOST")
        };
        let mut named = headers.get_all(HOST).iter();
        let (first, second) = (named.next(), named.next());
        let given = match (uri.authority(), first, second) {
            (_, _, Some(_)) => return Err(refused("given twice")),
            (Some(authority), _, None) => authority.as_str(),
            (None, Some(host), None) => host.to_str().map_err(|_| refused("unreadable"))?,
            (None, None, None) => return Err(refused("missing")),
        };
        let authority: Authority = given.parse().map_err(|_| refused(given))?;
        let name = authority.host().to_ascii_lowercase();
        // User information (`user@host`) is refused.
        let plain = !authority.as_str().contains('@');
        // DNS rebinding needs a name, so the address of the connection itself is safe.
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let is_own = address.is_ok_and(|address| address == local.to_canonical());
        if plain && (is_own || LOOPBACK.contains(&name.as_str()) || self.hosts.contains(&name)) {
            return Ok(authority);
        }
        Err(refused(given))
    }

    fn origin(&self, host: &Authority, headers: &HeaderMap) -> Result<CrossOrigin> {
        let mut named = headers.get_all(ORIGIN).iter();
        let Some(origin) = named.next() else { return Ok(None) };
        let given = origin.to_str().unwrap_or("unreadable");
        if named.next().is_none() {
            let own = given.strip_prefix("http://").or_else(|| given.strip_prefix("https://"));
            if own.is_some_and(|own| own.eq_ignore_ascii_case(host.as_str())) {
                return Ok(None);
            }
            if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(given)) {
                return Ok(Some(origin.clone()));
            }
        }
        Err(Error::new(Kind::Forbidden, format!("origin {given:?} is not allowed"))
            .hint("to allow it, start the server with --allow-origin ORIGIN"))
    }

    /// Returns the client that the request's token, or the cookie of its browser, belongs to. Only
    /// failed logins are rate-limited.
    pub(crate) fn client(&self, headers: &HeaderMap) -> Result<Client> {
        let token = token(headers);
        if token.is_none()
            && !headers.contains_key(AUTHORIZATION)
            && let Some(cookie) = login_cookie(headers)
        {
            self.is_own_page(headers)?;
            let client = self.logins.token_of(cookie).and_then(|digest| self.tokens.client_of(&digest, &self.roots));
            return client.ok_or_else(|| self.failed(false));
        }
        let client = token.and_then(|token| self.tokens.client(token, &self.roots));
        client.ok_or_else(|| self.failed(token.is_some()))
    }

    /// Returns [`Kind::Forbidden`] if a page of another origin, also of another port, makes the
    /// request: browsers send cookies to all ports of a host, and for the requests of other pages.
    pub(crate) fn is_own_page(&self, headers: &HeaderMap) -> Result<()> {
        let refused = || Err(Error::new(Kind::Forbidden, "the sign-in of the console is for its own page").hint("send a token"));
        let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
        if site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
            return refused();
        }
        let Some(origin) = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default()) else { return Ok(()) };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if own.is_some_and(|own| own.eq_ignore_ascii_case(host)) { Ok(()) } else { refused() }
    }

    /// Returns the digest of a valid token, or of the token of a code, which is then used.
    pub(crate) fn digest_of(&self, token: Option<&str>, code: Option<&str>) -> Result<TokenDigest> {
        let digest = match (token, code) {
            (Some(token), None) => Some(sha256(token.trim())),
            (None, Some(code)) => self.logins.take_code(code),
            _ => return Err(Error::invalid_params("expected either token or code")),
        };
        digest.filter(|digest| self.tokens.client_of(digest, &self.roots).is_some()).ok_or_else(|| self.failed(true))
    }

    /// Returns the access of the hosted agent that the request's token belongs to. If the request
    /// names a workspace, it must be the directory of the agent's session.
    pub(crate) fn agent(&self, tokens: &AgentTokens, headers: &HeaderMap) -> Result<Arc<McpAccess>> {
        let token = token(headers);
        let access = token.and_then(|token| tokens.find(token)).ok_or_else(|| self.failed(token.is_some()))?;
        for named in headers.get_all(WORKSPACE_PATH) {
            if real_path(Path::new(OsStr::from_bytes(named.as_bytes()))) != real_path(&access.cwd) {
                let message = "x-workspace-path: is not the directory of the token's session";
                return Err(Error::new(Kind::Forbidden, message));
            }
        }
        Ok(access)
    }

    /// Returns the client like [`Auth::client`], for the route of hooks, which also accepts the
    /// hook token.
    pub(crate) fn hook_client(&self, headers: &HeaderMap) -> Result<Client> {
        match token(headers).is_some_and(|token| self.tokens.is_hook_token(token)) {
            true => Ok(Client::limited("hook", ClientRole::Controller, None)),
            false => self.client(headers),
        }
    }

    fn failed(&self, wrong: bool) -> Error {
        let mut failures = self.failures.lock();
        let now = Instant::now();
        let back = now.duration_since(failures.since).as_secs_f64() * LOGIN_FAILURES_PER_S;
        failures.left = (failures.left + back).min(LOGIN_FAILURES_MAX);
        failures.since = now;
        if wrong && failures.left < 1.0 {
            return Error::new(Kind::RateLimited, "too many failed logins").hint("wait a second");
        }
        if wrong {
            failures.left -= 1.0;
        }
        let message = if wrong { "the token is not valid" } else { "the token is missing" };
        Error::new(Kind::Unauthenticated, message)
            .hint("send `Authorization: Bearer TOKEN`; the owner token is in the file `token` of nuncio's data directory")
    }
}

/// Returns the name of the cookie of a sign-in, and whether browsers send it only over TLS. The
/// name has the port of the address that the browser shows, since cookies are those of all ports.
pub(crate) fn cookie_name(headers: &HeaderMap) -> (String, bool) {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let is_secure = text(ORIGIN).starts_with("https://");
    let port = text(HOST).rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let port = port.unwrap_or(if is_secure { 443 } else { 80 });
    (format!("{}nuncio-{port}", if is_secure { "__Host-" } else { "" }), is_secure)
}

/// Returns the cookie of the sign-in in a request.
pub(crate) fn login_cookie(headers: &HeaderMap) -> Option<&str> {
    let port = headers.get(HOST)?.to_str().ok()?.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let names = match port {
        Some(port) => [format!("nuncio-{port}"), format!("__Host-nuncio-{port}")],
        None => ["nuncio-80".into(), "__Host-nuncio-443".into()],
    };
    let cookies = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    let mut pairs = cookies.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| names.iter().any(|one| one == name)).map(|(_, value)| value)
}

/// Returns the bearer token of a request. Returns `None` if there is no `Authorization` header or
/// more than one.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    match (given.next(), given.next()) {
        (Some(value), None) => value.to_str().ok().and_then(bearer),
        _ => None,
    }
}

/// Returns the token in `Bearer TOKEN` (RFC 6750, section 2.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.trim())
}
