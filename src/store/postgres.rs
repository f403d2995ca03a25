//! The store in a PostgreSQL database (version 14 or newer).
//!
//! Every statement is one round trip and leaves no transaction open, so that a process that stops
//! holds no lock. The tables and columns have the names of the SQLite database.

mod address;
mod commit;
mod connection;
mod copy;
mod events;
mod failure;
mod files;
mod idempotency;
mod listener;
mod migrations;
mod nodes;
mod sessions;
mod tls;
mod workspaces;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use self::address::DatabaseAddress;
use self::connection::{Link, no_answer};
use self::listener::CommitNotifier;
use crate::error::Result;

pub(super) use self::listener::Listener;

/// Timeout of the start, with a migration of the tables.
const OPENING: Duration = Duration::from_secs(60);
/// Timeout of the renewal of a lease.
const BEAT: Duration = Duration::from_secs(4);
/// Number of connections for reads and for changes of single rows.
const READERS: usize = 3;

/// A PostgreSQL database.
pub(crate) struct PostgresStore {
    address: Arc<DatabaseAddress>,
    readers: [Link; READERS],
    next_reader: AtomicUsize,
    writer: Link,
    /// For renewals of the lease, which wait for no other statement.
    beats: Link,
    /// See [`PostgresStore::incarnation`].
    incarnation: AtomicI64,
    /// True after a commit whose outcome is unknown.
    outcome_unknown: AtomicBool,
    notifier: CommitNotifier,
}

impl PostgresStore {
    /// Connects to the database and migrates its tables.
    pub(super) async fn open(url: &str) -> Result<PostgresStore> {
        let address = Arc::new(DatabaseAddress::parse(url)?);
        let opened = tokio::time::timeout(OPENING, PostgresStore::connect(address.clone())).await;
        opened.unwrap_or_else(|_| Err(no_answer("opening", &address, OPENING)))
    }

    /// Checks a URL without connecting.
    pub(super) fn check(url: &str) -> Result<()> {
        DatabaseAddress::parse(url).map(drop)
    }

    async fn connect(address: Arc<DatabaseAddress>) -> Result<PostgresStore> {
        let link = || Link::new(address.clone());
        let store = PostgresStore {
            readers: std::array::from_fn(|_| link()),
            next_reader: AtomicUsize::new(0),
            writer: link(),
            beats: link().with_timeout(BEAT),
            incarnation: AtomicI64::new(0),
            outcome_unknown: AtomicBool::new(false),
            notifier: CommitNotifier::start(link()),
            address,
        };
        Listener::check(&store.address, &store.writer).await?;
        migrations::run(&store.writer).await?;
        Ok(store)
    }

    /// Returns the address without the password, for messages.
    pub(super) fn place(&self) -> &str {
        self.address.shown()
    }

    /// Starts to listen for writes of other processes.
    pub(super) async fn listen(self: &Arc<Self>) -> Result<Listener> {
        Listener::open(self.address.clone(), self.notifier.own().to_owned()).await
    }

    /// Runs a statement on one of the connections for reads. `doing` names the operation in errors.
    async fn rows(&self, doing: &str, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let next = self.next_reader.fetch_add(1, Ordering::Relaxed);
        self.readers[next % READERS].rows(doing, sql, params).boxed().await
    }

    /// Runs a statement that returns at most one row, as [`PostgresStore::rows`] does.
    async fn row(&self, doing: &str, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Option<Row>> {
        Ok(self.rows(doing, sql, params).await?.pop())
    }
}
