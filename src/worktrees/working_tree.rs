//! git commands that change one working tree. They name its git directory explicitly, because a
//! session can replace the file `.git`. Commands that must not change the user's index use a copy.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::git::{Changes, GitResult, GitRunner};
use super::repository::{Repository, top};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::workspace::{self, create_private, create_private_dir, real_path};

#[derive(Clone)]
pub(super) struct WorkingTree<'a> {
    git: &'a GitRunner,
    /// Its top directory.
    pub top: PathBuf,
    /// Its git directory: for a linked worktree, the one below `worktrees` of the repository.
    git_dir: PathBuf,
    common: PathBuf,
    /// The index that the commands use; `None`: the index of the working tree.
    index: Option<PathBuf>,
    /// The directory to which the commands write objects; `None`: that of the repository.
    objects: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Author {
    /// The user, as git's settings say.
    User,
    /// nuncio: for commits that are not added to a branch of the user.
    Nuncio,
}

/// The result of a merge that touched no file.
pub(super) enum MergedTree {
    /// Id of the tree.
    Clean(String),
    /// The files with conflicts.
    Conflicts(Vec<OsString>),
}

/// A directory for index files, which is removed when it is dropped.
pub(super) struct ScratchDir(PathBuf);

impl ScratchDir {
    /// Creates a directory below `temp`.
    pub(super) fn new(temp: &Path) -> Result<ScratchDir> {
        let path = temp.join(format!("index-{}", uuid::Uuid::now_v7().simple()));
        create_private_dir(&path)?;
        Ok(ScratchDir(path))
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "a temporary directory was not removed");
        }
    }
}

