//! What models receive besides the words of the conversation: the environment, instruction files,
//! the texts of slash commands, skills, documents and audio.

mod commands;
mod environment;
mod instructions;
mod lookups;
pub mod media;
mod messages;
mod unknown_commands;

use serde_json::Value;

/// The bodies of the events of a type in a log.
fn bodies<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().map(|event| &event["body"]).filter(|body| body["type"] == kind).collect()
}
