//! Nuncio's own agent: asks a model, runs the tools it calls, until it is done.

pub mod gate;
mod models;
mod native;
mod step;
mod tool_call;

pub use models::{ModelChoice, Models};
pub use native::{Desk, NativeAgents};
