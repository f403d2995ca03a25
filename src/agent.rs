//! The native agent: requests answers from a model and runs its tool calls until the turn ends.

mod environment;
mod execute;
mod models;
mod native;
mod permission;
mod services;
mod step;
mod turn_loop;

pub use environment::SessionEnvironment;
pub use execute::{CallHost, CallOutcome, Question, ToolCall, ToolUse};

pub use models::{ModelChoice, Models};
pub use native::NativeAgents;
pub use services::Services;
