//! Hosts Codex over the protocol of its app server.

mod conversation;
mod options;
mod own_rules;
mod turn;
mod update;

pub(super) use conversation::{LOGIN, open};
pub(super) use own_rules::own_rules;
