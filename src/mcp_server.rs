//! nuncio as an MCP server: its tools for other agents. The transport is standard input and output
//! (`nuncio mcp serve`) or HTTP (`/mcp`).

mod delegation;
mod elicitation;
mod handler;
mod inputs;
mod schema;
mod server;
mod tools;

pub(crate) use server::ToolServer;
