//! The state of a file or directory, which can be compared and restored. The paths are writable for
//! commands, which may run at the same time, so that no link in them is followed and no file is
//! opened that blocks.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::private::open;

/// Maximum size of one control file, or of a directory that is restored, in bytes.
pub(super) const CONTROL_FILES_BYTES_MAX: usize = 8 << 20;
/// Maximum nesting of restored directories.
const DEPTH_MAX: usize = 8;
/// Name of a file while it is written.
const WRITTEN: &str = ".nuncio-restored";

/// The state of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Missing,
    Link(PathBuf),
    File { bytes: Vec<u8>, mode: u32 },
    Directory { entries: Vec<(OsString, Entry)>, mode: u32 },
}

impl Entry {
    /// Returns a file with a text.
    pub(super) fn text(text: &str) -> Entry {
        Entry::File { bytes: text.into(), mode: 0o644 }
    }

    /// Reads a path. Fails if it is too large or cannot be read.
    pub(super) fn read(path: &Path) -> io::Result<Entry> {
        Entry::read_within(path, DEPTH_MAX, &mut CONTROL_FILES_BYTES_MAX.clone())
    }

    /// Returns the content of a file.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Entry::File { bytes, .. } => Some(bytes),
            Entry::Missing | Entry::Link(_) | Entry::Directory { .. } => None,
        }
    }

    fn read_within(path: &Path, depth: usize, room: &mut usize) -> io::Result<Entry> {
        let kind = match path.symlink_metadata() {
            Ok(kind) => kind,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Entry::Missing),
            Err(error) => return Err(error),
        };
        let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, "it is too large");
        if kind.is_symlink() {
            return Ok(Entry::Link(fs::read_link(path)?));
        }
        if kind.is_file() {
            let file = open_file(path)?;
            let mut bytes = Vec::new();
            file.take(*room as u64 + 1).read_to_end(&mut bytes)?;
            *room = room.checked_sub(bytes.len()).ok_or_else(too_large)?;
            return Ok(Entry::File { bytes, mode: kind.mode() });
        }
        if !kind.is_dir() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        let depth = depth.checked_sub(1).ok_or_else(too_large)?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            *room = room.checked_sub(name.len()).ok_or_else(too_large)?;
            entries.push((name.clone(), Entry::read_within(&path.join(name), depth, room)?));
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Entry::Directory { entries, mode: kind.mode() })
    }

    /// Makes `path` be this entry. A file is replaced in one step.
    pub(super) fn restore(&self, path: &Path) -> io::Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(io::ErrorKind::InvalidInput.into()) };
        let parent = open(parent).ok_or(io::ErrorKind::NotFound)?;
        let parent = PathBuf::from(format!("/proc/self/fd/{}", parent.as_raw_fd()));
        let path = parent.join(name);
        if let Entry::File { .. } = self
            && !path.is_dir()
        {
            let written = parent.join(WRITTEN);
            // It is left from a process that was killed.
            let _ = fs::remove_file(&written);
            return self.create(&written).and_then(|()| fs::rename(&written, path));
        }
        match path.symlink_metadata() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(&path)?,
            Ok(_) => fs::remove_file(&path)?,
            Err(_) => {}
        }
        self.create(&path)
    }

    fn create(&self, path: &Path) -> io::Result<()> {
        match self {
            Entry::Missing => Ok(()),
            Entry::Link(target) => symlink(target, path),
            Entry::File { bytes, mode } => {
                let mut file = File::options().write(true).create_new(true).open(path)?;
                io::Write::write_all(&mut file, bytes)?;
                file.set_permissions(Permissions::from_mode(*mode))
            }
            Entry::Directory { entries, mode } => {
                fs::create_dir(path)?;
                entries.iter().try_for_each(|(name, entry)| entry.create(&path.join(name)))?;
                fs::set_permissions(path, Permissions::from_mode(*mode))
            }
        }
    }
}

/// Identifies a file, also if another one gets the number of its inode after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    inode: u64,
    /// Time of the creation, if the file system has it.
    created: (i64, u32),
}

impl FileIdentity {
    /// Returns the identity of a file, directory or link. `None` if it does not exist.
    pub(super) fn new(path: &Path) -> Option<FileIdentity> {
        let found =
            statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, StatxFlags::INO | StatxFlags::BTIME).ok()?;
        Some(FileIdentity { inode: found.stx_ino, created: (found.stx_btime.tv_sec, found.stx_btime.tv_nsec) })
    }
}

/// Opens a file for reading. Fails for anything else, such as a FIFO, without waiting.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file")) }
}
