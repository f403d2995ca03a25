//! MCP servers.

mod remembered_permissions;
