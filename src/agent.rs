//! The native agent: requests answers from a model and runs its tool calls until the turn ends.

pub mod gate;
mod models;
mod native;
mod step;
mod tool_call;

pub use models::{ModelChoice, Models};
pub use native::{Desk, NativeAgents};
