//! Session ownership: an OS lock on a file for each session. The OS releases the lock when the
//! owner exits, even after a crash. The file contains the address of the owner.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::limits;
use crate::local_socket::PeerAddress;
use crate::workspace::{create_private_dir, read_small_text};

/// The lock of an owned session. Dropping it removes the file.
pub(crate) struct SessionLock {
    file: File,
    path: PathBuf,
}

impl SessionLock {
    /// Takes the lock without waiting, for the process with address `own`. Without an address, the
    /// file continues to name the dead owner, if any. If another process holds the lock, returns a
    /// `session_busy` error that names the owner.
    pub(crate) fn take(dir: &Path, id: &SessionId, own: Option<&PeerAddress>) -> Result<SessionLock> {
        create_private_dir(dir)?;
        let path = dir.join(id.as_str());
        let doing = || format!("locking {}", path.display());
        loop {
            let mut file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(|error| Error::io(doing(), error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(busy(id, read(&mut file).as_ref())),
                Err(TryLockError::Error(error)) => return Err(Error::io(doing(), error)),
            }
            // The owner may have removed the file between our open and our lock: then retry with a
            // new file.
            let metadata = file.metadata().map_err(|error| Error::io(doing(), error))?;
            if metadata.nlink() == 0 {
                continue;
            }
            if let Some(own) = own {
                // One write, so that no process reads a part of the address.
                let written = file.set_len(0).and_then(|()| file.write_all(own.to_string().as_bytes()));
                written.map_err(|error| Error::io(doing(), error))?;
            }
            return Ok(SessionLock { file, path });
        }
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // Removed before unlocking, so that no process can lock the old file while another locks a
        // new one.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Returns the address of the process that owns the session, or that owned it until the process
/// died. `None` if no process owns the session.
pub(crate) fn owner(dir: &Path, id: &SessionId) -> Option<PeerAddress> {
    PeerAddress::parse(&read_small_text(&dir.join(id.as_str())).ok()?)
}

fn read(file: &mut File) -> Option<PeerAddress> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.take(limits::OWN_FILE_BYTES_MAX).read_to_string(&mut text)).ok()?;
    PeerAddress::parse(&text)
}

/// The source of an error that was returned because this process does not own the session. The
/// operation had no effect.
#[derive(Debug)]
struct NotOwner;

impl std::fmt::Display for NotOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this process does not own the session")
    }
}

impl std::error::Error for NotOwner {}

/// Returns whether an operation failed, without an effect, because this process does not own the
/// session.
pub(crate) fn is_not_owner(error: &Error) -> bool {
    error.source.as_ref().is_some_and(|source| source.is::<NotOwner>())
}

/// Creates the error for a session that was closed before a call could use it.
pub(crate) fn closed_before_call(id: &SessionId) -> Error {
    Error::new(Kind::SessionBusy, format!("session {id} was closed during the call")).hint("retry").source(NotOwner)
}

/// Creates the error for a session that another process owns.
pub(crate) fn busy(id: &SessionId, owner: Option<&PeerAddress>) -> Error {
    let process = owner.map_or("another process".into(), |owner| format!("process {}", owner.pid));
    Error::new(Kind::SessionBusy, format!("session {id} is owned by {process}"))
        .hint("retry, or close the session in that process")
        .details(serde_json::json!({ "ownerPid": owner.map(|owner| owner.pid) }))
        .source(NotOwner)
}
