//! Opening and replacing files by their real path: a link that came in between, since the path was judged, is not followed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, fsync, openat, openat2, renameat, statat, unlinkat};
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

fn open_strictly(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    match openat2(CWD, real, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => Ok(openat(CWD, real, flags | OFlags::NOFOLLOW, Mode::empty())?),
        opened => Ok(opened?),
    }
}

/// Makes `bytes` the content of the file `real` ([`super::Placed::real`]), whole or not at all: a temporary file beside it, fsync,
/// rename. Makes its parents; keeps the mode bits, and where it may the owner, of a file that is there.
pub fn write_atomic(real: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
    };
    fs::create_dir_all(parent)?;
    let directory = open_strictly(parent, OFlags::RDONLY | OFlags::DIRECTORY)?;
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
