//! Names of MCP tools for models: `mcp__SERVER__TOOL`.

use std::collections::HashMap;

use ring::digest::{SHA256, digest};

/// Maximum length of the name of an MCP server's tool, which all providers accept.
const MCP_NAME_CHARS_MAX: usize = 64;

/// Returns the names for models of `tools`, pairs of a server's and a tool's name, in the same
/// order. All providers accept the names: at most 64 of the characters `a-z`, `A-Z`, `0-9`, `_` and
/// `-`. The names are distinct: if several tools would have the same name, each whose own name was
/// changed receives a hash of its own name as a suffix.
pub fn mcp_tool_names(tools: &[(&str, &str)]) -> Vec<String> {
    let plain: Vec<String> = tools.iter().map(|(server, tool)| join(server, tool)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *counts.entry(name).or_default() += 1;
    }
    let named = tools.iter().zip(&plain).map(|((server, tool), name)| {
        // A server's name without `__` determines where the name is split.
        let is_exact = !server.contains("__") && *name == format!("mcp__{server}__{tool}");
        let is_distinct = counts.get(name.as_str()) == Some(&1) || is_exact;
        if is_distinct && name.len() <= MCP_NAME_CHARS_MAX { name.clone() } else { with_hash(name, server, tool) }
    });
    named.collect()
}

fn join(server: &str, tool: &str) -> String {
    let accepted = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("mcp__{server}__{tool}").chars().map(accepted).collect()
}

/// Shortens `name` and appends a hash of the original names.
fn with_hash(name: &str, server: &str, tool: &str) -> String {
    let hash = digest(&SHA256, format!("{server}\0{tool}").as_bytes());
    let hash: String = hash.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}_{hash}", &name[..name.len().min(MCP_NAME_CHARS_MAX - hash.len() - 1)])
}
