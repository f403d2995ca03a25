//! Creates worktrees.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::git::Changes;
use super::prepare::Preparation;
use super::repository::Repository;
use super::{Worktrees, files};
use crate::config::REPOSITORY_FILE;
use crate::error::{Error, Result};
use crate::limits;
use crate::store::{WorkspaceRow, WorkspaceState};
use crate::workspace::{create_private_dir, write_private};

/// Timeout of creating a git worktree, including the hooks of the repository.
const WORKTREE_CREATE: Duration = Duration::from_secs(600);
/// Maximum length of the name of a git worktree that is made of an agent and a title. Some agents
/// have long names, and a number can follow.
const WORKTREE_WORDS_CHARS_MAX: usize = 48;

pub(crate) struct NewWorktree {
    pub repository: Repository,
    /// The directory in which `base` is resolved.
    pub directory: PathBuf,
    pub name: WorktreeName,
    /// The branch. An existing branch is checked out if there is no `base`. `None`: a new branch
    /// `nuncio/NAME`.
    pub branch: Option<String>,
    /// Where a new branch starts; `None`: HEAD of `directory`.
    pub base: Option<String>,
    pub preparation: Preparation,
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
}

pub(crate) enum WorktreeName {
    Exact(String),
    /// The first free name: `w1`, `w2` and so on, or this name and then with `-2`, `-3` and so on.
    Free(Option<String>),
}

impl WorktreeName {
    /// Joins words, such as an agent and a title, to a free name with valid characters.
    pub(crate) fn of_words(words: &str) -> WorktreeName {
        let plain = |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { ' ' };
        let text: String = words.chars().map(plain).collect();
        let mut name = String::new();
        for word in text.split_whitespace() {
            if name.len() + 1 + word.len() > WORKTREE_WORDS_CHARS_MAX {
                break;
            }
            if !name.is_empty() {
                name.push('-');
            }
            name.push_str(word);
        }
        WorktreeName::Free(Some(name).filter(|name| files::is_name(name)))
    }

    /// Returns the names in the order in which they are tried.
    fn candidates(&self) -> Vec<String> {
        let numbers = 1..=limits::WORKTREES_MAX;
        match self {
            WorktreeName::Exact(name) => vec![name.clone()],
            WorktreeName::Free(None) => numbers.map(|number| format!("w{number}")).collect(),
            WorktreeName::Free(Some(stem)) => {
                let numbered = |number| if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
                numbers.map(numbered).collect()
            }
        }
    }
}

pub(crate) struct CreatedWorktree {
    pub row: WorkspaceRow,
    /// The failures of its preparation.
    pub warnings: Vec<String>,
}

/// The branch of a new worktree.
struct BranchStart {
    name: String,
    exists: bool,
    /// The name of the start, and its commit, unless the repository has no commits.
    base: Option<String>,
    commit: Option<String>,
}

impl Worktrees {
    /// Creates a worktree with its branch. On an error, nothing is left, unless the process is
    /// killed: then the workspace is listed and can be deleted.
    pub(crate) async fn create(&self, new: NewWorktree) -> Result<CreatedWorktree> {
        if let WorktreeName::Exact(name) = &new.name
            && !files::is_name(name)
        {
            return Err(Error::invalid_params(format!("name: \"{name}\" is invalid")).hint("use letters, digits, `-`, `_` and `.`"));
        }
        let repository = &new.repository;
        let project = self.root.join(repository.project());
        create_private_dir(&project)?;
        let marker = project.join(REPOSITORY_FILE);
        if !marker.exists() {
            let content = format!("{}\n", repository.main.display());
            // Concurrent calls write the same content.
            let temporary = project.join(format!(".repository-{}", uuid::Uuid::now_v7().simple()));
            let written = write_private(&temporary, content.as_bytes()).and_then(|()| std::fs::rename(&temporary, &marker));
            written.map_err(|error| Error::io(format_args!("writing {}", marker.display()), error))?;
        }
        let (row, start) = self.reserve(&new).await?;
        if let Err(error) = self.add(repository, &row, &start).await {
            if std::fs::remove_dir(&row.path).is_ok() || !row.path.exists() {
                self.store.remove_workspace(&row.id).await?;
            }
            return Err(error);
        }
        let warnings = new.preparation.prepare(&self.git.launcher, repository, &row.path, start.commit.as_deref()).await;
        self.set_state(&row, WorkspaceState::Ready).await?;
        Ok(CreatedWorktree { row: WorkspaceRow { state: WorkspaceState::Ready, ..row }, warnings })
    }

    /// Adds the row and creates the directory. Uses the first free name.
    async fn reserve(&self, new: &NewWorktree) -> Result<(WorkspaceRow, BranchStart)> {
        let names = new.name.candidates();
        let (project, main) = (new.repository.project(), &new.repository.main);
        for name in &names {
            let path = self.root.join(&project).join(name);
            let taken = path.symlink_metadata().is_ok() || self.store.workspace(&format!("{project}.{name}")).await?.is_some();
            if taken {
                continue;
            }
            let start = self.start(new, name).await?;
            if start.exists && new.branch.is_none() {
                if matches!(new.name, WorktreeName::Free(_)) {
                    continue;
                }
                let error = Error::invalid_params(format!("branch {} exists", start.name));
                return Err(error.hint("give the branch to check it out, or choose another name"));
            }
            let mut row = files::row_of(&project, name, main.clone(), path);
            row.branch = Some(start.name.clone());
            row.made_branch = !start.exists;
            (row.base, row.base_commit) = (start.base.clone(), start.commit.clone());
            (row.state, row.created_ms) = (WorkspaceState::Creating, new.now_ms);
            if !self.store.insert_workspace(&row).await? {
                continue;
            }
            match std::fs::create_dir(&row.path) {
                Ok(()) => return Ok((row, start)),
                Err(error) => {
                    self.store.remove_workspace(&row.id).await?;
                    return Err(Error::io(format_args!("creating {}", row.path.display()), error));
                }
            }
        }
        let message = match &new.name {
            WorktreeName::Exact(name) => format!("a workspace {name} of {} exists", main.display()),
            WorktreeName::Free(_) => format!("{} has too many workspaces", main.display()),
        };
        Err(Error::invalid_params(message).hint("list the workspaces: nuncio workspaces list"))
    }

