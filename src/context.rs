//! From events to what a model reads: pure functions, no clock, no disk but the instruction files.

pub mod commands;
pub mod history;
pub mod instructions;
pub mod system_prompt;
