//! New content of files. It has no name while it is written, if the file system has such files, so
//! that a killed nuncio leaves nothing. Temporary names exist only between two system calls, or on
//! other file systems; the next change in the same directory removes those that were left.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags, flock, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::strict::{name_file, unnamed_file};

/// The start of temporary names; a UUID follows.
const PREFIX: &str = ".nuncio-";
/// The end of a temporary name of the former content of a file.
pub(super) const FORMER: &str = "-former";
/// Maximum number of entries of a directory in which left files are searched.
const ENTRIES_MAX: usize = 10_000;

/// A file with new content, which is not at its place yet.
pub(super) struct NewFile {
    pub file: File,
    is_unnamed: bool,
}

/// Returns a new temporary name.
pub(super) fn temporary_name() -> String {
    format!("{PREFIX}{}", uuid::Uuid::now_v7().simple())
}

impl NewFile {
    /// Creates an empty file in a directory: without a name, else under the name `temporary`.
    pub(super) fn create(directory: &OwnedFd, temporary: &str, mode: Mode) -> io::Result<NewFile> {
        if let Some(file) = unnamed_file(directory, mode) {
            return Ok(NewFile { file, is_unnamed: true });
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(NewFile { file: openat(directory, temporary, flags, mode)?.into(), is_unnamed: false })
    }

    /// Makes the file appear under the name `temporary`, so that it can be renamed.
    pub(super) fn appear(&self, directory: &OwnedFd, temporary: &str) -> io::Result<()> {
        if self.is_unnamed { name_file(&self.file, directory, temporary.as_ref()) } else { Ok(()) }
    }

    /// Gives the file its name. Fails if another file has it.
    pub(super) fn add(&self, directory: &OwnedFd, temporary: &str, name: &OsStr) -> io::Result<()> {
        if self.is_unnamed {
            return name_file(&self.file, directory, name);
        }
        match renameat_with(directory, temporary, directory, name, RenameFlags::NOREPLACE) {
            // The file system does not support RENAME_NOREPLACE.
            Err(Errno::INVAL | Errno::NOSYS) => Ok(renameat(directory, temporary, directory, name)?),
            added => Ok(added?),
        }
    }
}

/// Removes the temporary files in a directory, unless a process of nuncio changes files there.
/// While `directory` is open, other processes do not remove those of the caller.
pub(super) fn remove_left_files(directory: &OwnedFd) {
    if flock(directory, FlockOperation::NonBlockingLockExclusive).is_ok()
        && let Ok(entries) = Dir::read_from(directory)
    {
        for entry in entries.flatten().take(ENTRIES_MAX).filter(|entry| is_temporary(entry.file_name().to_bytes())) {
            let _ = unlinkat(directory, entry.file_name(), AtFlags::empty());
        }
    }
    // Fails if another program has locked the directory, or without locks.
    let _ = flock(directory, FlockOperation::NonBlockingLockShared);
}

fn is_temporary(name: &[u8]) -> bool {
    let name = name.strip_suffix(FORMER.as_bytes()).unwrap_or(name);
    name.strip_prefix(PREFIX.as_bytes()).is_some_and(|id| id.len() == 32 && id.iter().all(u8::is_ascii_hexdigit))
}

/// Creates a file with mode 0600 and this content, synced to disk, under the first free of `names`.
/// Returns that name.
pub(crate) fn create_first(directory: &Path, names: impl Iterator<Item = String>, content: &[u8]) -> io::Result<String> {
    let (directory, temporary, new) = complete(directory, content)?;
    for name in names {
        match new.add(&directory, &temporary, name.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            added => return added.map(|()| name).inspect_err(|_| remove(&directory, &temporary)),
        }
    }
    remove(&directory, &temporary);
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Replaces a file atomically with a file that has mode 0600 and this content, synced to disk.
/// Calls can replace the same file concurrently.
pub(crate) fn replace_file(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let (directory, temporary, new) = complete(directory, content)?;
    new.appear(&directory, &temporary)?;
    renameat(&directory, &temporary, &directory, name).inspect_err(|_| remove(&directory, &temporary))?;
    Ok(())
}

/// Removes a temporary file. A failure leaves the file to the next change.
pub(super) fn remove(directory: &OwnedFd, temporary: &str) {
    let _ = unlinkat(directory, temporary, AtFlags::empty());
}

/// Creates a complete file in a directory. Returns the directory and the temporary name.
fn complete(directory: &Path, content: &[u8]) -> io::Result<(OwnedFd, String, NewFile)> {
    let directory = OwnedFd::from(File::open(directory)?);
    remove_left_files(&directory);
    let temporary = temporary_name();
    let mut new = NewFile::create(&directory, &temporary, Mode::from_raw_mode(0o600))?;
    let written = io::Write::write_all(&mut new.file, content).and_then(|()| new.file.sync_all());
    written.inspect_err(|_| remove(&directory, &temporary))?;
    Ok((directory, temporary, new))
}
