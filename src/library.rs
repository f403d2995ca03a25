//! The Rust library: an agent inside another program. docs/LIBRARY.md is its guide.

mod agent;
mod agent_state;
mod builder;
mod closure_hook;
mod context;
mod fixed_model;
mod own_tool;
mod question;
mod questions;
#[cfg(feature = "http")]
mod server;
mod session;
mod store;
mod turn;

pub use agent::Agent;
pub use builder::AgentBuilder;
pub use context::ToolContext;
pub use own_tool::{Output, Tool, ToolAccess};
pub use question::{Decision, Question};
#[cfg(feature = "http")]
pub use server::Server;
pub use session::{Events, Session};
pub use store::Store;
pub use turn::Turn;
