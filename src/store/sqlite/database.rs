//! The database file and its connections.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::migrations;
use super::private::make_private;
use super::read_only::{self, ReadAccess};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::workspace::create_private_dir;

/// Pause between two attempts to set the mode of a database that another process uses.
const WAL_PAUSE: Duration = Duration::from_millis(2);

/// An SQLite database in WAL mode. Readers use a connection pool and never wait for the writer. All
/// functions block.
pub(crate) struct SqliteStore {
    path: PathBuf,
    /// How to read the database if it cannot be written; `None` if it is writable.
    read_access: Option<ReadAccess>,
    pool: Mutex<Vec<Connection>>,
    /// The connection that appends events, once it was used.
    pub(super) writer: Mutex<Option<Writer>>,
}

impl SqliteStore {
    /// Opens `nuncio.db` in `dir`, creating both if they are missing, and migrates its tables.
    /// A database that cannot be written is opened for reading ([`SqliteStore::is_read_only`]).
    pub(in crate::store) fn open(dir: &Path) -> Result<SqliteStore> {
        create_private_dir(dir)?;
        let path = dir.join("nuncio.db");
        let read_access = if read_only::is_protected(&path) { Some(read_only::choose(&path)?) } else { None };
        let store = SqliteStore { path, read_access, pool: Mutex::default(), writer: Mutex::default() };
        if !store.is_read_only() {
            make_private(&store.path);
        }
        let mut db = store.connect()?;
        if !store.is_read_only() {
            migrations::run(&mut db).map_err(|error| store.failed("migrating", error))?;
        } else if !migrations::is_current(&db).map_err(|error| store.failed("reading", error))? {
            let message = format!(
                "{} was created by another version of nuncio and cannot be migrated: it cannot be written",
                store.path.display()
            );
            return Err(Error::internal(message).hint("make it writable once, or copy its directory to a writable place"));
        }
        store.release(db);
        Ok(store)
    }

    /// Returns the path of the database file.
    pub(in crate::store) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the database or its directory cannot be written.
    pub(in crate::store) fn is_read_only(&self) -> bool {
        self.read_access.is_some()
    }

    pub(in crate::store) fn watch(&self) -> Result<ChangeWatch> {
        Ok(ChangeWatch { db: self.connect()? })
    }

    pub(super) fn connect(&self) -> Result<Connection> {
        if let Some(access) = self.read_access {
            return read_only::open(&self.path, access).map_err(|error| self.failed("opening", error));
        }
        open(&self.path).map_err(|error| self.failed("opening", error))?.ok_or_else(|| {
            let newer = Error::new(Kind::Unsupported, format!("{} was created by a newer version of nuncio", self.path.display()));
            newer.hint("update nuncio, or choose another directory with --data-dir")
        })
    }

    /// Runs `work` on a pooled connection. `doing` names the operation in errors.
    pub(super) fn run<T>(&self, doing: &str, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let pooled = self.pool.lock().pop();
        let db = match pooled {
            Some(db) => db,
            None => self.connect()?,
        };
        let result = work(&db).map_err(|error| self.failed(doing, error));
        self.release(db);
        result
    }

    fn release(&self, db: Connection) {
        let mut pool = self.pool.lock();
        if pool.len() < 4 {
            pool.push(db);
        }
    }

    fn failed(&self, doing: &str, error: rusqlite::Error) -> Error {
        let place = self.path.display();
        match error.sqlite_error_code() {
            Some(ErrorCode::ReadOnly) => failure(format_args!("{doing} {place}: the file cannot be written"), error),
            _ => failure(format_args!("{doing} {place}"), error),
        }
    }
}

/// Converts an error. The same call may succeed later if another connection holds a lock, or when
/// the disk has space again.
pub(super) fn failure(doing: impl std::fmt::Display, error: rusqlite::Error) -> Error {
    let message = format!("{doing}: {error}");
    let failed = match error.sqlite_error_code() {
        code if is_busy(code) => Error::new(Kind::Overloaded, message),
        Some(ErrorCode::DiskFull) => Error::new(Kind::StoreUnavailable, message).hint("free disk space in the data directory"),
        _ => Error::internal(message),
    };
    failed.source(error)
}

/// Opens a connection that can write. Returns `None` if a newer version of nuncio created the
/// tables.
fn open(path: &Path) -> rusqlite::Result<Option<Connection>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(limits::STORE_BUSY)?;
    if migrations::are_newer(&db)? {
        // Without this setting, closing the last connection would checkpoint the write-ahead log
        // into the newer version's database file.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        return Ok(None);
    }
    use_wal(&db)?;
    // A session is read in the order of its pages: a larger cache makes no read faster.
    db.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -256;")?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(Some(db))
}

/// Sets the mode WAL, which a new database does not have. SQLite does not wait for the lock that
/// the change needs, so the change is repeated while other processes open the database.
fn use_wal(db: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + limits::STORE_BUSY;
    loop {
        match db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())) {
            Err(error) if is_busy(error.sqlite_error_code()) && Instant::now() < until => std::thread::sleep(WAL_PAUSE),
            set => return set,
        }
    }
}

/// The connection that appends events.
pub(super) struct Writer {
    pub db: Connection,
    /// True if `PRAGMA synchronous` is FULL.
    pub full: bool,
}

/// Returns whether the error code means that another connection holds a lock.
fn is_busy(code: Option<ErrorCode>) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    matches!(code, Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}

/// Detects writes by other connections: [`ChangeWatch::version`] changes after such a write.
pub(crate) struct ChangeWatch {
    db: Connection,
}

impl ChangeWatch {
    /// Returns the database's data version (SQLite, `PRAGMA data_version`). Versions are comparable
    /// only within one `ChangeWatch`.
    pub(in crate::store) fn version(&self) -> i64 {
        self.db.pragma_query_value(None, "data_version", |row| row.get(0)).unwrap_or(0)
    }
}
