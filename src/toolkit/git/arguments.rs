//! Arguments for git: paths, pathspecs, and words quoted for a shell.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Converts a path that git prints, given as bytes.
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    Path::new(OsStr::from_bytes(bytes)).to_owned()
}

/// Creates a pathspec that matches exactly an absolute path.
pub(crate) fn literal_pathspec(path: &Path) -> OsString {
    pathspec("literal", path.as_os_str().as_bytes())
}

/// Creates a pathspec with magic words, see gitglossary(7), "pathspec".
pub(crate) fn pathspec(magic: &str, path: &[u8]) -> OsString {
    OsString::from_vec([format!(":({magic})").as_bytes(), path].concat())
}

pub(crate) fn with_paths(arguments: &[&str], paths: &[OsString]) -> Vec<OsString> {
    arguments.iter().map(OsString::from).chain(paths.iter().cloned()).collect()
}

/// Quotes a word for a shell, if necessary.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./,:@%+=".contains(character);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
