//! Signing in to an MCP server with OAuth: the user's browser is sent to the authorization server,
//! which redirects it to a listener of nuncio with a code for the tokens.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use rmcp::service::{ServiceError, serve_client};
use rmcp::transport::auth::{AuthError, AuthorizationRequest, AuthorizationSession, OAuthState};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connection::chain;
use super::launch::OauthClient;
use super::server_requests::is_web;
use super::tokens::{McpTokens, UrlTokens};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::web::{HttpClients, request_challenge};

/// Maximum time that a user needs to sign in to an MCP server.
const MCP_LOGIN: Duration = Duration::from_secs(600);
/// Maximum number of connections to the listener of a sign-in to an MCP server.
const MCP_LOGIN_CONNECTIONS_MAX: usize = 16;
/// Timeout of reading a request, and of writing its response, during a sign-in to an MCP server.
const MCP_LOGIN_REQUEST: Duration = Duration::from_secs(30);
/// Maximum length of the head of a request during a sign-in to an MCP server, in bytes.
const MCP_LOGIN_HEAD_BYTES_MAX: usize = 16 << 10;

/// The parameters of a sign-in.
pub(crate) struct LoginRequest {
    /// URL of the MCP server.
    pub url: String,
    /// The registered client; `None`: nuncio registers itself at the authorization server.
    pub client: Option<OauthClient>,
    /// The requested scopes. An empty list stands for the scopes that the server requires.
    pub scopes: Vec<String>,
    /// Port of the listener; 0: any free port.
    pub port: u16,
}

/// A sign-in that waits for the user's browser.
pub(crate) struct McpLogin {
    session: AuthorizationSession,
    tokens: UrlTokens,
    listener: TcpListener,
}

const CALLBACK: &str = "/callback";

impl McpLogin {
    /// Finds the authorization server and registers nuncio there.
    pub(crate) async fn start(request: LoginRequest, web: &HttpClients, tokens: &McpTokens) -> Result<McpLogin> {
        let listener = TcpListener::bind(("127.0.0.1", request.port)).await;
        let failed = |error| Error::io(format_args!("listening on port {} of 127.0.0.1", request.port), error);
        let listener = listener.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let manager = timeout(limits::MCP_START, web.authorization(&request.url)).await;
        let mut manager = manager.map_err(|_| timeout_error())?.map_err(Error::internal)?;
        let tokens = tokens.for_url(&request.url);
        manager.set_credential_store(tokens.clone());
        let mut scopes = request.scopes;
        let missing = tokens.wanted_scopes().into_iter().filter(|scope| !scopes.contains(scope)).collect::<Vec<_>>();
        scopes.extend(missing);
        let mut wanted = AuthorizationRequest::new(format!("http://127.0.0.1:{port}{CALLBACK}"))
            .with_client_name("nuncio")
            .with_initial_scope_selection()
            .with_scopes(scopes);
        if let Ok(Some(challenge)) = timeout(limits::MCP_START, challenge(&request.url, web)).await {
            wanted = wanted.with_challenge(challenge);
        }
        if let Some(client) = request.client {
            wanted = wanted.with_preregistered_client(client.id);
            if let Some(secret) = client.secret {
                wanted = wanted.with_client_secret(secret);
            }
        }
        let mut state = OAuthState::Unauthorized(manager);
        timeout(limits::MCP_START, state.start_authorization(wanted))
            .await
            .map_err(|_| timeout_error())?
            .map_err(|error| Error::internal(chain(&error)))?;
        let OAuthState::Session(session) = state else { return Err(Error::internal("the sign-in has not started")) };
        // A browser would run code or open files at other addresses.
        if !is_web(&session.auth_url) {
            return Err(Error::invalid_params(format!(
                "the authorization server names an address that is not on the web: {}",
                session.auth_url
            )));
        }
        Ok(McpLogin { session, tokens, listener })
    }

    /// Returns the address that the user opens in a browser.
    pub(crate) fn address(&self) -> &str {
        &self.session.auth_url
    }

    /// Waits for the browser, or for the address of its redirection in `pasted`, and stores the
    /// tokens. The error is [`Kind::Unauthenticated`] if the authorization server refused.
    pub(crate) async fn finish(self, pasted: mpsc::Receiver<String>, note: impl Fn(&str)) -> Result<()> {
        let waited = timeout(MCP_LOGIN, self.wait(pasted, note)).await;
        waited.unwrap_or_else(|_| {
            let message = format!("the browser did not come back within {} s", MCP_LOGIN.as_secs());
            Err(Error::new(Kind::Timeout, message))
        })
    }

