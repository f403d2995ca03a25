//! Files and directories that only the user can read.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{StatVfsMountFlags, fstatvfs};
use rustix::process::geteuid;

use super::file::open_regular;
use crate::error::{Error, Result};
use crate::limits;

/// Creates a directory and its parents with mode 0700.
pub(crate) fn create_private_dir(dir: &Path) -> Result<()> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    created.map_err(|error| Error::io(format_args!("creating directory {}", dir.display()), error))
}

/// Creates an empty file with mode 0600 for writing. Fails if the path exists.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Creates a file with mode 0600 and this content, synced to disk. Fails if the path exists.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = create_private(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Reads a small file with a secret. Fails if another user can read or write it, unless it is
/// mounted read-only, as containers mount secrets, or if another user than root owns it.
pub(crate) fn read_private(path: &Path) -> io::Result<String> {
    let (file, _) = open_regular(path)?;
    let refused = |reason: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason.to_owned()));
    let (metadata, user) = (file.metadata()?, geteuid().as_raw());
    let mounted = fstatvfs(&file)?.f_flag.contains(StatVfsMountFlags::RDONLY);
    if ![0, user].contains(&metadata.uid()) && !mounted {
        return refused("it belongs to another user");
    }
    // A group reads the file of root for the user.
    let others = if metadata.uid() == user { 0o077 } else { 0o027 };
    if metadata.mode() & others != 0 && !mounted {
        return refused("other users can read or write it (chmod 600)");
    }
    let mut text = String::new();
    file.take(limits::OWN_FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Waits until no other process changes files of `directory` in this way, and returns a guard that
/// makes the others wait. A change is: read a file, change its content, replace it. Creates the
/// directory with mode 0700.
pub(crate) fn lock_files(directory: &Path) -> Result<File> {
    create_private_dir(directory)?;
    let opened = File::open(directory);
    let locked = opened.and_then(|file| match file.lock() {
        // The file system has no locks.
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        _ => Ok(file),
    });
    locked.map_err(|error| Error::io(format_args!("locking {}", directory.display()), error))
}

/// Replaces a file atomically with a file that has mode 0600 and this content. One process must not
/// call this concurrently for the same path.
pub(crate) fn replace_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("new.{}", std::process::id()));
    // Remove the leftover file of an earlier process that had the same process id.
    let _ = fs::remove_file(&temporary);
    write_private(&temporary, content)?;
    fs::rename(&temporary, path)
}
