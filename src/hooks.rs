//! Hooks: code of users and embedders that runs at six events of tool calls and model requests. A
//! hook is a command with JSON as input and output, or an implementation of [`Hook`].

mod answer;
mod command;
mod conversation;
#[deny(missing_docs)]
mod hook;
#[deny(missing_docs)]
mod request;
mod runner;

pub use answer::{CompactionAnswer, HookDecision, InputAnswer, MessagesAnswer, OutputAnswer, SystemAnswer, ValidationAnswer};
pub use command::CommandHook;
pub(crate) use conversation::well_formed;
pub use hook::{Hook, HookEffect, HookError};
pub use request::{HookCompaction, HookRequest, HookTool};
pub(crate) use runner::{HookRun, Hooks};
