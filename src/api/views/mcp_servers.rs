//! The MCP servers that a client gives for a session (ACP session setup, `mcpServers`).

use std::collections::BTreeMap;

use crate::api::dispatch::call_context::CallContext;
use crate::config::{McpServer, SecretText};
use crate::error::{Error, Kind, Result};
use crate::protocol::acp;

/// Converts the field `mcpServers` to settings, by name. A client whose token is limited to roots
/// cannot start programs.
pub(in crate::api) fn mcp_servers(cx: &CallContext, servers: Option<Vec<acp::McpServer>>) -> Result<BTreeMap<String, McpServer>> {
    let mut converted = BTreeMap::new();
    for server in servers.into_iter().flatten() {
        if matches!(server, acp::McpServer::Stdio(_)) && !cx.client.sees_all {
            return Err(Error::new(Kind::Forbidden, "mcpServers: a token that is limited to roots cannot start programs"));
        }
        let (name, settings) = convert(server)?;
        let wrong = |why: String| Error::invalid_params(format!("mcpServers: {name}: {why}"));
        settings.check().map_err(wrong)?;
        if converted.contains_key(&name) {
            return Err(wrong("two servers have this name".into()));
        }
        converted.insert(name, settings);
    }
    Ok(converted)
}

fn convert(server: acp::McpServer) -> Result<(String, McpServer)> {
    match server {
        acp::McpServer::Stdio(server) => {
            let command = [server.command.to_string_lossy().into_owned()].into_iter().chain(server.args).collect();
            let env = server.env.into_iter().map(|variable| (variable.name, SecretText::literal(variable.value))).collect();
            Ok((server.name, McpServer { command, env, ..McpServer::default() }))
        }
        acp::McpServer::Http(server) => {
            let headers = server.headers.into_iter().map(|header| (header.name, SecretText::literal(header.value))).collect();
            Ok((server.name, McpServer { url: Some(server.url), headers, ..McpServer::default() }))
        }
        acp::McpServer::Sse(server) => {
            Err(Error::invalid_params(format!("mcpServers: {}: the transport \"sse\" is not supported", server.name))
                .hint("use the transport \"http\" (streamable HTTP), if the server has it"))
        }
        _ => Err(Error::invalid_params("mcpServers: unknown transport")),
    }
}
