//! Connections, each of which is opened when it is needed, and again after it was lost.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Row, SimpleQueryMessage, Statement};

use super::address::DatabaseAddress;
use super::failure::failed;
use super::tls::Connector;
use crate::error::{Error, Kind, Result};
use crate::task;

/// Usual timeout of one statement, including the connection.
const STATEMENT: Duration = Duration::from_secs(30);
/// Timeout of a connection: its host may accept it and not answer.
const OPENING: Duration = Duration::from_secs(20);
const SERVER_VERSION_MIN: u32 = 140_000;

/// Settings of each connection. A commit is on the disk before it is reported. A stronger setting
/// of the server, for replicas, stays. Compiling a statement takes longer than running it. Plans
/// are kept, also those of tables that were empty: they must use the indexes.
const SETTINGS: &str = "SET statement_timeout = '25s'; SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '10s'; \
     SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_mergejoin = off; \
     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')";

const SERVER_VERSION: &str = "SELECT current_setting('server_version_num'), current_setting('server_version')";

/// A connection with its prepared statements.
pub(super) struct OpenConnection {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl OpenConnection {
    /// Connects to the first host of the address that accepts writes. With `notified`, listens to
    /// notifications, whose payloads it receives.
    pub(super) async fn open(address: &DatabaseAddress, notified: Option<mpsc::Sender<String>>) -> Result<OpenConnection> {
        let opened = tokio::time::timeout(OPENING, OpenConnection::connect(address, notified)).await;
        opened.unwrap_or_else(|_| Err(no_answer("connecting to", address, OPENING)))
    }

    async fn connect(address: &DatabaseAddress, notified: Option<mpsc::Sender<String>>) -> Result<OpenConnection> {
        let doing = "connecting to";
        let opened = address.config.connect(Connector::new(address)?).await;
        let listens = notified.is_some();
        let (client, mut connection) = opened.map_err(|error| failed(doing, address.shown(), error))?;
        task::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let (AsyncMessage::Notification(message), Some(notified)) = (message, &notified) {
                    // Fails if the queue is full or the listener has ended.
                    let _ = notified.try_send(message.payload().to_owned());
                }
            }
        });
        let listen = if listens { "LISTEN nuncio;" } else { "" };
        let answers = client.simple_query(&format!("{SETTINGS}; {listen} {SERVER_VERSION}")).await;
        let answers = answers.map_err(|error| failed(doing, address.shown(), error))?;
        let row = answers.iter().rev().find_map(|answer| if let SimpleQueryMessage::Row(row) = answer { Some(row) } else { None });
        let column = |index| row.and_then(|row| row.get(index)).unwrap_or_default();
        let (version, name) = (column(0).parse().unwrap_or(0), column(1));
        if version < SERVER_VERSION_MIN {
            let message = format!("{}: PostgreSQL {name} is too old", address.shown());
            return Err(Error::new(Kind::Unsupported, message).hint("use PostgreSQL 14 or newer"));
        }
        Ok(OpenConnection { client, statements: Mutex::default() })
    }

    /// Returns the client, for statements without parameters.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    async fn query(
        &self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<Vec<Row>, tokio_postgres::Error> {
        let known = self.statements.lock().get(sql).cloned();
        if let Some(statement) = known {
            let result = self.client.query(&statement, params).await;
            // Another program has changed the type of a column since: prepare the statement again.
            let is_outdated = |error: &tokio_postgres::Error| error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED);
            if !result.as_ref().is_err_and(is_outdated) {
                return result;
            }
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().insert(sql, statement.clone());
        self.client.query(&statement, params).await
    }
}

/// One connection to the database. Concurrent statements are sent one after the other, without
/// waiting for results.
pub(super) struct Link {
    address: Arc<DatabaseAddress>,
    connection: tokio::sync::Mutex<Option<Arc<OpenConnection>>>,
    timeout: Duration,
}

impl Link {
    /// Creates a connection, which is opened by the first statement.
    pub(super) fn new(address: Arc<DatabaseAddress>) -> Link {
        Link { address, connection: tokio::sync::Mutex::default(), timeout: STATEMENT }
    }

    /// Sets the timeout of each statement.
    pub(super) fn with_timeout(self, timeout: Duration) -> Link {
        Link { timeout, ..self }
    }

    /// Returns the connection. Opens it if it is not open.
    pub(super) async fn open(&self) -> Result<Arc<OpenConnection>> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|open| !open.client.is_closed()) {
            return Ok(open.clone());
        }
        let open = Arc::new(OpenConnection::open(&self.address, None).await?);
        *connection = Some(open.clone());
        Ok(open)
    }

    /// Runs a statement. If it does not return in time, the connection is closed, and the effect is
    /// unknown.
    pub(super) async fn rows(&self, doing: &str, sql: &'static str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let mut used = None;
        let run = async {
            let open = used.insert(self.open().await?);
            open.query(sql, params).await.map_err(|error| self.failed(doing, error))
        };
        if let Ok(result) = tokio::time::timeout(self.timeout, run).await {
            return result;
        }
        self.connection.lock().await.take_if(|open| used.as_ref().is_some_and(|used| Arc::ptr_eq(open, used)));
        Err(no_answer(doing, &self.address, self.timeout))
    }

    /// Converts an error of an operation.
    pub(super) fn failed(&self, doing: &str, error: tokio_postgres::Error) -> Error {
        failed(doing, self.address.shown(), error)
    }
}

/// Creates the error for a server that does not answer.
pub(super) fn no_answer(doing: &str, address: &DatabaseAddress, waited: Duration) -> Error {
    Error::new(Kind::StoreUnavailable, format!("{doing} {}: no answer for {} s", address.shown(), waited.as_secs()))
}
