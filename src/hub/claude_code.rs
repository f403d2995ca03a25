//! Hosts Claude Code over its stream of JSON lines.

mod conversation;
mod hooks;
mod turn;
mod update;
mod wire;

pub(super) use conversation::{ARGUMENTS, LOGIN, open};
