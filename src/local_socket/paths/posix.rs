//! POSIX: a socket is reached by its whole path, which is limited to about 100 bytes. The file is
//! checked before it is connected; its directory belongs to the user alone.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::{FileType, lstat};
use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};

/// Creates the socket `name` in `dir` and listens on it.
pub(in crate::local_socket) fn bind(dir: &Path, _directory: &OwnedFd, name: &str) -> io::Result<UnixListener> {
    UnixListener::bind(dir.join(name))
}

/// Connects to the socket file `name` in `dir` without waiting. Returns `None` if the file is not a
/// socket that belongs to `user`.
pub(in crate::local_socket) fn connect_file(dir: &Path, name: &str, user: u32) -> rustix::io::Result<Option<UnixStream>> {
    let path = dir.join(name);
    let status = lstat(&path)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::Socket || status.st_uid != user {
        return Ok(None);
    }
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    ioctl_fionbio(&socket, true)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(Some(socket.into()))
}

/// Returns the user of the process that listens on the other end. Must be called within a tokio
/// runtime.
pub(in crate::local_socket) fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    // The standard library does not offer this on all systems.
    Ok(tokio::net::UnixStream::from_std(stream.try_clone()?)?.peer_cred()?.uid())
}
