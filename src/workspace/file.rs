//! Opening files and directories by their real path: a link that came in between, since the path was judged, is not followed.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

/// Opens the regular file `real` ([`super::Placed::real`]) for reading. Whatever is no regular file is refused, without waiting
/// for it: a pipe, a device, a directory.
pub fn open(real: &Path) -> io::Result<File> {
    let file = File::from(open_strictly(real, OFlags::RDONLY | OFlags::NONBLOCK)?);
    must_be_regular(FileType::from_raw_mode(fstat(&file)?.st_mode))?;
    Ok(file)
}

pub(super) fn must_be_regular(kind: FileType) -> io::Result<()> {
    match kind {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

pub(super) fn open_strictly(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    match openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => Ok(openat(CWD, real, flags | OFlags::NOFOLLOW, Mode::empty())?),
        opened => Ok(opened?),
    }
}
