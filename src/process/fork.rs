//! Forks the fork server.

use std::io;

use super::os::CommandMark;

/// Forks this process, the fork server. Returns the child's process id, or 0 in the child, and the
/// mark of the child's processes.
pub(super) fn fork() -> io::Result<(u32, CommandMark)> {
    let mark = CommandMark::new()?;
    // SAFETY: this process has one thread, so the child may do anything that the parent may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok((pid.unsigned_abs(), mark)),
    }
}
