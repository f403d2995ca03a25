//! The files of a directory, and digests of files.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

use crate::hex::hex;

/// Length of a short digest, in bytes before hexadecimal encoding.
const SHORT_BYTES: usize = 8;

/// A file or a symlink in a directory.
#[derive(Debug)]
pub(in crate::cli) struct TaskEntry {
    /// Relative to the directory.
    pub path: PathBuf,
    /// The target of a symlink.
    pub link: Option<PathBuf>,
    /// The content of a file, or the target of a symlink.
    pub content: Vec<u8>,
    executable: bool,
}

/// Reads the files and symlinks below a directory, sorted by path.
pub(in crate::cli) fn entries(directory: &Path) -> io::Result<Vec<TaskEntry>> {
    let mut found = Vec::new();
    add(directory, Path::new(""), &mut found)?;
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn add(directory: &Path, below: &Path, found: &mut Vec<TaskEntry>) -> io::Result<()> {
    for entry in fs::read_dir(directory.join(below))? {
        let entry = entry?;
        let (kind, path, full) = (entry.file_type()?, below.join(entry.file_name()), entry.path());
        if kind.is_dir() {
            add(directory, &path, found)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&full)?;
            let content = target.as_os_str().as_bytes().to_vec();
            found.push(TaskEntry { path, link: Some(target), content, executable: false });
        } else if kind.is_file() {
            let executable = entry.metadata()?.permissions().mode() & 0o100 != 0;
            found.push(TaskEntry { path, link: None, content: fs::read(&full)?, executable });
        } else {
            return Err(io::Error::other(format!("{} is neither a file, a directory nor a symlink", path.display())));
        }
    }
    Ok(())
}

/// Returns the SHA-256 of files with their paths, modes and contents.
pub(super) fn digest_of(entries: &[TaskEntry]) -> String {
    let mut all = Context::new(&SHA256);
    for TaskEntry { path, link, content, executable } in entries {
        let name = path.as_os_str().as_bytes();
        let kind = if link.is_some() { 2 } else { u8::from(*executable) };
        for text in [name, &[kind], content] {
            all.update(&(text.len() as u64).to_le_bytes());
            all.update(text);
        }
    }
    hex(all.finish().as_ref())
}

pub(super) fn short_digest(text: &[u8]) -> String {
    let mut all = Context::new(&SHA256);
    all.update(text);
    hex(&all.finish().as_ref()[..SHORT_BYTES])
}

/// Returns a short digest of a file.
pub(super) fn file_digest(path: &Path) -> io::Result<String> {
    let (mut file, mut all, mut buffer) = (fs::File::open(path)?, Context::new(&SHA256), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&all.finish().as_ref()[..SHORT_BYTES])),
            read => all.update(&buffer[..read]),
        }
    }
}
