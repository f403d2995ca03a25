//! The native agent: requests answers from a model and runs its tool calls until the turn ends.

mod answer;
mod bundle;
mod context_window;
mod fallback;
mod local_commands;
mod messages;
mod native;
mod native_agent;
mod plan_approval;
mod prompt;
mod repetition;
mod request;
mod run;
mod setup;
mod step;
mod title;

pub(crate) use messages::UNATTENDED;
pub(crate) use native::NativeAgents;
pub(crate) use setup::{first_request, offered};
