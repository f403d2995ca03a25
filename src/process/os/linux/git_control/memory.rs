//! The git directories that were protected once, in a file of nuncio's data directory, which
//! commands cannot open. They are protected in every state and from every root.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the file. Each path ends with a NUL.
const FILE: &str = "git-directories";
/// Maximum size of the file, in bytes. Beyond it, paths that do not exist any more are removed.
const BYTES_MAX: usize = 256 << 10;

/// Returns the directories.
pub(super) fn read(data: &Path) -> Vec<PathBuf> {
    let bytes = fs::read(data.join(FILE)).unwrap_or_default();
    let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| std::ffi::OsString::from_vec(path.to_vec()).into()).collect()
}

/// Adds directories that are not known.
pub(super) fn add(data: &Path, directories: &[PathBuf]) {
    let known = read(data);
    let fresh: Vec<&PathBuf> = directories.iter().filter(|directory| !known.contains(directory)).collect();
    if fresh.is_empty() {
        return;
    }
    let encode =
        |paths: &[&PathBuf]| paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), &[0]]).flatten().copied().collect();
    let added: Vec<u8> = encode(&fresh);
    let size = |path: &PathBuf| path.as_os_str().len() + 1;
    let is_full = known.iter().map(size).sum::<usize>() + added.len() > BYTES_MAX;
    let file = data.join(FILE);
    // A failure is ignored: names and contents decide without this memory, too.
    let _ = match is_full {
        false => File::options().append(true).create(true).mode(0o600).open(file).and_then(|mut file| file.write_all(&added)),
        true => {
            let left: Vec<&PathBuf> = known.iter().filter(|path| path.exists()).chain(fresh).collect();
            let mut bytes: Vec<u8> = encode(&left);
            bytes.truncate(BYTES_MAX);
            fs::write(file, bytes)
        }
    };
}