    async fn wait(self, mut pasted: mpsc::Receiver<String>, note: impl Fn(&str)) -> Result<()> {
        // Browsers open connections before they need them: several are read at the same time.
        let mut requests: FuturesUnordered<BoxFuture<'_, Option<(TcpStream, String)>>> = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if requests.len() < MCP_LOGIN_CONNECTIONS_MAX => {
                    let (stream, _) = accepted.map_err(|error| Error::io("waiting for the browser", error))?;
                    requests.push(Box::pin(async { timeout(MCP_LOGIN_REQUEST, target(stream)).await.ok().flatten() }));
                }
                Some(request) = requests.next() => {
                    let Some((stream, target)) = request else { continue };
                    let Some(result) = self.handle_redirect(&target).await else {
                        respond(stream, "404 Not Found", "not found").await;
                        continue;
                    };
                    match &result {
                        Ok(()) => respond(stream, "200 OK", "You are signed in. You can close this page.").await,
                        Err(_) => respond(stream, "400 Bad Request", "The sign-in failed. nuncio shows the reason.").await,
                    }
                    return result;
                }
                Some(line) = pasted.recv() => match line.trim().find(CALLBACK).map(|start| line.trim()[start..].to_owned()) {
                    Some(target) => match self.handle_redirect(&target).await {
                        Some(result) => return result,
                        None => note("this address belongs to another sign-in"),
                    },
                    None => note(&format!("paste the address that the browser shows at the end; it contains {CALLBACK}")),
                },
            }
        }
    }

    /// Processes the redirection to `target`. Returns `None` for requests that do not belong to
    /// this sign-in.
    async fn handle_redirect(&self, target: &str) -> Option<Result<()>> {
        let (path, query) = target.split_once('?')?;
        let state = |query| parameter(query, "state");
        if path != CALLBACK || state(query).is_none() || state(query) != state(self.session.auth_url.split_once('?')?.1) {
            return None;
        }
        if let Some(error) = parameter(query, "error") {
            let error: String = error.chars().filter(|char| char.is_ascii_alphanumeric() || *char == '_').collect();
            return Some(Err(Error::new(Kind::Unauthenticated, format!("the authorization server refused: {error}"))));
        }
        // Take the lock, so that a concurrent refresh of earlier tokens cannot overwrite the new
        // ones.
        let _locked = match self.tokens.lock().await {
            Ok(locked) => locked,
            Err(why) => return Some(Err(Error::internal(format!("locking the tokens: {why}")))),
        };
        let address = format!("http://127.0.0.1{target}");
        let exchanged = timeout(limits::MCP_START, self.session.handle_callback_url(&address)).await;
        Some(match exchanged {
            Ok(Ok(_)) => {
                self.tokens.forget_wanted_scopes();
                Ok(())
            }
            Ok(Err(error)) => Err(exchange_error(&error)),
            Err(_) => Err(timeout_error()),
        })
    }
}

/// Connects without tokens. Returns the server's challenge: some servers name their metadata and
/// the scope only there.
async fn challenge(url: &str, web: &HttpClients) -> Option<String> {
    let transport = web.streamable_http(url, &[], None).ok()?;
    match serve_client((), transport).await {
        Err(error) => error.auth_challenge().map(String::from),
        Ok(service) => {
            // Some servers require tokens only for their tools.
            let refused = service.list_tools(None).await.err();
            let challenge = match &refused {
                Some(ServiceError::TransportSend(error)) => request_challenge(&*error.error).map(String::from),
                _ => None,
            };
            // Ignore an error: the connection has already ended.
            let _ = service.cancel().await;
            challenge
        }
    }
}

/// Returns the value of a parameter, still encoded.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// Reads the head of a GET request. Returns its target.
async fn target(mut stream: TcpStream) -> Option<(TcpStream, String)> {
    let mut head = Vec::new();
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if head.len() > MCP_LOGIN_HEAD_BYTES_MAX || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\r').next()?).ok()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?.to_owned();
    Some((stream, target))
}

async fn respond(mut stream: TcpStream, status: &str, text: &str) {
    let body = format!("<!doctype html><meta charset=utf-8><title>nuncio</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let written = async {
        stream.write_all((head + &body).as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = timeout(MCP_LOGIN_REQUEST, written).await;
}

fn timeout_error() -> Error {
    let message = format!("the authorization server did not answer within {} s", limits::MCP_START.as_secs());
    Error::new(Kind::Timeout, message)
}

/// Converts the error of an exchange of the code for tokens.
fn exchange_error(error: &AuthError) -> Error {
    // rmcp keeps only the message of an error response (RFC 6749, section 5.2).
    let refused = matches!(error, AuthError::TokenExchangeFailed(why) if why.starts_with("Server returned error response"));
    Error::new(if refused { Kind::Unauthenticated } else { Kind::Internal }, chain(error))
}