    /// Resolves the branch and its start.
    async fn start(&self, new: &NewWorktree, name: &str) -> Result<BranchStart> {
        let main = &new.repository.main;
        let branch = new.branch.clone().unwrap_or_else(|| format!("nuncio/{name}"));
        let reference = format!("refs/heads/{branch}");
        let valid = self.git.read(main, None, ["check-ref-format", &reference]).await?;
        if valid.code != 0 || branch.starts_with('-') {
            return Err(Error::invalid_params(format!("branch: \"{branch}\" is not a valid name of a branch")));
        }
        let tip = self.commit(main, &reference).await?;
        if tip.is_some() && new.branch.is_some() {
            if new.base.is_some() {
                return Err(Error::invalid_params(format!("branch: {branch} exists")).hint("leave out base to check it out"));
            }
            return Ok(BranchStart { name: branch, exists: true, base: self.current_branch(main).await?, commit: tip });
        }
        let directory = &new.directory;
        let commit = self.commit(directory, new.base.as_deref().unwrap_or("HEAD")).await?;
        if let (None, Some(base)) = (&commit, &new.base) {
            return Err(Error::invalid_params(format!("base: \"{base}\" is not a commit of {}", main.display())));
        }
        let base = match &new.base {
            Some(base) => Some(base.clone()),
            None => self.current_branch(directory).await?.or_else(|| commit.clone()),
        };
        Ok(BranchStart { name: branch, exists: tip.is_some(), base, commit })
    }

    /// Returns the id of the commit that `name` refers to, if it exists.
    async fn commit(&self, directory: &Path, name: &str) -> Result<Option<String>> {
        let name = format!("{name}^{{commit}}");
        let top = super::repository::top(directory);
        let found = self.git.read(top, Some(top), ["rev-parse", "--verify", "--quiet", "--end-of-options", &name]).await?;
        Ok(found.found())
    }

    async fn current_branch(&self, directory: &Path) -> Result<Option<String>> {
        let top = super::repository::top(directory);
        let found = self.git.read(top, Some(top), ["symbolic-ref", "--quiet", "--short", "HEAD"]).await?;
        Ok(found.found())
    }

    /// Creates the branch and the worktree. On an error, removes the worktree, and the branch if it
    /// was created here.
    async fn add(&self, repository: &Repository, row: &WorkspaceRow, start: &BranchStart) -> Result<()> {
        let writable = [repository.common.clone(), row.path.clone()];
        let (main, branch) = (&repository.main, start.name.as_str());
        let run = async |arguments: Vec<OsString>| {
            self.git.change(main, Changes::Files(&writable), WORKTREE_CREATE, &[], arguments).await
        };
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<OsString>>();
        let made = start.commit.as_deref().filter(|_| !start.exists);
        if let Some(commit) = made {
            let created = run(words(&["branch", "--no-track", "--", branch, commit])).await?;
            created.success(&format!("creating branch {branch}"))?;
        }
        let reason = format!("nuncio workspace {}", row.id);
        let mut arguments = words(&["worktree", "add", "--quiet", "--lock", "--reason", &reason]);
        if start.commit.is_none() {
            arguments.extend(words(&["--orphan", "-b", branch]));
        }
        arguments.push(row.path.clone().into());
        if start.commit.is_some() {
            arguments.push(branch.into());
        }
        // Keep the entry of an earlier worktree whose directory is missing.
        let is_known = repository.git_dir_of(&row.path).is_some();
        let added = run(arguments).await;
        let error = match added.and_then(|added| added.success(&format!("creating worktree {}", row.path.display()))) {
            Ok(_) => {
                // Create it here, because sandboxed commands cannot: see `linked_git_dirs`.
                let _ = std::fs::create_dir(repository.common.join("logs"));
                return Ok(());
            }
            Err(error) => error,
        };
        let undo = async |what: &str, arguments: Vec<OsString>| {
            let undone = self.git.change(main, Changes::References(&writable), limits::GIT_UNDO, &[], arguments).await;
            if undone.as_ref().map_or(true, |undone| undone.code != 0) {
                tracing::warn!(branch, "the {what} of a failed creation was not removed");
            }
        };
        if !is_known && repository.git_dir_of(&row.path).is_some() {
            let mut arguments = words(&["worktree", "remove", "--force", "--force"]);
            arguments.push(row.path.clone().into());
            undo("worktree", arguments).await;
        }
        if let Some(commit) = made {
            // Only if the branch has no new commits.
            let reference = format!("refs/heads/{branch}");
            undo("branch", words(&["update-ref", "-d", &reference, commit])).await;
        }
        Err(error)
    }
}
