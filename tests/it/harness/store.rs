//! The store of a home: a file of SQLite, or, with `NUNCIO_TEST_STORE` (tests/postgres/run), a
//! database of PostgreSQL. Both have the same tables and columns.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection};

use super::Home;

/// URL of PostgreSQL's databases, in which `{database}` stands for the name of one.
const TEMPLATE: &str = "NUNCIO_TEST_STORE";

/// Returns true if the store of all homes is PostgreSQL.
pub fn on_postgres() -> bool {
    std::env::var_os(TEMPLATE).is_some()
}

/// A database of PostgreSQL, which is dropped with this value.
pub(super) struct PostgresDatabase {
    name: String,
    template: String,
}

impl PostgresDatabase {
    /// Creates a database for one home; none if the store is SQLite.
    pub(super) fn create() -> Option<PostgresDatabase> {
        let template = std::env::var(TEMPLATE).ok()?;
        let database = PostgresDatabase { name: format!("test_{}", uuid::Uuid::new_v4().simple()), template };
        database.administer(&format!("CREATE DATABASE {}", database.name)).unwrap();
        Some(database)
    }

    pub(super) fn url(&self) -> String {
        self.template.replace("{database}", &self.name)
    }

    /// Runs a statement about this database in another one, which every cluster has.
    fn administer(&self, statement: &str) -> Result<Vec<String>, String> {
        psql(&self.template.replace("{database}", "postgres"), statement)
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        // The server may have ended before the test.
        let _ = self.administer(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// The store of a home, for statements that nuncio does not make.
pub enum TestStore {
    /// Path of the file.
    Sqlite(PathBuf),
    /// URL of the database.
    Postgres(String),
}

impl Home {
    pub fn store(&self) -> TestStore {
        match self.database() {
            Some(database) => TestStore::Postgres(database.url()),
            None => TestStore::Sqlite(self.data().join("nuncio.db")),
        }
    }

    /// Returns the address of the process that has claimed a session.
    pub fn owner(&self, session: &str) -> String {
        if on_postgres() {
            let node = format!("SELECT process FROM nodes WHERE incarnation = (SELECT owner FROM sessions WHERE id = '{session}')");
            return self.sql(&node).remove(0);
        }
        std::fs::read_to_string(self.data().join("locks").join(session)).unwrap()
    }

    /// Sets the address of the process that has claimed a session, or that had before.
    pub fn set_owner(&self, session: &str, address: &str) {
        if on_postgres() {
            let of_session = format!("incarnation = (SELECT owner FROM sessions WHERE id = '{session}')");
            self.sql(&format!("UPDATE nodes SET process = '{address}' WHERE {of_session}"));
        } else {
            std::fs::write(self.data().join("locks").join(session), address).unwrap();
        }
    }

    /// Runs statements on the store, as [`TestStore::sql`] does.
    pub fn sql(&self, statements: &str) -> Vec<String> {
        self.store().sql(statements)
    }
}

impl TestStore {
    /// Returns SQL of the type of an event and of the id of its message.
    pub fn event_columns(&self) -> (&'static str, &'static str) {
        match self {
            TestStore::Sqlite(_) => {
                ("coalesce(event_type, json_extract(body, '$.type'))", "coalesce(message_id, json_extract(body, '$.messageId'))")
            }
            TestStore::Postgres(_) => ("kind", "message"),
        }
    }

    /// Runs statements that are valid in both databases. Returns the rows of their results: the
    /// values as text, separated by `|`. No value may contain a line break.
    pub fn sql(&self, statements: &str) -> Vec<String> {
        match self {
            TestStore::Sqlite(path) => sqlite(path, statements).unwrap(),
            TestStore::Postgres(url) => psql(url, statements).unwrap(),
        }
    }

    /// Locks the store against writes until the lock is dropped.
    pub fn lock(&self) -> StoreLock {
        match self {
            TestStore::Sqlite(path) => {
                let db = Connection::open(path).unwrap();
                db.execute_batch("BEGIN IMMEDIATE").unwrap();
                StoreLock::Sqlite(db)
            }
            TestStore::Postgres(url) => {
                let mut child = start_psql(url);
                let stdin = child.stdin.as_mut().unwrap();
                stdin.write_all(b"BEGIN; LOCK TABLE sessions, events IN EXCLUSIVE MODE; SELECT 'locked';\n").unwrap();
                let mut line = String::new();
                BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
                assert_eq!(line, "locked\n");
                StoreLock::Postgres(child)
            }
        }
    }

    /// Returns true if nuncio has created its tables.
    pub fn exists(&self) -> bool {
        match self {
            TestStore::Sqlite(path) => path.exists(),
            TestStore::Postgres(_) => self.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'events'") != ["0"],
        }
    }
}

/// A lock on a store that blocks all writers and no readers.
pub enum StoreLock {
    /// A transaction, which ends when the connection is closed.
    Sqlite(Connection),
    /// `psql` with a transaction, which ends when its input ends.
    Postgres(Child),
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        match self {
            StoreLock::Sqlite(db) => db.execute_batch("ROLLBACK").unwrap(),
            StoreLock::Postgres(child) => {
                let _ = child.stdin.take().unwrap().write_all(b"ROLLBACK;\n");
                let _ = child.wait();
            }
        }
    }
}

/// Returns a text as a literal of SQL.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn sqlite(path: &Path, statements: &str) -> rusqlite::Result<Vec<String>> {
    let db = Connection::open(path)?;
    let (mut batch, mut lines) = (Batch::new(&db, statements), Vec::new());
    while let Some(mut statement) = batch.next()? {
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let values: Vec<String> = (0..columns).map(|column| row.get_ref(column).map(shown)).collect::<Result<_, _>>()?;
            lines.push(values.join("|"));
        }
    }
    Ok(lines)
}

/// Returns a value as `psql` shows it.
fn shown(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Starts `psql` with pipes. Its output has the values only, and its first error ends it.
fn start_psql(url: &str) -> Child {
    let mut command = Command::new("psql");
    command.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set", "ON_ERROR_STOP=1", "--dbname", url]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("psql is on PATH")
}

/// Runs statements with `psql`. The error is the text of its standard error.
fn psql(url: &str, statements: &str) -> Result<Vec<String>, String> {
    let mut child = start_psql(url);
    // After an error psql does not read the rest.
    let _ = child.stdin.take().unwrap().write_all(format!("{statements};\n").as_bytes());
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        return Err(format!("{statements:.200}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}
