//! MCP servers of a session: start, sign-in, tools and prompts.

#[cfg(feature = "mcp")]
pub(super) mod launch;
#[cfg(feature = "mcp")]
pub(crate) mod prompts;
#[cfg_attr(not(feature = "mcp"), path = "mcp/servers_disabled.rs")]
pub(crate) mod servers;
