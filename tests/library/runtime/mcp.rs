//! MCP servers of a session.

mod form_answer;
mod form_options;
