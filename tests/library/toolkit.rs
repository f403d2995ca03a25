//! Code shared by the tools.

mod mcp_names;
