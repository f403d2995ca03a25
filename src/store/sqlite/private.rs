//! Makes the database file readable only by its owner.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::workspace::create_private;

/// Creates the database with mode 0600; SQLite gives the WAL and index files the same mode. An
/// existing database is not opened, because closing it would release the locks that this process
/// may hold on it (fcntl(2)); its mode and those of its WAL and index files are corrected by path.
pub(super) fn make_private(path: &Path) {
    match create_private(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        // If creation failed, opening the database reports the reason.
        _ => return,
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let open = std::fs::metadata(&name).is_ok_and(|file| file.permissions().mode() & 0o077 != 0);
        if open && let Err(error) = std::fs::set_permissions(&name, Permissions::from_mode(0o600)) {
            tracing::warn!(%error, "{} is readable by other users, and its mode cannot be changed", Path::new(&name).display());
        }
    }
}
