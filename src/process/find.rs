//! Finds programs as execvp(3) does.

use std::path::{Path, PathBuf};

/// Returns the file of a program. A name with a slash is relative to `cwd`; others are searched in
/// the directories of `path`, the value of PATH.
pub(crate) fn find_program(program: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(cwd.join(program)).filter(|program| program.is_file());
    }
    path.split(':').map(|directory| Path::new(directory).join(program)).find(|candidate| candidate.is_file())
}
