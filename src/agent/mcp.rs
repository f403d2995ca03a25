//! MCP servers of a session: start, sign-in, tools, prompts, and requests of the servers.

pub(super) mod access;
#[cfg(feature = "mcp")]
pub(super) mod calls;
pub mod form_answer;
pub mod form_options;
#[cfg(feature = "mcp")]
pub(super) mod launch;
#[cfg(feature = "mcp")]
pub(super) mod prompts;
#[cfg_attr(not(feature = "mcp"), path = "mcp/servers_disabled.rs")]
pub(super) mod servers;
pub(super) mod wait;