impl<'a> WorkingTree<'a> {
    /// Finds the working tree of `repository` that contains `directory`.
    pub(super) fn find(git: &'a GitRunner, repository: &Repository, directory: &Path) -> Result<WorkingTree<'a>> {
        WorkingTree::at(git, repository, top(directory))
    }

    /// Returns the working tree of `repository` with this top directory.
    pub(super) fn at(git: &'a GitRunner, repository: &Repository, found: &Path) -> Result<WorkingTree<'a>> {
        let linked = repository.git_dir_of(found);
        let git_dir = linked.or_else(|| (found == repository.main).then(|| repository.common.clone()));
        let is_bare = found == repository.common;
        let Some(git_dir) = git_dir.filter(|_| !is_bare && found.is_dir()) else {
            let message = format!("{} is not in a working tree of {}", found.display(), repository.main.display());
            return Err(Error::invalid_params(message).hint("choose a directory in one: --cwd DIR"));
        };
        Ok(WorkingTree { git, top: found.into(), git_dir, common: repository.common.clone(), index: None, objects: None })
    }

    pub(super) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the same working tree with a copy of its index, so that the commands leave the index
    /// of the working tree unchanged.
    pub(super) fn with_copied_index(&self, scratch: &ScratchDir, name: &str) -> Result<WorkingTree<'a>> {
        let copy = scratch.join(name);
        match copy_with_time(&self.index.clone().unwrap_or_else(|| self.git_dir.join("index")), &copy) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(format_args!("reading the index of {}", self.top.display()), error))
            }
            _ => Ok(WorkingTree { index: Some(copy), ..self.clone() }),
        }
    }

    /// Returns the same working tree with an index in the scratch directory, which is empty until a
    /// command writes it.
    pub(super) fn with_index(&self, scratch: &ScratchDir, name: &str) -> WorkingTree<'a> {
        WorkingTree { index: Some(scratch.join(name)), ..self.clone() }
    }

    /// Returns the same working tree, whose commands write new objects to the scratch directory.
    pub(super) fn with_scratch_objects(&self, scratch: &ScratchDir) -> Result<WorkingTree<'a>> {
        let objects = scratch.join("objects");
        create_private_dir(&objects)?;
        Ok(WorkingTree { objects: Some(objects), ..self.clone() })
    }

    /// Runs a command. Filters and merge drivers run in a sandbox that can write to the working
    /// tree and the repository; hooks do not run.
    pub(super) async fn run<S: AsRef<OsStr>>(&self, author: Author, words: &[S]) -> Result<GitResult> {
        let located = [OsStr::new("--git-dir"), self.git_dir.as_os_str(), OsStr::new("--work-tree"), self.top.as_os_str()];
        let arguments = located.into_iter().chain(words.iter().map(AsRef::as_ref)).map(OsStr::to_owned).collect();
        let mut variables: Vec<(&'static str, Option<OsString>)> = Vec::new();
        variables.extend(self.index.iter().map(|index| ("GIT_INDEX_FILE", Some(index.into()))));
        if let Some(objects) = &self.objects {
            variables.push(("GIT_OBJECT_DIRECTORY", Some(objects.into())));
            variables.push(("GIT_ALTERNATE_OBJECT_DIRECTORIES", Some(quoted(&self.common.join("objects")))));
        }
        if author == Author::Nuncio {
            let person = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|name| (name, Some("nuncio".into())));
            let address = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|name| (name, Some("nuncio@localhost".into())));
            variables.extend(person.into_iter().chain(address));
        }
        // The parent of the scratch directory is not writable, so that no filter replaces it.
        let scratch = self.index.iter().chain(&self.objects).filter_map(|path| path.parent());
        let writable: Vec<PathBuf> = [&*self.common, &*self.top].into_iter().chain(scratch).map(Path::to_owned).collect();
        self.git.change(&self.top, Changes::Files(&writable), limits::GIT_CHANGE, &variables, arguments).await
    }

    /// Runs a command that must succeed. Returns its output as text; `doing` names the operation.
    pub(super) async fn text(&self, doing: &str, words: &[&str]) -> Result<String> {
        Ok(self.run(Author::Nuncio, words).await?.success(doing)?.text())
    }

    /// Runs a git command that answers by its exit code, such as `merge-base --is-ancestor`.
    /// Returns true for yes.
    pub(super) async fn succeeds(&self, words: &[&str]) -> Result<bool> {
        Ok(self.run(Author::Nuncio, words).await?.code == 0)
    }

    /// Runs a command that prints paths.
    pub(super) async fn paths(&self, doing: &str, words: &[&str]) -> Result<Vec<OsString>> {
        names(self.run(Author::Nuncio, words).await?.success(doing)?.output, doing)
    }

    /// Runs a command for all `paths`, in batches that fit on a command line. Returns its output.
    pub(super) async fn for_paths(&self, doing: &str, words: &[&str], paths: &[OsString]) -> Result<Vec<u8>> {
        let (mut rest, mut output) = (paths, Vec::new());
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |path: &&OsString| {
                bytes += path.len() + 1;
                bytes <= limits::GIT_PATHS_BYTES_MAX
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at(count);
            let all: Vec<&OsStr> = words.iter().map(OsStr::new).chain(now.iter().map(OsString::as_os_str)).collect();
            output.extend(complete(self.run(Author::Nuncio, &all).await?.success(doing)?.output, doing)?);
            rest = later;
        }
        Ok(output)
    }

    /// Adds the present content of these files to the index, and removes missing ones from it.
    pub(super) async fn add_files(&self, paths: &[OsString]) -> Result<()> {
        // Skip a directory in place of a file: `paths` contains its files.
        let files = paths.iter().filter(|path| !is_plain_directory(&self.top.join(path)));
        let files: Vec<OsString> = files.cloned().collect();
        self.for_paths("reading the files", &["update-index", "--add", "--remove", "--"], &files).await.map(drop)
    }

    /// Returns the id of the commit that is checked out.
    pub(super) async fn head(&self) -> Result<String> {
        let head = self.run(Author::Nuncio, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await?;
        if head.code != 0 {
            return Err(Error::invalid_params(format!("{} has no commits", self.top.display())));
        }
        Ok(head.text())
    }

    /// Returns whether `ancestor` is part of the history of `commit`.
    pub(super) async fn contains(&self, commit: &str, ancestor: &str) -> Result<bool> {
        self.succeeds(&["merge-base", "--is-ancestor", ancestor, commit]).await
    }

    /// Returns the paths that differ between two trees or commits.
    pub(super) async fn changed_paths(&self, one: &str, other: &str) -> Result<Vec<OsString>> {
        self.paths("comparing trees", &["diff-tree", "-r", "-z", "--name-only", "--no-renames", one, other]).await
    }

    /// Commits all changes of the working tree, also new files, without changing its index and its
    /// branch. Returns HEAD if there are none. Uses the index of `self`, which must be a copy.
    pub(super) async fn snapshot(&self, author: Author, message: &str) -> Result<String> {
        let head = self.head().await?;
        if !self.text("reading the index", &["ls-files", "--unmerged"]).await?.is_empty() {
            let message = format!("{} has unresolved merge conflicts", self.top.display());
            return Err(Error::new(Kind::InvalidRequest, message).hint("resolve them and run git add, or git merge --abort"));
        }
        self.text("reading the changes", &["add", "--all"]).await?;
        let tree = self.text("reading the changes", &["write-tree"]).await?;
        let before = self.text("reading HEAD", &["rev-parse", "HEAD^{tree}"]).await?;
        if tree == before {
            return Ok(head);
        }
        self.commit(author, &tree, &[&head], message).await
    }

    /// Creates a commit without adding it to a branch.
    pub(super) async fn commit(&self, author: Author, tree: &str, parents: &[&str], message: &str) -> Result<String> {
        let mut words = vec!["commit-tree", tree, "-m", message];
        words.extend(parents.iter().flat_map(|parent| ["-p", parent]));
        let made = self.run(author, &words).await?;
        if made.code == 0 {
            return Ok(made.text());
        }
        Err(made.error("creating a commit").hint("if git does not know who you are: git config --global user.name and user.email"))
    }

    /// Merges two commits without touching a file.
    pub(super) async fn merge(&self, ours: &str, theirs: &str) -> Result<MergedTree> {
        let words = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs];
        let merged = self.run(Author::Nuncio, &words).await?;
        let mut fields = names(merged.output.clone(), "merging")?;
        match merged.code {
            0 | 1 if fields.is_empty() => Err(merged.error("merging")),
            0 => Ok(MergedTree::Clean(fields.remove(0).to_string_lossy().into_owned())),
            1 => Ok(MergedTree::Conflicts(fields.split_off(1))),
            129 => Err(Error::new(Kind::Unsupported, "merging needs git 2.38 or later").hint("update git")),
            _ => Err(merged.error("merging")),
        }
    }

    /// Returns whether a merge, rebase or cherry-pick of the user is not finished.
    pub(super) fn is_in_operation(&self) -> bool {
        let files = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"];
        files.iter().any(|name| self.git_dir.join(name).exists())
    }
}

