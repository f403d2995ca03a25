//! Opening and replacing files by their real path: a link that came in between, since the path was judged, is not followed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, fsync, mkdirat, openat, openat2, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// Opens the regular file `real` ([`super::Placed::real`]) for reading. Whatever is no regular file is refused, without waiting
/// for it: a pipe, a device, a directory.
pub fn open(real: &Path) -> io::Result<File> {
    let file = File::from(open_strictly(real, OFlags::RDONLY | OFlags::NONBLOCK)?);
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    match kind {
        FileType::RegularFile => Ok(file),
        FileType::Directory => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// Opens `real` if no part of it is a link. As good as RESOLVE_BENEATH below a root: what was judged to be inside is what is opened.
fn open_strictly(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    match openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a seccomp filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => {}
        opened => return Ok(opened?),
    }
    match (real.parent(), real.file_name()) {
        (Some(parent), Some(name)) => Ok(openat(step_down(parent, false)?, name, flags | OFlags::NOFOLLOW, Mode::empty())?),
        _ => Ok(openat(CWD, real, flags, Mode::empty())?),
    }
}

/// The directory that `real` ([`super::Placed::real`]) lies in, to be used with `openat` and its like: whatever takes its place later,
/// this stays where it was judged to be. `make`: with those above it, if they are missing.
pub fn open_parent(real: &Path, make: bool) -> io::Result<OwnedFd> {
    let Some(parent) = real.parent().filter(|_| real.file_name().is_some()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
    };
    match open_strictly(parent, OFlags::RDONLY | OFlags::DIRECTORY) {
        Err(error) if make && error.kind() == io::ErrorKind::NotFound => step_down(parent, true),
        opened => opened,
    }
}

/// `directory`, which is absolute, a name at a time, none of which may be a link.
fn step_down(directory: &Path, make: bool) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = openat(CWD, "/", flags | OFlags::PATH, Mode::empty())?;
    let mut names = directory.components().filter(|part| *part != Component::RootDir).peekable();
    while let Some(name) = names.next() {
        let name = name.as_os_str();
        // Those on the way need not be readable.
        let flags = if names.peek().is_some() { flags | OFlags::PATH } else { flags };
        here = match openat(&here, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                match mkdirat(&here, name, Mode::from_raw_mode(0o777)) {
                    // Somebody else was faster.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&here, name, flags, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok(here)
}

/// Makes `bytes` the content of the file `real` ([`super::Placed::real`]), whole or not at all: a temporary file beside it, fsync,
/// rename. Makes its parents; keeps the mode bits, and where it may the owner, of a file that is there.
pub fn write_atomic(real: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = real.file_name().unwrap_or_default();
    let directory = open_parent(real, true)?;
    let before = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(before) => Some(before),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    match before.map(|before| FileType::from_raw_mode(before.st_mode)) {
        None | Some(FileType::RegularFile) => {}
        Some(FileType::Directory) => return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }

    let temporary = format!(".nuncio-{}", uuid::Uuid::now_v7().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(openat(&directory, &temporary, flags, Mode::from_raw_mode(0o666))?);
    let written = (|| {
        if let Some(before) = before {
            let (user, group) = (rustix::fs::Uid::from_raw(before.st_uid), rustix::fs::Gid::from_raw(before.st_gid));
            // Only root may give files away; the content matters more.
            let _ = rustix::fs::fchown(&file, Some(user), Some(group));
            rustix::fs::fchmod(&file, Mode::from_raw_mode(before.st_mode & 0o7777))?;
        }
        file.write_all(bytes)?;
        fsync(&file)?;
        Ok(renameat(&directory, &temporary, &directory, name)?)
    })();
    if written.is_err() {
        // What went wrong is told; a temporary file that stays is the lesser evil.
        let _ = unlinkat(&directory, &temporary, AtFlags::empty());
        return written;
    }
    Ok(fsync(&directory)?)
}
