//! Builds what a model reads from events and settings. Apart from reading instruction and prompt
//! files, all functions are pure.

pub mod commands;
pub mod history;
pub mod instructions;
pub mod system_prompt;
