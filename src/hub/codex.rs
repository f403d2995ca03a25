//! Hosts Codex over the protocol of its app server.

mod conversation;
mod options;
mod turn;
mod update;

pub(super) use conversation::{LOGIN, open};
