//! Clients of MCP servers (Model Context Protocol, modelcontextprotocol.io): server processes and
//! HTTP servers, shared by the sessions of this process. The protocol itself is in the crate rmcp.

mod connection;
mod handler;
mod identity;
mod inputs;
mod launch;
mod lifecycle;
mod login;
mod message;
mod open_calls;
mod process_end;
mod readable;
mod server;
mod server_requests;
mod servers;
mod stdio;
mod tokens;
mod tool_list;

pub use connection::{CallError, CallOptions, McpConnection, Offer};
pub(crate) use identity::definition_digest;
pub use launch::{McpLaunch, McpTransport, OauthClient, TokenProgram};
pub(crate) use login::{LoginRequest, McpLogin};
pub use open_calls::{ProgressHandler, ServerRequests};
pub use server::McpServerHandle;
pub(crate) use server::State;
pub use servers::McpServers;
pub use tokens::McpTokens;
pub(crate) use tool_list::describe_omitted;
