//! The text that a model receives: system prompt, messages, instructions and repository.

pub(super) mod bundle;
pub(super) mod local_commands;
pub(super) mod messages;
pub(super) mod nested_instructions;
pub(super) mod prompt;
