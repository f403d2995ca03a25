//! Commands for sessions: list, show, export, import.

pub(super) mod command;
pub(super) mod export;
pub(super) mod export_line;
pub(super) mod import;
pub(super) mod opening;
pub(super) mod session_id;
pub(super) mod session_list;
pub(super) mod session_requests;
pub(super) mod session_show;
pub(super) mod stored;
