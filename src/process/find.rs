//! Finds programs as execvp(3) does.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// Returns the file of a program. A name with a slash is relative to `cwd`; others are searched in
/// the directories of `path`, the value of PATH.
pub(crate) fn find_program(program: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(cwd.join(program)).filter(|program| program.is_file());
    }
    path.split(':').map(|directory| Path::new(directory).join(program)).find(|candidate| candidate.is_file())
}

/// Returns the absolute path of a shell in the directories of `path`, nuncio's PATH, so that no
/// variable of a command decides which program runs its line. Skips relative directories, which
/// would mean the command's directory.
pub(super) fn find_shell(name: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| file.is_absolute() && file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok();
    std::env::split_paths(path).map(|directory| directory.join(name)).find(is_program)
}
