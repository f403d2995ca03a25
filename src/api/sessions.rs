//! Methods for sessions: create, read, change, delete.

pub(super) mod archive;
pub(super) mod artifact;
pub(super) mod command_list;
pub(super) mod configure;
pub(super) mod events;
pub(super) mod file_read;
pub(super) mod file_search;
pub(super) mod fork;
pub(super) mod message_list;
pub(super) mod resource_list;
pub(super) mod session;
pub(super) mod session_list;
pub(super) mod title;
