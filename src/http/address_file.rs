//! The file with the address of a running server, for other programs of the user. The file is
//! locked while the server runs.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::workspace::{create_private, create_private_dir, read_small_text};

/// The file extension in the directory `run`.
const EXTENSION: &str = "http";

/// The address file of this server. Dropping the value removes the file.
pub(super) struct AddressFile {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl AddressFile {
    /// Writes the address of a server that uses the data directory `data`.
    pub(super) fn create(data: &Path, url: &str) -> Result<AddressFile> {
        let directory = data.join("run");
        create_private_dir(&directory)?;
        let name = uuid::Uuid::now_v7().simple().to_string();
        let (path, new) = (directory.join(&name).with_extension(EXTENSION), directory.join(name).with_extension("new"));
        let write = || {
            let mut file = create_private(&new)?;
            file.lock()?;
            file.write_all(url.as_bytes())?;
            // Rename the file once it is locked and complete.
            std::fs::rename(&new, &path)?;
            Ok(file)
        };
        let file = write().map_err(|error: std::io::Error| Error::io(format_args!("writing {}", path.display()), error))?;
        Ok(AddressFile { path, _file: file })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Finds the running servers that use the data directory `data`, and returns the URL of the server
/// that was started last. Removes the files of servers that have ended.
pub(crate) fn running_server(data: &Path) -> Option<String> {
    let mut newest: Option<(SystemTime, String)> = None;
    for entry in std::fs::read_dir(data.join("run")).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        // Other readers may probe the file at the same time.
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) => {
                let _ = std::fs::remove_file(&path);
                continue;
            }
            Err(TryLockError::Error(_)) => continue,
        }
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        if let Ok(url) = read_small_text(&path)
            && newest.as_ref().is_none_or(|(time, _)| *time < modified)
        {
            newest = Some((modified, url));
        }
    }
    newest.map(|(_, url)| url)
}
