//! The store of sessions, events and workspaces. All SQL is in this module. Events are stored as
//! opaque rows: the `session` module interprets them.

mod copy;
mod interface;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
mod sqlite;
mod wakeups;

pub(crate) use copy::{CopyReport, copy};
pub(crate) use interface::Store;
pub(crate) use rows::{
    ActivityColumns, Append, CommitOutcome, Cursor, IdempotencyRecord, NodeAddress, NodeRow, SessionFilter, SessionPage,
    SessionRow, StoredEvent, StoredFile, TakeOutcome, Wakeup, WorkspaceRow, WorkspaceState,
};
pub(crate) use wakeups::Wakeups;
