//! What models receive besides the words of the conversation: the environment, instruction files,
//! the texts of slash commands, skills, documents and audio.

mod commands;
mod environment;
mod instructions;
mod lookups;
pub mod media;
mod messages;
mod notes;
mod tool_lists;
mod unknown_commands;

use harness::log::bodies;
