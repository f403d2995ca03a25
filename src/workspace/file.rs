//! Opening files and directories by their real path: a link that came in between, since the path was judged, is not followed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use crate::limits;

/// Opens the regular file `real` ([`super::Placed::real`]) for reading. Whatever is no regular file is refused, without waiting
/// for it: a pipe, a device, a directory.
pub fn open(real: &Path) -> io::Result<File> {
    let file = File::from(open_strictly(real, OFlags::RDONLY | OFlags::NONBLOCK)?);
    must_be_regular(FileType::from_raw_mode(fstat(&file)?.st_mode))?;
    Ok(file)
}

/// The content of a file that nuncio reads by itself, such as settings or ignore files. It may come with a repository, so it has to be a
/// regular file of at most [`limits::OWN_FILE_BYTES_MAX`]; a pipe or a device is refused without waiting for it. Follows symlinks.
pub fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let stat = fstat(&file)?;
    must_be_regular(FileType::from_raw_mode(stat.st_mode))?;
    let mut bytes = Vec::with_capacity(stat.st_size.clamp(0, limits::OWN_FILE_BYTES_MAX as i64) as usize + 1);
    file.take(limits::OWN_FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limits::OWN_FILE_BYTES_MAX {
        let most = limits::OWN_FILE_BYTES_MAX >> 20;
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} MiB")));
    }
    Ok(bytes)
}

/// [`read_small`] for text.
pub fn read_small_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read_small(path)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

pub(super) fn must_be_regular(kind: FileType) -> io::Result<()> {
    match kind {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// Opens `real` if no part of it is a link. As good as RESOLVE_BENEATH below a root: what was judged to be inside is what is opened.
pub(super) fn open_strictly(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    match openat2(CWD, real, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a seccomp filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => step_down(real, flags),
        opened => Ok(opened?),
    }
}

/// The same for an absolute path, a name at a time.
fn step_down(real: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let strictly = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = openat(CWD, "/", OFlags::PATH | OFlags::DIRECTORY | strictly, Mode::empty())?;
    let mut names = real.components().filter(|part| *part != Component::RootDir).peekable();
    while let Some(name) = names.next() {
        // Those on the way need not be readable.
        let flags = if names.peek().is_some() { OFlags::PATH | OFlags::DIRECTORY } else { flags };
        here = openat(&here, name.as_os_str(), flags | strictly, Mode::empty())?;
    }
    Ok(here)
}
