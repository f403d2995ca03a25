//! Placeholders: files and directories that are created while a command runs, because a path that
//! does not exist cannot be mounted.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};

/// The file or directory that is created at a path that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placeholder {
    /// The file exists, or its absence is harmless.
    No,
    Directory,
    Text(&'static str),
}

impl Placeholder {
    /// Creates the placeholder. If this fails, its mount fails.
    pub(super) fn create(self, path: &Path) {
        let _ = match self {
            Placeholder::No => Ok(()),
            Placeholder::Directory => fs::DirBuilder::new().mode(0o755).create(path),
            Placeholder::Text(text) => create_complete(path, text),
        };
    }

    /// Removes the placeholder, unless it has a content.
    pub(super) fn remove(self, path: &Path) {
        let _ = match self {
            // Fails for a directory that is not empty, such as one with hooks.
            Placeholder::Directory => fs::remove_dir(path),
            Placeholder::Text(text) if is_placeholder(path, text) => fs::remove_file(path),
            Placeholder::No | Placeholder::Text(_) => Ok(()),
        };
    }
}

/// Creates a file that exists only with its text: git ends if it finds `commondir` empty.
fn create_complete(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    let mode = Mode::from_raw_mode(0o644);
    let Ok(unnamed) = openat(CWD, directory, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode) else {
        // The file system has no unnamed files.
        return fs::write(path, text);
    };
    let mut file = File::from(unnamed);
    file.write_all(text.as_bytes())?;
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, name, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Returns whether a file has the text of a placeholder. An empty `config` is not removed, because
/// a repository without this file would be a different one for git.
fn is_placeholder(path: &Path, text: &str) -> bool {
    let file = path.symlink_metadata().is_ok_and(|kind| kind.is_file() && kind.len() == text.len() as u64);
    file && !path.ends_with("config") && fs::read(path).is_ok_and(|content| content == text.as_bytes())
}
