//! Nuncio's own agent: asks a model, runs the tools it calls, until it is done.

mod models;
mod native;
mod step;
mod tool_call;

pub use models::{ModelChoice, Models};
pub use native::NativeAgents;
