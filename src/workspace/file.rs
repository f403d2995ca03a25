//! Opens files and directories by their real path. A symlink created after the path was resolved is
//! not followed.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use super::strict::open_no_symlinks;
use crate::limits;

/// Opens the regular file `real` ([`super::ResolvedPath::real`]) for reading. Pipes, devices and
/// directories are refused without blocking.
pub fn open(real: &Path) -> io::Result<File> {
    let file = File::from(open_no_symlinks(real, OFlags::RDONLY | OFlags::NONBLOCK)?);
    require_regular(FileType::from_raw_mode(fstat(&file)?.st_mode))?;
    Ok(file)
}

/// Returns whether `real` is a file whose mode has no write bit.
pub(crate) fn is_read_only(real: &Path) -> bool {
    real.symlink_metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o222 == 0)
}

/// Reads a file that nuncio uses itself, such as settings or ignore files. Because a repository can
/// contain such files, only a regular file of at most [`limits::OWN_FILE_BYTES_MAX`] is read; a
/// pipe or a device is refused without blocking. Follows symlinks.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    read_bounded(path, limits::OWN_FILE_BYTES_MAX)
}

/// Reads a file like [`read_small`], of at most `most` bytes.
pub(crate) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open_regular(path)?;
    read_most(file, size, most)
}

/// Reads the regular file `real` like [`open`], of at most `most` bytes.
pub(crate) fn read_resolved(real: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(real)?;
    let size = file.metadata()?.len();
    read_most(file, size, most)
}

fn read_most(file: File, size: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(size.min(most) as usize + 1);
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

/// Opens a regular file for reading, and returns its size. Follows symlinks; a pipe or a device is
/// refused without blocking.
pub(crate) fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let stat = fstat(&file)?;
    require_regular(FileType::from_raw_mode(stat.st_mode))?;
    Ok((file, u64::try_from(stat.st_size).unwrap_or_default()))
}

/// Reads a file like [`read_small`] and requires UTF-8.
pub(crate) fn read_small_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read_small(path)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

/// Decodes a text: UTF-16, with a byte order mark or recognized by its zero bytes, or UTF-8.
/// Invalid parts become U+FFFD; a byte order mark is removed.
pub(crate) fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    let head = &bytes[..bytes.len().min(limits::BINARY_PROBE_BYTES)];
    let zeros = |parity: usize| head.iter().skip(parity).step_by(2).filter(|byte| **byte == 0).count();
    // Text is mostly ASCII, of which each second byte is zero in UTF-16.
    let likely = match (zeros(0), zeros(1)) {
        (0, odd) if odd > head.len() / 4 => encoding_rs::UTF_16LE,
        (even, 0) if even > head.len() / 4 => encoding_rs::UTF_16BE,
        _ => encoding_rs::UTF_8,
    };
    likely.decode(bytes).0
}

/// Fails unless `kind` is a regular file.
pub(super) fn require_regular(kind: FileType) -> io::Result<()> {
    match kind {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}
