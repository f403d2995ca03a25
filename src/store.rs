//! The SQLite database. All SQL is in this module. Events are stored as opaque rows: the `session`
//! module interprets them.

mod database;
mod events;
mod idempotency;
mod migrations;
mod private;
mod read_only;
mod sessions;
mod workspaces;

pub(crate) use database::{ChangeWatch, Store};
pub(crate) use events::{ActivityColumns, Append, StoredEvent, Writer};
pub(crate) use idempotency::IdempotencyRecord;
pub(crate) use sessions::{SessionFilter, SessionPage, SessionRow};
pub(crate) use workspaces::{WorkspaceRow, WorkspaceState};
