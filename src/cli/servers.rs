//! Commands for MCP servers.

pub(super) mod command;
pub(super) mod login;
