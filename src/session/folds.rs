//! Folds over the events of a session.

pub(super) mod budget;
mod grants;
pub(crate) mod open_items;
pub(super) mod queued_messages;
pub(crate) mod shown_files;
pub(super) mod signed_event;
pub(super) mod spending;
pub(crate) mod state;
pub(crate) mod summary;
pub(crate) mod turns;
pub(super) mod work_view;