/// Quotes a path as an item of git's lists of directories.
fn quoted(path: &Path) -> OsString {
    let mut quoted = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        quoted.extend(matches!(byte, b'"' | b'\\').then_some(b'\\'));
        quoted.push(*byte);
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

/// Copies an index with its modification time: git compares files again that changed at this time
/// or later, because their size and time may be equal to those in the index.
fn copy_with_time(from: &Path, to: &Path) -> std::io::Result<()> {
    // A command or a filter can have put a symlink there, to a file that only nuncio can read.
    let mut index = workspace::open(&real_path(from.parent().unwrap_or(from)).join(from.file_name().unwrap_or_default()))?;
    // Read the time first: a newer index with an older time only costs comparisons.
    let modified = index.metadata()?.modified()?;
    let _ = std::fs::remove_file(to);
    let mut copy = create_private(to)?;
    std::io::copy(&mut index, &mut copy)?;
    copy.set_modified(modified)
}

/// Returns whether `path` is a directory with entries, but no repository.
pub(super) fn is_plain_directory(path: &Path) -> bool {
    let is_directory = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    is_directory && !path.join(".git").exists() && std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

/// Fails if output was truncated.
fn complete(output: Vec<u8>, doing: &str) -> Result<Vec<u8>> {
    if output.len() >= limits::GIT_OUTPUT_BYTES_MAX {
        return Err(Error::new(Kind::TooLarge, format!("{doing}: too many files have changed")));
    }
    Ok(output)
}

/// Splits output that ends each path with NUL.
fn names(output: Vec<u8>, doing: &str) -> Result<Vec<OsString>> {
    let output = complete(output, doing)?;
    let fields = output.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(fields.map(|path| OsStr::from_bytes(path).to_owned()).collect())
}
