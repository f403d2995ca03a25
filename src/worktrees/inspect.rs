//! The state of a workspace, and what its deletion would lose.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use super::repository::{ListedWorktree, Repository};
use super::size::{DirectorySize, measure};
use super::{Worktrees, files};
use crate::error::Result;
use crate::limits;
use crate::process::{RunningProcess, processes_in};
use crate::store::{WorkspaceRow, WorkspaceState};
use crate::task;

/// A workspace: a git worktree for sessions.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceInfo {
    pub workspace_id: String,
    pub name: String,
    /// The main worktree of the repository.
    pub repository: PathBuf,
    /// The directory: the `cwd` of sessions in the workspace.
    pub path: PathBuf,
    pub state: WorkspaceState,
    /// The branch that is checked out; missing if HEAD is detached.
    pub branch: Option<String>,
    /// The branch or commit from which the workspace was created.
    pub base: Option<String>,
    /// Commit id of HEAD.
    pub head: Option<String>,
    /// Milliseconds since the Unix epoch; missing if the store has no row for the workspace.
    pub created_at_ms: Option<u64>,
    /// Values that clients stored, by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Space on the disk, in bytes.
    pub size: u64,
    pub changes: WorkspaceChanges,
    /// Number of commits that neither the base nor the upstream branch contains. Commits that were
    /// squashed or rebased into the base also count.
    pub unmerged_commits: u64,
    /// The reason of a lock that nuncio did not set.
    pub locked: Option<String>,
    /// Processes whose working directory is in the workspace.
    pub processes: Vec<RunningProcess>,
    /// Why the state could not be read completely.
    pub problem: Option<String>,
}

/// Files of a workspace that git does not have in a commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WorkspaceChanges {
    /// Files with changes that are not committed.
    pub modified: PathList,
    pub untracked: PathList,
    /// Ignored files; a directory that is ignored as a whole counts once.
    pub ignored: PathList,
    /// Submodules with a checkout, whose commits may exist nowhere else.
    pub submodules: PathList,
}

/// The treatment of the branch of a deleted workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BranchOnDelete {
    /// It is deleted if it was created with the workspace, and if its base or its upstream branch
    /// contains all its commits.
    #[default]
    Merged,
    /// It is kept.
    Keep,
    /// It is deleted, with the commits that no other branch contains.
    Delete,
}

/// Paths relative to the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PathList {
    pub count: u64,
    /// The first paths. Empty in the list of workspaces.
    pub paths: Vec<String>,
}

/// Commits that no other branch, tag or remote branch contains.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LostCommits {
    pub count: u64,
    /// The first commits: abbreviated id and subject.
    pub commits: Vec<String>,
}

/// The state of a workspace at one time.
pub(crate) struct Inspection {
    pub info: WorkspaceInfo,
    /// Commits that would be lost by the deletion.
    pub lost: LostCommits,
    /// Changes with any change of the state.
    pub token: String,
}

impl PathList {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the paths as one line, with a mark if some are omitted.
    pub(crate) fn line(&self) -> String {
        let more = if self.count > self.paths.len() as u64 { ", …" } else { "" };
        format!("{}{more}", self.paths.join(", "))
    }

    /// Counts a path, and keeps it if there is room.
    pub(super) fn add(&mut self, path: &[u8]) {
        self.count += 1;
        if self.paths.len() < limits::WORKTREE_PATHS_SHOWN_MAX {
            self.paths.push(String::from_utf8_lossy(path).into_owned());
        }
    }
}

impl WorkspaceInfo {
    /// Returns whether its deletion would lose no file and stop no process. Ignored files and
    /// commits do not count.
    pub(crate) fn is_disposable(&self) -> bool {
        !self.changes.has_files() && self.processes.is_empty() && self.locked.is_none() && self.problem.is_none()
    }

    /// Returns whether it has work that its base lacks: changed files or commits.
    pub(crate) fn has_work(&self) -> bool {
        self.changes.has_files() || self.unmerged_commits > 0
    }
}

impl WorkspaceChanges {
    /// Returns whether there are files outside of commits, except ignored ones.
    fn has_files(&self) -> bool {
        self.modified.count + self.untracked.count + self.submodules.count > 0
    }

    /// Removes the paths and keeps the counts.
    pub(crate) fn without_paths(&mut self) {
        for list in [&mut self.modified, &mut self.untracked, &mut self.ignored, &mut self.submodules] {
            list.paths.clear();
        }
    }
}

