//! Hosts Claude Code over its stream of JSON lines.

mod conversation;
mod observer;
mod turn;
mod update;

pub(super) use conversation::{ARGUMENTS, LOGIN, open};
