//! POSIX: component by component. Directories above the file must be readable, because POSIX has no
//! O_PATH.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;

/// Flags with which each component is opened.
const STRICTLY: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Opens the absolute path `real`. Fails if a component is a symlink.
pub(in crate::workspace) fn open_no_symlinks(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let directory = OFlags::RDONLY.union(OFlags::DIRECTORY).union(STRICTLY);
    let mut here = openat(CWD, "/", directory, Mode::empty())?;
    let mut names = real.components().filter(|part| *part != Component::RootDir).peekable();
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { directory } else { flags | STRICTLY };
        here = openat(&here, name.as_os_str(), flags, Mode::empty())?;
    }
    Ok(here)
}

/// Returns the properties of a file that need not be readable.
pub(in crate::workspace) fn stat_no_symlinks(real: &Path) -> io::Result<Stat> {
    let (parent, name) = (real.parent().unwrap_or(real), real.file_name().unwrap_or_default());
    let directory = open_no_symlinks(parent, OFlags::RDONLY.union(OFlags::DIRECTORY))?;
    let stat = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Err(Errno::LOOP.into()),
        _ => Ok(stat),
    }
}

/// Returns no file: POSIX has no files without a name.
pub(in crate::workspace) fn unnamed_file(_directory: &OwnedFd, _mode: Mode) -> Option<File> {
    None
}

/// Fails, because there is no file without a name.
pub(in crate::workspace) fn name_file(_file: &File, _directory: &OwnedFd, _name: &OsStr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