/// The parts of a workspace that git reports.
struct GitState<'a> {
    repository: &'a Repository,
    listed: Option<ListedWorktree>,
    /// The git directory of the worktree.
    own: Option<PathBuf>,
}

impl Worktrees {
    /// Inspects a workspace. The `sessions` in it become part of the token, and so does `action`.
    pub(crate) async fn inspect(&self, row: &WorkspaceRow, sessions: &[String], action: BranchOnDelete) -> Result<Inspection> {
        self.check_place(row)?;
        let repository = Repository::existing(&self.git, &row.repository).await;
        let listed = match &repository {
            Some(repository) => repository.worktrees(&self.git).await?,
            None => Vec::new(),
        };
        self.inspect_listed(row, repository.as_ref(), &listed, sessions, action).await
    }

    /// Inspects a workspace like [`Worktrees::inspect`], with the list of worktrees of the
    /// repository.
    pub(super) async fn inspect_listed(
        &self,
        row: &WorkspaceRow,
        repository: Option<&Repository>,
        listed: &[ListedWorktree],
        sessions: &[String],
        action: BranchOnDelete,
    ) -> Result<Inspection> {
        let place = row.path.clone();
        let measure = move || (measure(&place), processes_in(&place, limits::WORKTREE_PROCESSES_MAX));
        let (size, processes) = task::blocking("measuring a worktree", measure).await?;
        let state = match row.path.is_dir() {
            false if row.state == WorkspaceState::Ready => WorkspaceState::Missing,
            _ => row.state,
        };
        let mut info = WorkspaceInfo {
            workspace_id: row.id.clone(),
            name: row.name.clone(),
            repository: row.repository.clone(),
            path: row.path.clone(),
            state,
            branch: row.branch.clone(),
            base: row.base.clone(),
            head: None,
            created_at_ms: Some(row.created_ms).filter(|created| *created > 0),
            metadata: row.metadata.clone(),
            size: size.bytes,
            changes: WorkspaceChanges::default(),
            unmerged_commits: 0,
            locked: None,
            processes,
            problem: None,
        };
        let mut lost = LostCommits::default();
        let mut status = Vec::new();
        match repository {
            None => info.problem = Some(format!("{} is not a git repository any more", row.repository.display())),
            Some(repository) => {
                let listed = listed.iter().find(|listed| listed.path == row.path).cloned();
                let git = GitState { repository, listed, own: repository.git_dir_of(&row.path) };
                git.describe(row, &mut info);
                match self.changes(row, &git, &mut info.changes).await {
                    Ok(output) => status = output,
                    Err(error) => info.problem = Some(error.message),
                }
                if let Some(head) = &info.head {
                    info.unmerged_commits = self.unmerged(row, repository, head, info.branch.as_deref()).await?;
                }
                match self.lost(row, &git, &info, action).await {
                    Ok(commits) => lost = commits,
                    Err(error) => info.problem = Some(error.message),
                }
            }
        }
        if row.path.is_dir() && (repository.is_none() || status.is_empty()) {
            // List all files: the directory is not a git working tree.
            let entries = std::fs::read_dir(&row.path).into_iter().flatten().flatten().map(|entry| entry.file_name());
            entries.filter(|name| name != ".git").for_each(|name| info.changes.untracked.add(name.as_bytes()));
        }
        let token = token(&info, &lost, &size, &status, sessions, action);
        Ok(Inspection { info, lost, token })
    }

    /// Reads the changes. Returns the output of git, which is empty if the worktree is not
    /// registered.
    async fn changes(&self, row: &WorkspaceRow, git: &GitState<'_>, changes: &mut WorkspaceChanges) -> Result<Vec<u8>> {
        let Some(own) = git.own.as_deref().filter(|_| row.path.is_dir()) else { return Ok(Vec::new()) };
        let located = [OsStr::new("--git-dir"), own.as_os_str(), OsStr::new("--work-tree"), row.path.as_os_str()];
        let run = async |words: &[&str]| {
            let all = located.iter().copied().chain(words.iter().map(OsStr::new));
            self.git.read(&row.path, Some(&row.path), all).await
        };
        let words = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignored=matching"];
        let status = run(&words).await?.success("reading the status")?;
        let mut fields = status.output.split(|byte| *byte == 0);
        while let Some(field) = fields.next() {
            let rest = |columns: usize| field.splitn(columns + 1, |byte| *byte == b' ').nth(columns).unwrap_or_default();
            match field.first() {
                Some(b'1') => changes.modified.add(rest(8)),
                Some(b'2') => {
                    changes.modified.add(rest(9));
                    fields.next();
                }
                Some(b'u') => changes.modified.add(rest(10)),
                Some(b'?') => changes.untracked.add(rest(1)),
                Some(b'!') => changes.ignored.add(rest(1)),
                _ => {}
            }
        }
        if row.path.join(".gitmodules").is_file() {
            let names = ["config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$"];
            for field in run(&names).await?.output.split(|byte| *byte == 0) {
                let path = field.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default();
                if !path.is_empty() && row.path.join(OsStr::from_bytes(path)).join(".git").exists() {
                    changes.submodules.add(path);
                }
            }
        }
        Ok(status.output)
    }

