//! Finds the instruction files of a project, such as AGENTS.md, from the repository root down to
//! the session's directory.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::limits;
use crate::workspace;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub path: PathBuf,
    pub text: String,
}

/// The result of a search for instruction files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundInstructions {
    pub taken: Vec<Instruction>,
    /// Files and `.git` directories that were ignored because another user owns them.
    pub foreign: Vec<PathBuf>,
}

/// Finds the files named by `patterns` in `cwd` and its ancestors, up to the directory that
/// contains `.git`; without such a directory, only in `cwd`. The outermost files come first, so
/// that the nearest files take precedence. A file that exceeds the size limits is truncated, and a
/// note in its text says so. Only regular files count, and symlinks that lead out of the repository
/// are not followed. Files that another user owns in a world-writable directory, such as /tmp, are
/// ignored.
pub(crate) fn find(cwd: &Path, patterns: &[String]) -> FoundInstructions {
    let mut all = FoundInstructions::default();
    let root = cwd.ancestors().find(|dir| {
        let git = dir.join(".git");
        let foreign = git.exists() && is_foreign(dir, &git);
        if foreign {
            all.foreign.push(git.clone());
        }
        git.exists() && !foreign
    });
    let root = root.unwrap_or(cwd);
    let Ok(real_root) = root.canonicalize() else { return all };
    let mut directories: Vec<&Path> = cwd.ancestors().take_while(|dir| dir.starts_with(root)).collect();
    directories.reverse();
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut left = limits::INSTRUCTIONS_BYTES_MAX;
    for (dir, path) in directories.iter().flat_map(|dir| patterns.iter().map(move |pattern| (dir, dir.join(pattern)))) {
        // One file under two names (CLAUDE.md as a link to AGENTS.md) is read once.
        let real = path.canonicalize().ok().filter(|real| real.starts_with(&real_root) && !seen.contains(real));
        let Some(real) = real else { continue };
        if is_foreign(dir, &path) || is_foreign(&real_root, &real) {
            all.foreign.push(path);
            continue;
        }
        let Some(text) = read(&real, left.min(limits::INSTRUCTION_BYTES_MAX)) else { continue };
        left -= text.len().min(left);
        seen.push(real);
        all.taken.push(Instruction { path, text });
    }
    all
}

/// Returns whether `path`, or a directory between it and `top`, is owned by another user (not root)
/// and lies in a world-writable directory.
fn is_foreign(top: &Path, path: &Path) -> bool {
    let below = path.ancestors().take_while(|part| part.starts_with(top) && *part != top);
    let pairs = below.filter_map(|part| Some((part.symlink_metadata().ok()?, part.parent()?.metadata().ok()?)));
    let known = [0, geteuid().as_raw()];
    pairs.into_iter().any(|(part, parent)| !known.contains(&part.uid()) && parent.mode() & 0o002 != 0)
}

fn read(real: &Path, bytes_max: usize) -> Option<String> {
    let file = workspace::open(real).ok()?;
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > bytes_max;
    bytes.truncate(bytes_max);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if cut {
        text.push_str("\n[truncated: the file exceeds the size limit of instruction files]");
    }
    (!text.trim().is_empty()).then_some(text)
}
