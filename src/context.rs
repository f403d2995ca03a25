//! Builds what a model reads from events and settings. Apart from reading instruction and prompt
//! files, all functions are pure.

pub(crate) mod commands;
pub mod history;
pub(crate) mod instructions;
pub(crate) mod system_prompt;
