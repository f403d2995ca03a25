//! Builds the conversation and the system prompt that a model receives, from events and settings.
//! Apart from reading instruction and prompt files, all functions are pure.

pub(crate) mod agent_definitions;
pub(crate) mod bundle;
pub(crate) mod check_commands;
pub(crate) mod command_lists;
pub(crate) mod commands;
mod conversation;
pub(crate) mod environment;
pub(crate) mod excerpt;
pub(crate) mod frontmatter;
pub mod history;
pub(crate) mod instructions;
pub(crate) mod local_command;
pub(crate) mod manifests;
pub(crate) mod notes;
mod open_answer;
pub(crate) mod project_dirs;
pub(crate) mod prompt_files;
pub(crate) mod request_record;
pub(crate) mod size;
pub(crate) mod skills;
pub(crate) mod summary;
pub(crate) mod system_prompt;
mod usage_mark;
