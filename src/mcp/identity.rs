//! Digests of a server's launch and of its tools: a remembered permission for a call is valid only
//! for the same program or URL and the same tool definition.

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::launch::{McpLaunch, McpTransport};

/// Returns the identity of a server: its program with its variables, such as PATH or NODE_OPTIONS,
/// which decide what runs, or its URL. Values of headers are not part of it: they are secrets that
/// change.
pub(super) fn server_identity(launch: &McpLaunch) -> String {
    let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let launched = match &launch.transport {
        McpTransport::Stdio { command, env, cwd, .. } => json!([command, env, cwd.to_string_lossy()]),
        McpTransport::Http { url, headers, bearer_token_command, .. } => {
            json!([url, names(headers), bearer_token_command.as_ref().map(|program| &program.command)])
        }
    };
    definition_digest(&launch.name, &launched)
}

/// Returns the digest of a definition by the server with this identity.
pub(crate) fn definition_digest(identity: &str, definition: &Value) -> String {
    let hash = digest(&SHA256, json!([identity, definition]).to_string().as_bytes());
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}
