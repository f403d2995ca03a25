//! Linux: the path leads through a descriptor (/proc/self/fd), so that it is short and the checked
//! file is the one that is used.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt::socket_peercred};

/// Creates the socket `name` in the open `directory` and listens on it. The length of the path of
/// the directory is not limited, although a socket's path has at most 107 bytes (unix(7)).
pub(in crate::local_socket) fn bind(_dir: &Path, directory: &OwnedFd, name: &str) -> io::Result<UnixListener> {
    UnixListener::bind(through(directory).join(name))
}

/// Connects to the socket file `name` in `dir` without waiting. Returns `None` if the file is not a
/// socket that belongs to `user`. The file is opened first, so that the checked file is the
/// connected one.
pub(in crate::local_socket) fn connect_file(dir: &Path, name: &str, user: u32) -> rustix::io::Result<Option<UnixStream>> {
    let file = open(dir.join(name), OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let status = fstat(&file)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::Socket || status.st_uid != user {
        return Ok(None);
    }
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    connect(&socket, &SocketAddrUnix::new(through(&file))?)?;
    Ok(Some(socket.into()))
}

/// Returns the user of the process that listens on the other end.
pub(in crate::local_socket) fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    Ok(socket_peercred(stream)?.uid.as_raw())
}

/// Returns a path that leads to an open file or directory, even after it is renamed.
fn through(descriptor: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd()).into()
}
