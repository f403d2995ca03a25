//! Takes the work of a workspace, its commits and its uncommitted changes, into another working
//! tree of the repository. The result is computed first, without touching a file. Then the files,
//! the branch and the index are updated; if that fails, the files are restored.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Worktrees;
use super::apply_files::{FileUpdate, blocked_by};
use super::inspect::PathList;
use super::repository::Repository;
use super::working_tree::{Author, MergedTree, ScratchDir, WorkingTree};
use crate::error::{Error, Kind, Result};
use crate::store::WorkspaceRow;

/// Maximum number of merges for one `workspaces apply`: a merge can name files that the next one
/// has to include, because they were renamed.
const APPLY_MERGES_MAX: usize = 4;

/// How the work of a workspace is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApplyMode {
    /// Merges its commits into the current branch. Its uncommitted changes become a commit, also in
    /// the workspace.
    Merge,
    /// Adds one commit with all its changes to the current branch.
    Squash,
    /// Changes only files; nothing is committed.
    Patch,
}

/// The work to take over.
pub(crate) struct ApplyRequest<'r> {
    pub row: &'r WorkspaceRow,
    /// A directory in the working tree that receives the changes.
    pub directory: &'r Path,
    /// `None`: [`ApplyMode::Merge`], or [`ApplyMode::Patch`] if the current branch does not contain
    /// the commit from which the workspace was created.
    pub mode: Option<ApplyMode>,
    /// The message of the commit.
    pub title: &'r str,
}

/// The result. Without conflicts and without `applied`, there was nothing to take over.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApplyOutcome {
    pub applied: bool,
    pub mode: ApplyMode,
    /// Top directory of the working tree that received the changes.
    pub directory: PathBuf,
    /// The new commit of its branch; missing for `patch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The changed files.
    pub files: PathList,
    /// Files with conflicts. If there are any, nothing was changed.
    pub conflicts: PathList,
}

/// The commits that a merge starts from.
struct MergeStart {
    /// HEAD of the working tree that receives the changes.
    head: String,
    /// A commit with all work of the workspace.
    work: String,
    mode: ApplyMode,
    /// The commit from which the workspace was created, if the merge counts changes from there
    /// although the current branch does not contain it.
    base: Option<String>,
    /// Paths that the workspace changes.
    paths: Vec<OsString>,
}

/// A computed result: trees whose difference is written to the files, and the tree to commit.
struct MergeResult {
    /// The user's files on the changed paths, before and after.
    before: String,
    after: String,
    changed: Vec<OsString>,
    /// The tree of the new commit; `None` if nothing is committed.
    committed: Option<String>,
}

impl Worktrees {
    /// Takes over the work of a workspace. On an error or a conflict, the files, the index and the
    /// branch are as before. Uncommitted changes of the user are merged or are a conflict.
    pub(crate) async fn apply(&self, request: ApplyRequest<'_>) -> Result<ApplyOutcome> {
        let row = request.row;
        self.check_place(row)?;
        let Some(repository) = Repository::existing(&self.git, &row.repository).await else {
            return Err(Error::not_found(format!("{} is not a git repository any more", row.repository.display())));
        };
        if !row.path.is_dir() {
            return Err(Error::not_found(format!("the directory of workspace {} is missing", row.name)));
        }
        let source = WorkingTree::at(&self.git, &repository, &row.path)?;
        let target = WorkingTree::find(&self.git, &repository, request.directory)?;
        if target.top == source.top {
            let message = format!("{} is the workspace itself", request.directory.display());
            return Err(Error::invalid_params(message).hint("choose the directory that receives the changes: --cwd DIR"));
        }
        let scratch = ScratchDir::new(&self.git.temp)?;
        let author = if request.mode.unwrap_or(ApplyMode::Merge) == ApplyMode::Merge { Author::User } else { Author::Nuncio };
        let work = source.with_copied_index(&scratch, "work")?.snapshot(author, request.title).await?;
        let start = merge_start(&target, row, request.mode, work).await?;
        let outcome = |applied, commit, files: &[OsString], conflicts: &[OsString]| ApplyOutcome {
            applied,
            mode: start.mode,
            directory: target.top.clone(),
            commit,
            files: path_list(files),
            conflicts: path_list(conflicts),
        };
        if start.paths.is_empty() {
            return Ok(outcome(false, None, &[], &[]));
        }
        let unfinished = target.is_in_operation() && start.mode != ApplyMode::Patch;
        if unfinished || !target.text("reading the index", &["ls-files", "--unmerged"]).await?.is_empty() {
            let message = format!("a merge, rebase or cherry-pick in {} is not finished", target.top.display());
            return Err(Error::new(Kind::InvalidRequest, message).hint("finish it, or undo it with its option --abort"));
        }
        let application =
            Application { source: &source, target: &target, scratch: &scratch, start: &start, row, title: request.title };
        match application.run().await? {
            Ok(Some((commit, changed))) => Ok(outcome(true, commit, &changed, &[])),
            Ok(None) => Ok(outcome(false, None, &[], &[])),
            Err(conflicts) => Ok(outcome(false, None, &[], &conflicts)),
        }
    }
}

