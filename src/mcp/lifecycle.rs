//! The start and the end of a connection to a server.

use rmcp::model::{ErrorCode, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, Peer, RoleClient};
use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};

use super::connection::{chain, failure_message};
use super::handler::McpHandler;
use super::launch::OauthClient;
use super::tokens::UrlTokens;
use crate::web::{HttpClients, challenge_scope};

/// The end of an instance of a server.
pub(super) enum RunEnd {
    Stopped,
    Failed(String),
    /// A restart would fail in the same way.
    Hopeless(String),
    /// A restart would fail until the user has signed in.
    Unauthorized,
    /// The server refused `initialize` with this error: it may support only protocol 2026-07-28.
    Refused(String),
}

/// The start of an instance of a server.
pub(super) struct RunStart {
    /// Restart count of the server.
    pub run: u32,
    /// The reason for the end of the previous instance.
    pub after: Option<String>,
    /// The error with which the server refused `initialize`; then `server/discover` is sent.
    pub refused: Option<String>,
    /// The tokens of a sign-in, if the connection uses them.
    pub tokens: Option<UrlTokens>,
}

impl RunStart {
    /// Returns how the connection is initialized.
    pub(super) fn lifecycle(&self) -> ClientLifecycleMode {
        match self.refused {
            Some(_) => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
            None => ClientLifecycleMode::Initialize,
        }
    }
}

/// Error codes for `initialize` from servers that support only protocol 2026-07-28.
const WITHOUT_INITIALIZE: [ErrorCode; 5] = [
    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
    ErrorCode::HEADER_MISMATCH,
    ErrorCode::METHOD_NOT_FOUND,
    ErrorCode::INVALID_REQUEST,
    ErrorCode::INVALID_PARAMS,
];

/// Loads the OAuth tokens of a server to which the user has signed in. The error is a message.
pub(super) async fn signed_in(
    web: &HttpClients,
    url: &str,
    stored: UrlTokens,
    client: Option<&OauthClient>,
) -> Result<AuthorizationManager, String> {
    let mut manager = web.authorization(url).await?;
    manager.set_credential_store(stored);
    manager.initialize_from_store().await.map_err(|error| chain(&error))?;
    if let Some(OauthClient { id, secret: Some(secret) }) = client {
        let config = OAuthClientConfig::new(id, url).with_client_secret(secret);
        manager.configure_client(config).map_err(|error| chain(&error))?;
    }
    Ok(manager)
}

/// Notifies the handler of changes of the server's lists. Since protocol 2026-07-28 a client must
/// subscribe to them. Never returns.
pub(super) async fn notify_changes<T>(peer: &Peer<RoleClient>, handler: &McpHandler) -> T {
    let info = peer.peer_info();
    let subscribes = info.as_deref().filter(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28);
    if let Some(capabilities) = subscribes.map(|info| &info.capabilities) {
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = capabilities.tools.as_ref().and_then(|tools| tools.list_changed).filter(|changes| *changes);
        filter.prompts_list_changed =
            capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed).filter(|changes| *changes);
        if filter != SubscriptionFilter::new()
            && let Ok(mut changes) = peer.listen(filter).await
        {
            while let Ok(Some(_)) = changes.next().await {
                handler.lists_changed.notify_one();
            }
        }
    }
    std::future::pending().await
}

/// Returns the end of an instance whose initialization failed. A server that requires a sign-in is
/// not restarted until the user has signed in. If the tokens lack a scope, stores the scope for the
/// next sign-in.
pub(super) fn end_after_failed_start(name: &str, start: &RunStart, error: &ClientInitializeError) -> RunEnd {
    if error.is_authorization_required() {
        return RunEnd::Unauthorized;
    }
    if let (Some(challenge), Some(tokens)) = (error.auth_challenge(), &start.tokens) {
        // The tokens lack a scope.
        let scope = challenge_scope(&tokens.url, challenge);
        if let Err(why) = scope.map_or(Ok(()), |scope| tokens.want(&scope)) {
            tracing::warn!(server = name, why, "storing the scope for the next sign-in failed");
        }
        return RunEnd::Unauthorized;
    }
    if let Some(refused) = &start.refused {
        let why = chain(error);
        return RunEnd::Failed(format!("initialization failed: {refused}; without `initialize` (protocol 2026-07-28): {why}"));
    }
    if let ClientInitializeError::JsonRpcError(refused) = error
        && WITHOUT_INITIALIZE.contains(&refused.code)
    {
        return RunEnd::Refused(chain(error));
    }
    let why = match error {
        ClientInitializeError::TransportError { error, .. } => failure_message(name, &*error.error),
        error => chain(error),
    };
    RunEnd::Failed(format!("initialization failed: {why}"))
}
