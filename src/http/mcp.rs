//! `/mcp`: nuncio's MCP server for hosted agents, with the transport "streamable HTTP" without
//! sessions (modelcontextprotocol.io). The bearer token names the session of the agent.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http_body_util::Full;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::params;
use super::response::ApiError;
use super::state::StateExtension;
use crate::mcp_server::ToolServer;
use crate::runtime::McpAccess;

pub(crate) const PATH: &str = "/mcp";

/// Handles `POST /mcp`.
pub(crate) async fn serve(
    Extension(state): StateExtension,
    Extension(access): Extension<Arc<McpAccess>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let body = Full::new(params::bytes(&state, body).await?);
    let server = ToolServer::new(state.app.clone(), access);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        // The host, the origin and the size of the body have been checked.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(usize::MAX)
        .with_cancellation_token(state.ending.clone());
    let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config);
    Ok(service.handle(Request::from_parts(head, body)).await.map(Body::new))
}
