//! The SQLite database. All SQL is in this module. Events are stored as opaque rows: the `session`
//! module interprets them.

mod answers;
mod events;
mod migrations;
mod read_only;
mod sessions;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

pub use answers::Answer;
pub use events::{Append, Placed, Writer};
pub use sessions::{SessionPage, SessionRow};

use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::workspace::{create_private, create_private_dir};

/// An SQLite database in WAL mode. Readers use a connection pool and never wait for the [`Writer`].
pub struct Store {
    path: PathBuf,
    pool: Mutex<Vec<Connection>>,
    access: Access,
}

/// How the database file can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Write,
    Read,
    /// Read without locks: there is no WAL file, and none can be created.
    Immutable,
}

impl Store {
    /// Opens `nuncio.db` in `dir`, creating both if they are missing, and migrates its tables.
    /// A database that cannot be written is opened for reading ([`Store::is_read_only`]).
    pub fn open(dir: &Path) -> Result<Store> {
        create_private_dir(dir)?;
        let store = Store { path: dir.join("nuncio.db"), pool: Mutex::default(), access: Access::Write };
        if read_only::is_protected(&store.path) {
            return store.protected();
        }
        make_private(&store.path);
        let mut db = store.connect()?;
        migrations::run(&mut db).map_err(|error| store.failed("migrating", error))?;
        store.release(db);
        Ok(store)
    }

    fn connect(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if self.access != Access::Write {
            return read_only::open(&self.path, self.access).map_err(|error| self.failed("opening", error));
        }
        let open = || -> rusqlite::Result<Option<Connection>> {
            let db = Connection::open_with_flags(&self.path, flags)?;
            db.busy_timeout(limits::STORE_BUSY)?;
            if migrations::are_newer(&db)? {
                // Otherwise closing the last connection checkpoints the write-ahead log into the
                // database file.
                db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
                return Ok(None);
            }
            db.execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1000;",
            )?;
            db.set_prepared_statement_cache_capacity(32);
            Ok(Some(db))
        };
        open().map_err(|error| self.failed("opening", error))?.ok_or_else(|| {
            let newer = Error::new(Kind::Unsupported, format!("{} was created by a newer version of nuncio", self.path.display()));
            newer.hint("update nuncio, or choose another directory with --data-dir")
        })
    }

    /// Runs `work` on a pooled connection. `doing` names the operation in errors.
    fn with<T>(&self, doing: &str, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let pooled = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = match pooled {
            Some(db) => db,
            None => self.connect()?,
        };
        let result = work(&db).map_err(|error| self.failed(doing, error));
        self.release(db);
        result
    }

    fn release(&self, db: Connection) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < 4 {
            pool.push(db);
        }
    }

    fn failed(&self, doing: &str, error: rusqlite::Error) -> Error {
        let message = format!("{doing} {}: {error}", self.path.display());
        match error.sqlite_error_code() {
            code if is_busy(code) => Error::new(Kind::Overloaded, message),
            Some(rusqlite::ErrorCode::ReadOnly) => {
                Error::internal(format!("{doing} {}: the file cannot be written: {error}", self.path.display()))
            }
            _ => Error::internal(message),
        }
        .source(error)
    }

    /// Opens a [`Watch`], which reports whether other connections have written to the database.
    pub fn watch(&self) -> Result<Watch> {
        Ok(Watch { db: self.connect()? })
    }
}

/// Returns whether the error means that another process holds a lock.
fn is_busy(code: Option<rusqlite::ErrorCode>) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    matches!(code, Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}

/// Detects writes of other connections: [`Watch::version`] changes when one has written.
pub struct Watch {
    db: Connection,
}

impl Watch {
    /// The data version (SQLite, `PRAGMA data_version`). Comparable only within one `Watch`.
    pub fn version(&self) -> i64 {
        self.db.pragma_query_value(None, "data_version", |row| row.get(0)).unwrap_or(0)
    }
}

/// Creates the database with mode 0600; SQLite gives the WAL and index files the same mode. An
/// existing database is not opened, because closing it would release the locks that this process
/// may hold on it (fcntl(2)); its mode and those of its WAL and index files are corrected by path.
fn make_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    match create_private(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        // If creation failed, opening the database reports the reason.
        _ => return,
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let open = std::fs::metadata(&name).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
        if open && let Err(error) = std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o600)) {
            tracing::warn!(%error, "{} is readable by other users, and its mode cannot be changed", Path::new(&name).display());
        }
    }
}
