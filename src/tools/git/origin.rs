//! Whose a repository is. What lies in a session's directory may name any other, by `core.worktree`, `gitdir:`, a link or `commondir`:
//! one elsewhere is looked at only when it names the directory too, as that of a linked worktree or of a submodule does.

use std::path::{Path, PathBuf};

use super::{Git, path};
use crate::tools::ToolError;
use crate::workspace::read_small;

/// All without symlinks.
pub struct Origin {
    /// The working tree.
    pub top: PathBuf,
    /// What linked worktrees share: objects, branches, settings.
    pub common: PathBuf,
}

/// The repository of the session's directory.
pub async fn find(git: &Git<'_>) -> Result<Origin, ToolError> {
    let (top, own) = (place(git, "--show-toplevel").await?, place(git, "--git-dir").await?);
    let common = place(git, "--git-common-dir").await?;
    let workspace = &git.context.workspace;
    let elsewhere = |what: String| Err(ToolError(format!("{what}; the git tools do not look there, git with bash does")));
    if !workspace.cwd.starts_with(&top) {
        let (top, cwd) = (top.display(), workspace.cwd.display());
        return elsewhere(format!("the working tree of this repository is {top}, and {cwd} is outside it"));
    }
    let inside = |place: &Path| place.starts_with(&top) || workspace.roots.iter().any(|root| place.starts_with(root));
    // What is inside says of itself whatever somebody wrote there.
    let ours = match inside(&own) {
        true => inside(&common),
        false => is_linked(&top, &own, &common) || is_submodule(git, &top, &own).await?,
    };
    if !ours {
        return elsewhere(format!("this repository is {}, outside the session's directories", common.display()));
    }
    Ok(Origin { top, common })
}

async fn place(git: &Git<'_>, what: &str) -> Result<PathBuf, ToolError> {
    let said = git.read(["rev-parse", "--path-format=absolute", what]).await?;
    let named = path(said.bytes.strip_suffix(b"\n").unwrap_or(&said.bytes));
    std::fs::canonicalize(&named).map_err(|error| git.context.failed("looking for", &named, error))
}

/// The worktree is one that the repository made (gitrepository-layout(5), `worktrees/<id>/gitdir`).
fn is_linked(top: &Path, own: &Path, common: &Path) -> bool {
    let named = read_small(&own.join("gitdir")).map(|named| own.join(path(named.trim_ascii_end())));
    let tree =
        named.ok().filter(|named| named.file_name() == Some(".git".as_ref())).and_then(|named| named.parent()?.canonicalize().ok());
    own.parent() == Some(&common.join("worktrees")) && tree.as_deref() == Some(top)
}

/// The settings of the repository name the working tree.
async fn is_submodule(git: &Git<'_>, top: &Path, own: &Path) -> Result<bool, ToolError> {
    let named = git.try_read(["config", "--get", "core.worktree"]).await?;
    let tree = own.join(path(named.bytes.trim_ascii_end())).canonicalize();
    Ok(named.code == 0 && tree.is_ok_and(|tree| tree == top))
}
