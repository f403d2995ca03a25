//! Instruction files of a project: AGENTS.md and its like, from the repository's root down to the session's directory.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::limits;
use crate::workspace;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub path: PathBuf,
    pub text: String,
}

/// Files named by `patterns` in `cwd` and the directories above it, up to the one that holds `.git` (without one: only in `cwd`).
/// The outermost come first, so that the nearest have the last word; what exceeds the limits is cut, and the text says so. Only regular
/// files inside count: a link that leads out of the repository is not followed.
pub fn find(cwd: &Path, patterns: &[String]) -> Vec<Instruction> {
    let root = cwd.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(cwd);
    let Ok(real_root) = root.canonicalize() else { return Vec::new() };
    let mut directories: Vec<&Path> = cwd.ancestors().take_while(|dir| dir.starts_with(root)).collect();
    directories.reverse();
    let mut found: Vec<Instruction> = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut left = limits::INSTRUCTIONS_BYTES_MAX;
    for path in directories.iter().flat_map(|dir| patterns.iter().map(|pattern| dir.join(pattern))) {
        // One file under two names (CLAUDE.md as a link to AGENTS.md) is read once.
        let real = path.canonicalize().ok().filter(|real| real.starts_with(&real_root) && !seen.contains(real));
        let Some(real) = real else { continue };
        let Some(text) = read(&real, left.min(limits::INSTRUCTION_BYTES_MAX)) else { continue };
        left -= text.len().min(left);
        seen.push(real);
        found.push(Instruction { path, text });
    }
    found
}

fn read(real: &Path, bytes_max: usize) -> Option<String> {
    let file = workspace::open(real).ok()?;
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > bytes_max;
    bytes.truncate(bytes_max);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if cut {
        text.push_str("\n[cut here: the file is longer than instructions may be]");
    }
    (!text.trim().is_empty()).then_some(text)
}
