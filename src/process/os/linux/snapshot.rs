//! Restores control files that could not be mounted read-only, after the command has ended. In
//! between, other programs can read what the command wrote.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Maximum size of the control files of repositories that are restored after a command, in bytes.
pub(super) const CONTROL_FILES_BYTES_MAX: usize = 8 << 20;
/// Maximum nesting of restored directories.
const DEPTH_MAX: usize = 8;

/// The contents of files before a command.
#[derive(Debug, Default)]
pub(super) struct Snapshot(Vec<(PathBuf, Entry)>);

#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Missing,
    Link(PathBuf),
    File { bytes: Vec<u8>, mode: u32 },
    Directory { entries: Vec<(OsString, Entry)>, mode: u32 },
}

impl Snapshot {
    /// Reads the files. Fails if they are too large or cannot be read.
    pub(super) fn new<'a>(paths: impl Iterator<Item = &'a Path>) -> io::Result<Snapshot> {
        let mut room = CONTROL_FILES_BYTES_MAX;
        let read = paths.map(|path| Ok((path.to_owned(), Entry::read(path, DEPTH_MAX, &mut room)?)));
        read.collect::<io::Result<_>>().map(Snapshot)
    }

    /// Writes the files that differ. Returns a description of each one.
    pub(super) fn restore(&self) -> Vec<String> {
        let mut restored = Vec::new();
        for (path, before) in &self.0 {
            let now = Entry::read(path, DEPTH_MAX, &mut CONTROL_FILES_BYTES_MAX.clone());
            if now.is_ok_and(|now| now == *before) {
                continue;
            }
            restored.push(match before.write(path) {
                Ok(()) => path.display().to_string(),
                Err(error) => format!("{} (failed: {error})", path.display()),
            });
        }
        restored
    }
}

impl Entry {
    fn read(path: &Path, depth: usize, room: &mut usize) -> io::Result<Entry> {
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
            *room = room.checked_sub(kind.len() as usize).ok_or_else(too_large)?;
            return Ok(Entry::File { bytes: fs::read(path)?, mode: kind.mode() });
        }
        if !kind.is_dir() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        let depth = depth.checked_sub(1).ok_or_else(too_large)?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            *room = room.checked_sub(name.len()).ok_or_else(too_large)?;
            entries.push((name.clone(), Entry::read(&path.join(name), depth, room)?));
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(Entry::Directory { entries, mode: kind.mode() })
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        match path.symlink_metadata() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(path)?,
            Ok(_) => fs::remove_file(path)?,
            Err(_) => {}
        }
        match self {
            Entry::Missing => Ok(()),
            Entry::Link(target) => symlink(target, path),
            Entry::File { bytes, mode } => {
                fs::write(path, bytes)?;
                fs::set_permissions(path, Permissions::from_mode(*mode))
            }
            Entry::Directory { entries, mode } => {
                fs::create_dir(path)?;
                entries.iter().try_for_each(|(name, entry)| entry.write(&path.join(name)))?;
                fs::set_permissions(path, Permissions::from_mode(*mode))
            }
        }
    }
}
