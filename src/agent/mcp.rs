//! MCP servers of a session: start, sign-in, tools, prompts, and requests of the servers.

pub(super) mod access;
pub(super) mod calls;
pub(super) mod form_answer;
pub(super) mod form_options;
pub(super) mod launch;
pub(super) mod prompts;
pub(super) mod servers;
pub(super) mod wait;
