//! Repositories and their lists of worktrees.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use ring::digest::{SHA256, digest};

use super::git::GitRunner;
use crate::error::{Error, Result};
use crate::workspace::{read_small, real_path};

/// Number of retries of a failed `git worktree list`, and the pause before each retry.
const WORKTREE_LIST_RETRIES: usize = 5;
const WORKTREE_LIST_PAUSE: Duration = Duration::from_millis(20);
/// Maximum length of the repository's name in the directory of its worktrees, in characters.
const WORKTREE_PROJECT_CHARS_MAX: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The main worktree, or the directory of a bare repository. git runs here.
    pub main: PathBuf,
    /// The git directory that all worktrees share.
    pub common: PathBuf,
}

/// A worktree in the list of git (git-worktree(1), "porcelain format").
#[derive(Clone, Debug, Default)]
pub(super) struct ListedWorktree {
    pub path: PathBuf,
    /// Commit id; `None` if the branch has no commits.
    pub head: Option<String>,
    /// Branch without `refs/heads/`; `None` if HEAD is detached.
    pub branch: Option<String>,
    /// Reason of the lock; may be empty.
    pub locked: Option<String>,
}

impl Repository {
    /// Finds the repository that contains `directory`.
    pub(super) async fn find(git: &GitRunner, directory: &Path) -> Result<Repository> {
        let directory = &real_path(directory);
        let found = top(directory);
        let arguments = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let result = git.read(found, Some(found), arguments).await?;
        if result.code != 0 {
            let error = Error::invalid_params(format!("{} is not in a git repository", directory.display()));
            return Err(error.hint("create one: git init"));
        }
        let common = real_path(path(result.output.strip_suffix(b"\n").unwrap_or(&result.output)));
        Repository::at(git, &common).await
    }

    /// Returns the repository with the shared git directory `common`.
    async fn at(git: &GitRunner, common: &Path) -> Result<Repository> {
        let listed = list(git, common).await?;
        let main = listed.first().map(|main| real_path(&main.path)).unwrap_or_else(|| common.into());
        if main.to_str().is_none_or(|text| text.contains('\n')) {
            return Err(Error::invalid_params(format!("{}: its path is not UTF-8 or contains a line break", main.display())));
        }
        Ok(Repository { main, common: common.into() })
    }

    /// Returns the repository whose main worktree is `main`; `None` if it no longer exists.
    pub(super) async fn existing(git: &GitRunner, main: &Path) -> Option<Repository> {
        main.is_dir().then_some(())?;
        let found = Repository::find(git, main).await.ok().filter(|repository| repository.main == main);
        match found {
            Some(found) => Some(found),
            // The repository of a submodule is named by its git directory.
            None => Repository::at(git, main).await.ok().filter(|repository| repository.main == main),
        }
    }

    /// Returns whether the repository refers to the working tree of `directory`. Any directory can
    /// refer to the repository: by a link, `gitdir:` or `commondir`.
    pub(crate) fn has(&self, directory: &Path) -> bool {
        let directory = real_path(directory);
        let top = top(&directory);
        top == self.main || self.git_dir_of(top).is_some()
    }

    /// Returns the name of the directory for its worktrees: the name of the repository and a digest
    /// of its path.
    pub(super) fn project(&self) -> String {
        let name = self.main.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".git").unwrap_or(&name).chars();
        let plain = |character: char| if character.is_ascii_alphanumeric() || character == '_' { character } else { '-' };
        let name: String = name.map(plain).take(WORKTREE_PROJECT_CHARS_MAX).collect();
        let digest = digest(&SHA256, self.main.as_os_str().as_bytes());
        let digest: String = digest.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{name}-{digest}")
    }

    /// Lists all worktrees, the main one first.
    pub(super) async fn worktrees(&self, git: &GitRunner) -> Result<Vec<ListedWorktree>> {
        list(git, &self.common).await
    }

    /// Finds the git directory of the linked worktree at `path`, which need not exist.
    pub(super) fn git_dir_of(&self, path: &Path) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.common.join("worktrees")).ok()?.flatten();
        let wanted = path.join(".git");
        let named = |own: &Path| Some(lexical(&own.join(self::path(read_small(&own.join("gitdir")).ok()?.trim_ascii_end()))));
        let names = |own: &Path| named(own).is_some_and(|named| named == wanted);
        entries.map(|entry| entry.path()).find(|own| names(own))
    }
}

/// Returns the directory in which git runs for `directory`: the top of the working tree that
/// contains it, or the directory itself if it is a bare repository or in no repository.
pub(super) fn top(directory: &Path) -> &Path {
    let is_bare = directory.join("HEAD").is_file() && directory.join("objects").is_dir();
    let top = directory.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok());
    top.filter(|_| !is_bare).unwrap_or(directory)
}

/// Returns git's list. git can fail while another process creates a worktree, so failures are
/// retried.
async fn list(git: &GitRunner, common: &Path) -> Result<Vec<ListedWorktree>> {
    let mut arguments = vec![OsStr::new("--git-dir"), common.as_os_str()];
    arguments.extend(["worktree", "list", "--porcelain", "-z"].map(OsStr::new));
    let mut retries = WORKTREE_LIST_RETRIES;
    loop {
        let result = git.read(common, None, &arguments).await?;
        if result.code == 0 {
            return Ok(parse(&result.output));
        }
        if retries == 0 {
            return Err(result.error("listing worktrees"));
        }
        retries -= 1;
        tokio::time::sleep(WORKTREE_LIST_PAUSE).await;
    }
}

/// Parses the list: NUL-terminated attributes, and an empty one after each worktree.
fn parse(output: &[u8]) -> Vec<ListedWorktree> {
    let mut all: Vec<ListedWorktree> = Vec::new();
    for field in output.split(|byte| *byte == 0) {
        let space = field.iter().position(|byte| *byte == b' ').unwrap_or(field.len());
        let (name, value) = (&field[..space], field.get(space + 1..).unwrap_or_default());
        let text = || String::from_utf8_lossy(value).into_owned();
        if name == b"worktree" {
            all.push(ListedWorktree { path: path(value).into(), ..ListedWorktree::default() });
        }
        let Some(last) = all.last_mut() else { continue };
        match name {
            b"HEAD" => last.head = Some(text()).filter(|id| id.bytes().any(|digit| digit != b'0')),
            b"branch" => last.branch = Some(text().trim_start_matches("refs/heads/").to_owned()),
            b"locked" => last.locked = Some(text()),
            _ => {}
        }
    }
    all
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Resolves `..` in a path without the file system, because the path's directories need not exist.
fn lexical(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    whole
}
