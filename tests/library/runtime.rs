//! The native agent.

mod mcp;