/// Determines the mode and the changes of the workspace.
async fn merge_start(target: &WorkingTree<'_>, row: &WorkspaceRow, mode: Option<ApplyMode>, work: String) -> Result<MergeStart> {
    let head = target.head().await?;
    let mut foreign = None;
    if let Some(base) = &row.base_commit
        && !target.contains(&head, base).await?
        && target.contains(&work, base).await?
    {
        foreign = Some(base.clone());
    }
    let default = if foreign.is_some() { ApplyMode::Patch } else { ApplyMode::Merge };
    let mode = mode.unwrap_or(default);
    let base = foreign.filter(|_| mode != ApplyMode::Merge);
    let common = match &base {
        Some(base) => base.clone(),
        None => target.text("finding the common commit", &["merge-base", &head, &work]).await?,
    };
    let paths = target.changed_paths(&common, &work).await?;
    Ok(MergeStart { head, work, mode, base, paths })
}

/// A value, or the conflicting files.
type ConflictResult<T> = std::result::Result<T, Vec<OsString>>;

/// An application with resolved commits.
struct Application<'a> {
    source: &'a WorkingTree<'a>,
    target: &'a WorkingTree<'a>,
    scratch: &'a ScratchDir,
    start: &'a MergeStart,
    row: &'a WorkspaceRow,
    title: &'a str,
}

