//! Methods for sessions: create, read, change, delete.

pub(super) mod archive;
pub(super) mod artifact;
pub(super) mod attachment;
pub(super) mod budget;
pub(super) mod command_list;
pub(super) mod configure;
pub(super) mod context;
pub(super) mod events;
pub(super) mod file_search;
pub(super) mod files;
pub(super) mod fork;
pub(super) mod message_list;
pub(super) mod options;
pub(super) mod session;
pub(super) mod session_list;
pub(super) mod status;
pub(super) mod system_prompt;
pub(super) mod title;
pub(super) mod view;
