//! The socket files: created in a directory that only the user can enter, connected without
//! following links, and removed when their process ends.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;

use super::paths;
use crate::error::{Error, Kind, Result};
use crate::process::is_running;
use crate::workspace::create_private_dir;

/// A socket that this process listens on. Dropping it removes the file.
pub(super) struct SocketFile {
    directory: OwnedFd,
    /// The file name.
    pub name: String,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
    }
}

/// Creates a socket in `dir` and listens on it. Removes the sockets of processes that no longer
/// exist.
pub(super) fn listen(dir: &Path) -> Result<(UnixListener, SocketFile)> {
    create_private_dir(dir)?;
    let directory = open_directory(dir)?;
    remove_stale(dir, &directory);
    let random = uuid::Uuid::now_v7().simple().to_string();
    let name = format!("{}-{}.sock", std::process::id(), &random[random.len() - 8..]);
    let listener = paths::bind(dir, &directory, &name).map_err(|error| failed("creating", dir, &name, error))?;
    let file = SocketFile { directory, name };
    listener.set_nonblocking(true).map_err(|error| failed("preparing", dir, &file.name, error))?;
    Ok((listener, file))
}

/// Connects to the socket `name` in `dir` without waiting. Refuses a file that is not a socket or
/// that belongs to another user.
pub(super) fn connect_to(dir: &Path, name: &str) -> Result<UnixStream> {
    let stream = connect_file(dir, name).map_err(|error| failed("connecting to", dir, name, error.into()))?;
    let stream =
        stream.ok_or_else(|| Error::new(Kind::Forbidden, format!("{} is not a socket of this user", dir.join(name).display())))?;
    let peer = paths::peer_user(&stream).map_err(|error| failed("checking", dir, name, error))?;
    if !is_own_user(peer) {
        return Err(Error::new(Kind::Forbidden, format!("{} is served by another user", dir.join(name).display())));
    }
    Ok(stream)
}

/// Returns whether the process that created the socket still listens on it. If that cannot be
/// determined, the process counts as alive if a process with its id exists.
pub(super) fn is_alive(dir: &Path, name: Option<&str>, pid: u32) -> bool {
    match name.map(|name| connect_file(dir, name)) {
        Some(Ok(Some(_))) => true,
        // The queue of connections is full.
        Some(Err(Errno::AGAIN)) => true,
        Some(Err(Errno::CONNREFUSED | Errno::NOENT)) => false,
        None | Some(Ok(None) | Err(_)) => is_running(pid),
    }
}

pub(crate) fn is_own_user(uid: u32) -> bool {
    uid == rustix::process::geteuid().as_raw()
}

/// Connects to a socket file. Returns `None` if the file is not a socket of this user.
fn connect_file(dir: &Path, name: &str) -> rustix::io::Result<Option<UnixStream>> {
    if name.contains('/') {
        return Ok(None);
    }
    paths::connect_file(dir, name, rustix::process::geteuid().as_raw())
}

/// Opens the directory of the sockets, and makes it inaccessible to other users.
fn open_directory(dir: &Path) -> Result<OwnedFd> {
    let opened = openat(rustix::fs::CWD, dir, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    let directory = opened.map_err(|error| Error::io(format_args!("opening {}", dir.display()), error.into()))?;
    let status = fstat(&directory).map_err(|error| Error::io(format_args!("checking {}", dir.display()), error.into()))?;
    if !is_own_user(status.st_uid) {
        return Err(Error::new(Kind::Forbidden, format!("{} belongs to another user", dir.display())));
    }
    if status.st_mode & 0o077 != 0 {
        std::fs::set_permissions(dir, Permissions::from_mode(0o700))
            .map_err(|error| Error::io(format_args!("protecting {}", dir.display()), error))?;
    }
    Ok(directory)
}

/// Removes the sockets of processes that ended without removing them.
fn remove_stale(dir: &Path, directory: &OwnedFd) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.ends_with(".sock")) else { continue };
        let pid = name.split_once('-').and_then(|(pid, _)| pid.parse().ok());
        // Both are checked: a process in another PID namespace has an id that does not exist here,
        // and a socket that was just created may not accept connections yet.
        if pid.is_some_and(|pid| !is_running(pid)) && matches!(connect_file(dir, name), Err(Errno::CONNREFUSED)) {
            let _ = unlinkat(directory, name, AtFlags::empty());
        }
    }
}

fn failed(doing: &str, dir: &Path, name: &str, error: std::io::Error) -> Error {
    Error::io(format_args!("{doing} {}", dir.join(name).display()), error)
}
