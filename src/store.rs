//! The database file: the only place that knows SQL. Events are rows here and nothing more; their meaning is `session`'s.

mod answers;
mod events;
mod migrations;
mod read_only;
mod sessions;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};

pub use answers::Answer;
pub use events::{Append, Placed, Writer};
pub use sessions::{SessionPage, SessionRow};

use crate::error::{Error, Kind, Result};
use crate::limits;

/// An SQLite database in WAL mode. Readers come from a pool and never wait for the one [`Writer`].
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
        let mut db = store.connect()?;
        migrations::run(&mut db).map_err(|error| store.failed("bringing the tables up to date", error))?;
        store.give_back(db);
        Ok(store)
    }

    fn connect(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if self.access != Access::Write {
            return read_only::open(&self.path, self.access).map_err(|error| self.failed("opening", error));
        }
        let open = || -> rusqlite::Result<Connection> {
            let db = Connection::open_with_flags(&self.path, flags)?;
            db.busy_timeout(limits::STORE_BUSY)?;
            db.execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -1000;",
            )?;
            db.set_prepared_statement_cache_capacity(32);
            Ok(db)
        };
        open().map_err(|error| self.failed("opening", error))
    }

    /// Runs `work` on a connection of its own.
    fn with<T>(&self, doing: &str, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let pooled = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = match pooled {
            Some(db) => db,
            None => self.connect()?,
        };
        let result = work(&db).map_err(|error| self.failed(doing, error));
        self.give_back(db);
        result
    }

    fn give_back(&self, db: Connection) {
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
                Error::internal(format!("{doing} {}: it cannot be written: {error}", self.path.display()))
            }
            _ => Error::internal(message),
        }
        .source(error)
    }

    /// A number that changes when another connection has written (SQLite, `PRAGMA data_version`); compared within one [`Watch`].
    pub fn watch(&self) -> Result<Watch> {
        Ok(Watch { db: self.connect()? })
    }
}

/// Whether the error means that another process holds a lock.
fn is_busy(code: Option<rusqlite::ErrorCode>) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    matches!(code, Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}

/// Sees that somebody else wrote.
pub struct Watch {
    db: Connection,
}

impl Watch {
    pub fn version(&self) -> i64 {
        self.db.pragma_query_value(None, "data_version", |row| row.get(0)).unwrap_or(0)
    }
}

/// Makes a directory that only its owner can read.
pub fn create_private_dir(dir: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| Error::io(format_args!("making directory {}", dir.display()), error))
}
