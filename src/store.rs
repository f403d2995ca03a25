//! The SQLite database. All SQL is in this module. Events are stored as opaque rows: the `session`
//! module interprets them.

mod database;
mod events;
mod idempotency;
mod migrations;
mod private;
mod read_only;
mod sessions;

pub use database::{ChangeWatch, Store};
pub use events::{Append, StoredEvent, Writer};
pub use idempotency::IdempotencyRecord;
pub use sessions::{SessionPage, SessionRow};
