//! The facts that precede the first message of a conversation. They are stored with the message,
//! because they change while the session lasts: a changed system prompt would cost the provider's
//! cache.

use std::path::{Path, PathBuf};

use crate::config::DataPaths;
use crate::workspace::{one_line, read_small_text};

/// The start of the facts.
pub(crate) const START: &str = "<environment>";

/// Returns the date, the state of the repository of `cwd`, and the lines about the session. `today`
/// is a date in UTC.
pub(crate) fn block(cwd: &Path, today: &str, places: &DataPaths, lines: &[String]) -> String {
    let git = match git_dir(cwd, places) {
        Some((root, dir)) => format!("{}, repository {}", branch(&dir), one_line(root.display().to_string())),
        None => "not a repository".into(),
    };
    let lines: String = lines.iter().map(|line| format!("\n{line}")).collect();
    format!("{START}\nDate: {today} (UTC)\nGit at the start of this conversation: {git}{lines}\n</environment>")
}

/// Returns the name of the branch that is checked out in `cwd`, if it is in a repository.
pub(crate) fn branch_name(cwd: &Path, places: &DataPaths) -> Option<String> {
    let (_, dir) = git_dir(cwd, places)?;
    let head = read_small_text(&dir.join("HEAD")).ok()?;
    head.trim().strip_prefix("ref: refs/heads/").map(|name| one_line(name.chars().take(200).collect()))
}

/// Finds the repository of `cwd`: its directory and its Git directory (gitrepository-layout(5)).
/// A repository of another user is skipped, unless it is trusted.
fn git_dir(cwd: &Path, places: &DataPaths) -> Option<(PathBuf, PathBuf)> {
    cwd.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        if git.exists() && places.foreign_git_part(dir).is_some() {
            return None;
        }
        if git.is_dir() {
            return Some((dir.into(), git));
        }
        // A worktree or a submodule.
        let named = read_small_text(&git).ok()?;
        Some((dir.into(), dir.join(named.strip_prefix("gitdir:")?.trim())))
    })
}

/// Describes the checked out branch.
fn branch(git_dir: &Path) -> String {
    let head = read_small_text(&git_dir.join("HEAD")).unwrap_or_default();
    match (head.trim().strip_prefix("ref: refs/heads/"), head.trim()) {
        (Some(branch), _) => format!("branch {}", one_line(branch.chars().take(200).collect())),
        (None, "") => "branch unknown".into(),
        (None, commit) => format!("detached at {}", one_line(commit.chars().take(12).collect())),
    }
}
