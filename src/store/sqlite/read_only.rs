//! Opens a store whose file or directory cannot be written, for listing and showing sessions.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::error::{Error, Result};
use crate::limits;

/// How to read a database that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadAccess {
    Locked,
    /// Without locks: the WAL file is missing or empty, and no WAL index can be created.
    Immutable,
}

/// Returns whether the database exists, and this process cannot write it or its directory.
pub(super) fn is_protected(path: &Path) -> bool {
    let writable = |path: &Path| accessat(CWD, path, Access::WRITE_OK, AtFlags::empty()).is_ok();
    path.exists() && !(writable(path) && path.parent().is_none_or(writable))
}

pub(super) fn open(path: &Path, access: ReadAccess) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let immutable = if access == ReadAccess::Immutable { "&immutable=1" } else { "" };
    let db = Connection::open_with_flags(format!("file:{}?mode=ro{immutable}", escaped(path)), flags)?;
    db.busy_timeout(limits::STORE_BUSY)?;
    db.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA cache_size = -256;")?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}

/// Escapes a path for a URI (sqlite.org/uri.html).
fn escaped(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_');
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Chooses how to read the database. To read a WAL file, SQLite needs its index (`-shm`), which
/// SQLite cannot create in a read-only directory. If the WAL file is missing or empty, the database
/// file is complete and can be opened as immutable.
pub(super) fn choose(path: &Path) -> Result<ReadAccess> {
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let logged = log.metadata().is_ok_and(|metadata| metadata.len() > 0);
    let read = |db: Connection| db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    match open(path, ReadAccess::Locked).and_then(read) {
        Ok(_) => Ok(ReadAccess::Locked),
        Err(_) if !logged => Ok(ReadAccess::Immutable),
        Err(error) => {
            let (log, dir) = (log.display(), path.parent().unwrap_or(path).display());
            let message = format!("{log} cannot be read because {dir} cannot be written: {error}");
            Err(Error::internal(message).source(error).hint("make the directory writable, or copy it to a writable place"))
        }
    }
}
