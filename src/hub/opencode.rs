//! Hosts OpenCode: its server process, sessions, turns and events.

mod calls;
mod catalog;
mod conversation;
mod events;
mod server;
mod stream;
mod tree;
mod turn;

pub(super) use conversation::open;
pub(super) use server::OpencodeServers;
