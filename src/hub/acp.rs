//! Hosts agents that speak the Agent Client Protocol.

mod conversation;
mod gemini_command;
mod kimi_input;
mod turn;
mod update;

pub(super) use conversation::open;
