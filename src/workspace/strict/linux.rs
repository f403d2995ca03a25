//! Linux: openat2(2) and O_PATH.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::Errno;

/// Opens the absolute path `real`. Fails if a component is a symlink.
pub(in crate::workspace) fn open_no_symlinks(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match openat2(CWD, real, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // The kernel has no openat2(2), or a seccomp filter refuses it.
        Err(Errno::NOSYS | Errno::PERM) => open_by_component(real, flags),
        opened => Ok(opened?),
    }
}

/// Returns the properties of a file that need not be readable.
pub(in crate::workspace) fn stat_no_symlinks(real: &Path) -> io::Result<Stat> {
    Ok(fstat(open_no_symlinks(real, OFlags::PATH)?)?)
}

/// Opens an absolute path component by component, for kernels without openat2(2).
fn open_by_component(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let strictly = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | strictly, Mode::empty())?;
    let mut names = real.components().filter(|part| *part != Component::RootDir).peekable();
    while let Some(name) = names.next() {
        // Intermediate directories need not be readable.
        let flags = if names.peek().is_some() { OFlags::PATH | OFlags::DIRECTORY } else { flags };
        here = openat(&here, name.as_os_str(), flags | strictly, Mode::empty())?;
    }
    Ok(here)
}
