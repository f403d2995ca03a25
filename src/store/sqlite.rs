//! The store in an SQLite database, for the processes of one machine.

mod copy;
mod database;
mod events;
mod idempotency;
mod migrations;
mod private;
mod read_only;
mod sessions;
mod workspaces;

pub(super) use database::{ChangeWatch, SqliteStore};
