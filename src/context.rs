//! Builds the conversation and the system prompt that a model receives, from events and settings.
//! Apart from reading instruction and prompt files, all functions are pure.

pub(crate) mod commands;
pub mod history;
pub(crate) mod instructions;
pub(crate) mod system_prompt;