    /// Counts the commits of `tip` that neither the base of the workspace nor the upstream of
    /// `branch` contains.
    pub(super) async fn unmerged(
        &self,
        row: &WorkspaceRow,
        repository: &Repository,
        tip: &str,
        branch: Option<&str>,
    ) -> Result<u64> {
        let mut merged: Vec<String> = row.base_commit.iter().cloned().collect();
        let base = row.base.iter().flat_map(|base| ["heads", "remotes"].map(|kind| format!("refs/{kind}/{base}")));
        merged.extend(base.chain(branch.map(|branch| format!("{branch}@{{upstream}}"))));
        let mut words = vec!["rev-list".to_owned(), "--count".into(), tip.into(), "--not".into()];
        for name in merged {
            let name = format!("{name}^{{commit}}");
            let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
            words.extend(self.git.read(&repository.main, None, arguments).await?.found());
        }
        let counted = self.git.read(&repository.main, None, words).await?;
        counted.text().parse().map_err(|_| counted.error("counting commits"))
    }

    /// Finds the commits that no branch, tag or remote branch contains after the deletion.
    async fn lost(
        &self,
        row: &WorkspaceRow,
        git: &GitState<'_>,
        info: &WorkspaceInfo,
        action: BranchOnDelete,
    ) -> Result<LostCommits> {
        let branch = row.branch.as_deref().filter(|_| action == BranchOnDelete::Delete);
        let detached = info.head.as_ref().filter(|_| info.branch.is_none());
        let reference = branch.map(|branch| format!("refs/heads/{branch}"));
        let main = &git.repository.main;
        let mut starts: Vec<&str> = detached.into_iter().map(String::as_str).collect();
        if let Some(reference) = &reference {
            let exists = self.git.read(main, None, ["rev-parse", "--verify", "--quiet", reference]).await?;
            starts.extend(Some(reference.as_str()).filter(|_| exists.code == 0));
        }
        if starts.is_empty() {
            return Ok(LostCommits::default());
        }
        let exclude = branch.map(|branch| format!("--exclude={branch}"));
        let mut words = vec!["log", "--format=%h %s"];
        words.extend(starts);
        words.push("--not");
        words.extend(exclude.as_deref());
        words.extend(["--branches", "--tags", "--remotes"]);
        let text = self.git.read(main, None, words).await?.success("reading the commits")?.text();
        let lines = || text.lines().filter(|line| !line.is_empty());
        let commits = lines().take(limits::WORKTREE_PATHS_SHOWN_MAX).map(str::to_owned).collect();
        Ok(LostCommits { count: lines().count() as u64, commits })
    }
}

impl GitState<'_> {
    /// Adds the fields from the list of worktrees.
    fn describe(&self, row: &WorkspaceRow, info: &mut WorkspaceInfo) {
        let Some(listed) = &self.listed else { return };
        let ours = [format!("nuncio workspace {}", row.id), "initializing".into()];
        info.branch.clone_from(&listed.branch);
        info.head.clone_from(&listed.head);
        info.locked = listed.locked.clone().filter(|reason| !ours.contains(reason));
    }
}

/// Computes a digest of the state for [`Inspection::token`].
fn token(
    info: &WorkspaceInfo,
    lost: &LostCommits,
    size: &DirectorySize,
    status: &[u8],
    sessions: &[String],
    action: BranchOnDelete,
) -> String {
    let mut all = Context::new(&SHA256);
    let mut add = |bytes: &[u8]| {
        all.update(&(bytes.len() as u64).to_le_bytes());
        all.update(bytes);
    };
    let described = serde_json::json!([info, lost.count, sessions, action]).to_string();
    [described.as_bytes(), &size.digest, status].into_iter().for_each(&mut add);
    all.finish().as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether `path` is the directory of a worktree below `project`.
pub(super) fn name_below<'p>(project: &Path, path: &'p Path) -> Option<&'p str> {
    let name = path.file_name()?.to_str()?;
    (path.parent() == Some(project) && files::is_name(name)).then_some(name)
}
