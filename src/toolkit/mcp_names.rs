//! Names of MCP tools for models: `mcp__SERVER__TOOL`.

use std::collections::HashMap;

use ring::digest::{SHA256, digest};

/// Maximum length of the name of an MCP server's tool, which all providers accept.
const MCP_NAME_CHARS_MAX: usize = 64;

/// Returns the names for models of `tools`, pairs of a server's and a tool's name, in the same
/// order. All providers accept the names: at most 64 of the characters `a-z`, `A-Z`, `0-9`, `_` and
/// `-`. The names are distinct: if several tools would have the same name, each whose own name was
/// changed receives a hash of its own name as a suffix.
pub(crate) fn mcp_tool_names(tools: &[(&str, &str)]) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tools: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(mcp_tool_names(tools), expected);
        let mut reversed: Vec<_> = tools.to_vec();
        reversed.reverse();
        let mut names = mcp_tool_names(&reversed);
        names.reverse();
        assert_eq!(names, expected, "independent of the order");
    }

    #[test]
    fn names_are_accepted_by_all_providers_and_distinct() {
        check(&[("docs", "search"), ("docs", "read_it")], &["mcp__docs__search", "mcp__docs__read_it"]);
        check(&[("my docs", "a.b/c")], &["mcp__my_docs__a_b_c"]);
        check(&[("s", "a.b"), ("s", "a_b"), ("s", "a/b")], &["mcp__s__a_b_407e8e5c", "mcp__s__a_b", "mcp__s__a_b_fb3c0e4c"]);
        check(&[("a__b", "c"), ("a", "b__c")], &["mcp__a__b__c_a92700ce", "mcp__a__b__c"]);
        let long = "x".repeat(100);
        let names = mcp_tool_names(&[("s", &long), ("s", &format!("{long}y"))]);
        assert!(names.iter().all(|name| name.len() == 64) && names[0] != names[1], "{names:?}");
    }
}
