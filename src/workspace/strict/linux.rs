//! Linux: openat2(2), O_PATH and O_TMPFILE.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Stat, fstat, linkat, openat, openat2};
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

/// Creates a file in a directory that has no name. `None` if the file system has none, or if it
/// could not be named.
pub(in crate::workspace) fn unnamed_file(directory: &OwnedFd, mode: Mode) -> Option<File> {
    let file = File::from(openat(directory, ".", OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode).ok()?);
    Path::new(&path_of(&file)).exists().then_some(file)
}

/// Gives a file without a name a name in a directory. Fails if another file has it.
pub(in crate::workspace) fn name_file(file: &File, directory: &OwnedFd, name: &OsStr) -> io::Result<()> {
    Ok(linkat(CWD, path_of(file), directory, name, AtFlags::SYMLINK_FOLLOW)?)
}

fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
