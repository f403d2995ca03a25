//! Finds the repository of a session's directory and checks that it belongs to the directory.
//!
//! Files in the directory can refer to any other repository, by `core.worktree`, `gitdir:`, a
//! symlink or `commondir`. A repository outside the session's directories is accepted only if it
//! refers back to the directory, as the repository of a linked worktree or of a submodule does.

use std::path::{Path, PathBuf};

use memchr::memmem;

use super::arguments::path;
use super::repository::Git;
use crate::toolkit::context::ToolContext;
use crate::toolkit::output::ToolError;
use crate::workspace::read_small;

impl<'c> Git<'c> {
    /// Finds the repository. Fails if the directory is not in a working tree, or if the repository
    /// does not belong to the directory or to the user.
    pub(crate) async fn open(context: &'c ToolContext) -> Result<Git<'c>, ToolError> {
        let cwd = context.workspace.cwd.display();
        let outside = || ToolError(format!("{cwd} is not in a git repository"));
        Git::find(context).await?.ok_or_else(outside)
    }

    /// Finds the repository, as [`Git::open`] does; `None` if the directory is not in a working
    /// tree.
    pub(crate) async fn find(context: &'c ToolContext) -> Result<Option<Git<'c>>, ToolError> {
        if let Some(foreign) = &context.foreign_repository {
            return Err(ToolError(format!("{foreign}; the git tools do not access it until the user runs nuncio trust")));
        }
        let mut git = Git { context, top: PathBuf::new(), large_files: None };
        let Some(origin) = find(&git).await? else { return Ok(None) };
        git.large_files = Some(origin.common.join("lfs"));
        git.top = origin.top;
        Ok(Some(git))
    }
}

/// The directories of a repository, without symlinks.
struct Origin {
    /// The working tree.
    top: PathBuf,
    /// The part of the git directory that linked worktrees share: objects, branches, settings.
    common: PathBuf,
}

/// Finds the repository of the session's directory. Fails if it does not belong to the directory.
async fn find(git: &Git<'_>) -> Result<Option<Origin>, ToolError> {
    if let Some(origin) = ordinary(&git.context.workspace.cwd) {
        return Ok(Some(origin));
    }
    let options = ["--show-toplevel", "--git-dir", "--git-common-dir"];
    let Some([top, own, common]) = places(git, options).await? else { return Ok(None) };
    let workspace = &git.context.workspace;
    let elsewhere = |what: String| Err(ToolError(format!("{what}; the git tools do not access it; use git with bash")));
    if !workspace.cwd.starts_with(&top) {
        let (top, cwd) = (top.display(), workspace.cwd.display());
        return elsewhere(format!("the working tree of this repository is {top}, and {cwd} is outside it"));
    }
    let inside = |place: &Path| place.starts_with(&top) || workspace.roots.iter().any(|root| place.starts_with(root));
    // If the git directory is inside the session's directories, a reference in it back to the
    // working tree proves nothing, because any tool call may have written it.
    let ours = match inside(&own) {
        true => inside(&common),
        false => is_linked(&top, &own, &common) || is_submodule(git, &top, &own).await?,
    };
    if !ours {
        return elsewhere(format!("this repository is {}, outside the session's directories", common.display()));
    }
    Ok(Some(Origin { top, common }))
}

/// Finds the repository without starting git, if it is in a directory `.git` whose settings cannot
/// name another working tree. Git itself checks the rest when it runs: the format and the owner.
fn ordinary(cwd: &Path) -> Option<Origin> {
    let has = |dir: &Path, name: &str| dir.join(name).symlink_metadata().is_ok();
    // A directory with this file could be a git directory itself.
    let top = cwd.ancestors().take_while(|dir| !has(dir, "HEAD")).find(|dir| has(dir, ".git"))?;
    let common = top.join(".git");
    let settings = read_small(&common.join("config")).ok()?.to_ascii_lowercase();
    let elsewhere = [&b"worktree"[..], b"include"].iter().any(|word| memmem::find(&settings, word).is_some());
    let is_repository =
        common.symlink_metadata().is_ok_and(|found| found.is_dir()) && has(&common, "HEAD") && has(&common, "objects");
    let is_ordinary = is_repository && !elsewhere && !has(&common, "commondir");
    is_ordinary.then(|| Origin { top: top.to_owned(), common })
}

/// Returns the paths that `git rev-parse` prints for these options, with symlinks resolved; `None`
/// outside of a working tree.
async fn places(git: &Git<'_>, options: [&str; 3]) -> Result<Option<[PathBuf; 3]>, ToolError> {
    let read = async |options: &[&str]| git.try_read(["rev-parse", "--path-format=absolute"].iter().chain(options).copied()).await;
    let output = read(&options).await?;
    if output.is_outside_repository() {
        return Ok(None);
    }
    let output = git.succeeded(output)?.bytes;
    let lines: Vec<&[u8]> = output.strip_suffix(b"\n").unwrap_or(&output).split(|byte| *byte == b'\n').collect();
    let mut found = match <[&[u8]; 3]>::try_from(lines) {
        Ok(lines) => lines.map(path),
        // A path contains a line break.
        Err(_) => {
            let mut found = [const { PathBuf::new() }; 3];
            for (place, option) in found.iter_mut().zip(options) {
                let output = git.succeeded(read(&[option]).await?)?.bytes;
                *place = path(output.strip_suffix(b"\n").unwrap_or(&output));
            }
            found
        }
    };
    for place in &mut found {
        *place = std::fs::canonicalize(&*place).map_err(|error| git.context.failed("looking for", place, error))?;
    }
    Ok(Some(found))
}

/// Returns whether `own` is the git directory of a linked worktree that the repository created for
/// `top` (gitrepository-layout(5), `worktrees/<id>/gitdir`).
fn is_linked(top: &Path, own: &Path, common: &Path) -> bool {
    let named = read_small(&own.join("gitdir")).map(|named| own.join(path(named.trim_ascii_end())));
    let tree =
        named.ok().filter(|named| named.file_name() == Some(".git".as_ref())).and_then(|named| named.parent()?.canonicalize().ok());
    own.parent() == Some(&common.join("worktrees")) && tree.as_deref() == Some(top)
}

/// Returns whether the settings of the repository in `own` name `top` as its working tree.
async fn is_submodule(git: &Git<'_>, top: &Path, own: &Path) -> Result<bool, ToolError> {
    let named = git.try_read(["config", "--get", "core.worktree"]).await?;
    let tree = own.join(path(named.bytes.trim_ascii_end())).canonicalize();
    Ok(named.code == 0 && tree.is_ok_and(|tree| tree == top))
}