impl Application<'_> {
    /// Merges, writes the files and moves the branch. Returns the new commit and the changed files;
    /// `None` if the files and the branch already have the work.
    async fn run(&self) -> Result<ConflictResult<Option<(Option<String>, Vec<OsString>)>>> {
        let merged = match self.merge_or_continue().await? {
            Ok(merged) => merged,
            Err(conflicts) => return Ok(Err(conflicts)),
        };
        let head_tree = self.target.text("reading HEAD", &["rev-parse", &format!("{}^{{tree}}", self.start.head)]).await?;
        if merged.changed.is_empty() && merged.committed.as_ref().is_none_or(|tree| *tree == head_tree) {
            return Ok(Ok(None));
        }
        let commit = match &merged.committed {
            None => None,
            Some(tree) => Some(self.new_commit(tree).await?),
        };
        let update = FileUpdate { target: self.target, scratch: self.scratch, before: &merged.before, after: &merged.after };
        update.write(&merged.changed).await?;
        if let Some(commit) = &commit
            && let Err(error) = self.advance(commit).await
        {
            return Err(update.restore(&merged.changed, error).await);
        }
        self.remember().await;
        Ok(Ok(Some((commit, merged.changed))))
    }

    /// Merges the work. If an earlier application without a merge causes conflicts, merges only the
    /// later work.
    async fn merge_or_continue(&self) -> Result<ConflictResult<MergeResult>> {
        let MergeStart { work, mode, base, .. } = self.start;
        let conflicts = match self.merge(base.as_deref(), work).await? {
            Err(conflicts) if *mode != ApplyMode::Merge => conflicts,
            merged => return Ok(merged),
        };
        let found = self.target.run(Author::Nuncio, &["rev-parse", "--verify", "--quiet", &applied_ref(self.row)]).await?;
        let (0, applied, Some(origin)) = (found.code, found.text(), &self.row.base_commit) else { return Ok(Err(conflicts)) };
        if !self.target.contains(&applied, origin).await? {
            return Ok(Err(conflicts));
        }
        let later = self.target.commit(Author::Nuncio, &format!("{work}^{{tree}}"), &[&applied], "later work").await?;
        Ok(self.merge(Some(&applied), &later).await?.or(Err(conflicts)))
    }

    /// Merges a commit with the user's files and, for a commit, with HEAD. The changes count from
    /// `base`, or from the common commit.
    async fn merge(&self, base: Option<&str>, work: &str) -> Result<ConflictResult<MergeResult>> {
        let MergeStart { head, mode, paths, .. } = self.start;
        let user = self.target.with_copied_index(self.scratch, "user")?;
        let mut paths = paths.clone();
        // The first merge can change further files: those that the user's branch has renamed.
        for _ in 0..APPLY_MERGES_MAX {
            let blocking = blocked_by(&self.target.top, &paths);
            if !blocking.is_empty() {
                return Ok(Err(blocking));
            }
            user.add_files(&paths).await?;
            let before = user.text("reading the files", &["write-tree"]).await?;
            let ours = user.commit(Author::Nuncio, &before, &[base.unwrap_or(head)], "files of the user").await?;
            let after = match user.merge(&ours, work).await? {
                MergedTree::Clean(tree) => tree,
                MergedTree::Conflicts(conflicts) => return Ok(Err(conflicts)),
            };
            let changed = user.changed_paths(&before, &after).await?;
            let new: Vec<OsString> = changed.iter().filter(|path| !paths.contains(path)).cloned().collect();
            if !new.is_empty() {
                paths.extend(new);
                continue;
            }
            if *mode == ApplyMode::Patch {
                return Ok(Ok(MergeResult { before, after, changed, committed: None }));
            }
            let ours = match base {
                Some(base) => user.commit(Author::Nuncio, &format!("{head}^{{tree}}"), &[base], "HEAD").await?,
                None => head.clone(),
            };
            return Ok(match user.merge(&ours, work).await? {
                MergedTree::Clean(tree) => Ok(MergeResult { before, after, changed, committed: Some(tree) }),
                MergedTree::Conflicts(conflicts) => Err(conflicts),
            });
        }
        Err(Error::internal("the paths of a merge did not become stable"))
    }

    /// Creates the commit for the user's branch, and checks that the index can be updated.
    async fn new_commit(&self, tree: &str) -> Result<String> {
        let (MergeStart { head, work, mode, .. }, target) = (self.start, self.target);
        let copy = target.with_copied_index(self.scratch, "staged")?;
        let checked = copy.run(Author::Nuncio, &["read-tree", "-i", "-m", head, tree]).await?;
        if checked.code != 0 {
            let message = format!("staged changes in {} prevent a commit: {}", target.top.display(), checked.problem());
            let hint = "commit them, unstage them with git restore --staged ., or use --patch";
            return Err(Error::new(Kind::InvalidRequest, message).hint(hint));
        }
        if *mode == ApplyMode::Squash {
            return target.commit(Author::User, tree, &[head], self.title).await;
        }
        let tree_of_work = target.text("reading the work", &["rev-parse", &format!("{work}^{{tree}}")]).await?;
        if tree_of_work == tree && target.contains(work, head).await? {
            return Ok(work.clone());
        }
        let message = format!("Merge workspace {}: {}", self.row.name, self.title);
        target.commit(Author::User, tree, &[head, work], &message).await
    }

    /// Lets later applications start from this work: a merge also commits it in the workspace, the
    /// others are recorded in a reference. A failure only makes conflicts more likely.
    async fn remember(&self) {
        let MergeStart { work, mode, .. } = self.start;
        let reference = applied_ref(self.row);
        let steps: &[(&WorkingTree<'_>, &[&str])] = match mode {
            ApplyMode::Merge => &[
                (self.source, &["update-ref", "-m", "nuncio workspaces apply", "HEAD", work]),
                (self.source, &["read-tree", work]),
                (self.source, &["update-index", "-q", "--refresh"]),
            ],
            ApplyMode::Squash | ApplyMode::Patch => &[(self.target, &["update-ref", &reference, work])],
        };
        for (tree, words) in steps {
            if let Err(error) = tree.text("recording the applied work", words).await {
                tracing::warn!(%error, workspace = self.row.id, "the applied work was not recorded");
                return;
            }
        }
    }

    /// Moves the branch and the index from HEAD to `commit`: both or none.
    async fn advance(&self, commit: &str) -> Result<()> {
        let (head, target) = (self.start.head.as_str(), self.target);
        let reason = format!("nuncio workspaces apply {}", self.row.name);
        let moved = target.run(Author::User, &["update-ref", "-m", &reason, "HEAD", commit, head]).await?;
        moved.success("moving the branch")?;
        let updated = target.run(Author::User, &["read-tree", "-i", "-m", head, commit]).await;
        let Err(error) = updated.and_then(|updated| updated.success("updating the index")) else {
            // Only speeds up later commands.
            let _ = target.run(Author::User, &["update-index", "-q", "--refresh"]).await;
            return Ok(());
        };
        target.run(Author::User, &["update-ref", "-m", &reason, "HEAD", head, commit]).await?;
        Err(error)
    }
}

/// Returns the reference to the work that was applied last.
pub(super) fn applied_ref(row: &WorkspaceRow) -> String {
    format!("refs/nuncio/applied/{}", row.name)
}

fn path_list(paths: &[OsString]) -> PathList {
    let mut list = PathList::default();
    paths.iter().for_each(|path| list.add(path.as_bytes()));
    list
}
