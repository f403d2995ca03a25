//! Creates sockets and connects to them by path. `linux` and `posix` define the same functions.

#[cfg(not(posix))]
mod linux;
#[cfg(posix)]
mod posix;

#[cfg(not(posix))]
use linux as system;
#[cfg(posix)]
use posix as system;

pub(super) use system::{bind, connect_file, peer_user};
