//! Hosts OpenCode: its server process, sessions, turns and events.

mod calls;
mod catalog;
mod conversation;
mod events;
mod stream;
mod tree;
mod turn;

pub(super) use crate::hub::opencode_server::OpencodeServers;
pub(super) use conversation::open;
