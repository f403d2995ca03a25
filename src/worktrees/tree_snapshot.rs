//! The files of a working tree at one time, and the former content of those that changed since. The
//! repository and its index stay as they are.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::comparison_settings::ComparisonSettings;
use super::git::GitRunner;
use super::repository::{Repository, top};
use super::working_tree::{Author, ScratchDir, WorkingTree};
use crate::config::DataPaths;
use crate::error::{Error, Result};
use crate::process::ProcessLauncher;
use crate::task;
use crate::workspace::{self, create_private_dir, real_path};

/// Maximum total size of the former contents of changed files, in bytes.
const FORMER_BYTES_MAX: u64 = 64 << 20;

/// The files of a working tree at one time, without those that git ignores.
pub(crate) struct TreeSnapshot {
    git: GitRunner,
    repository: Repository,
    top: PathBuf,
    /// The index of the snapshot and the objects that the repository does not have.
    scratch: ScratchDir,
    /// Id of the tree.
    tree: String,
    settings: ComparisonSettings,
    /// The user's global git ignore file.
    excludes: Option<PathBuf>,
    taken: SystemTime,
}

/// A file that changed after a snapshot was taken.
pub(crate) struct SnapshotChange {
    pub path: PathBuf,
    pub former: FormerContent,
}

/// The content of a path when a snapshot was taken.
pub(crate) enum FormerContent {
    /// No file existed there.
    Missing,
    File {
        bytes: Vec<u8>,
        executable: bool,
    },
    /// A symlink, a repository, a file that git would not restore byte for byte, or a large file.
    Unknown,
}

impl TreeSnapshot {
    /// Takes a snapshot of the working tree that contains `directory`. `excludes` is the user's
    /// global git ignore file.
    pub(crate) async fn take(
        launcher: ProcessLauncher,
        places: &DataPaths,
        directory: &Path,
        excludes: Option<PathBuf>,
    ) -> Result<TreeSnapshot> {
        let git = GitRunner::new(launcher, places);
        create_private_dir(&git.temp)?;
        let directory = &real_path(directory);
        let repository = Repository::find(&git, directory).await?;
        let (top, scratch, taken) = (top(directory).to_owned(), ScratchDir::new(&git.temp)?, SystemTime::now());
        let git_dir = WorkingTree::at(&git, &repository, &top)?.git_dir().to_owned();
        let settings = ComparisonSettings::read(&git, &top, &git_dir, excludes.as_deref()).await?;
        let mut snapshot = TreeSnapshot { git, repository, top, scratch, tree: String::new(), settings, excludes, taken };
        let tree = snapshot.working_tree()?;
        if *directory != snapshot.top && tree.succeeds(&["check-ignore", "--quiet", "--", &directory.to_string_lossy()]).await? {
            return Err(Error::invalid_params(format!("git ignores {}", directory.display())));
        }
        let index = tree.with_copied_index(&snapshot.scratch, "index")?;
        show_all_changes(&index).await?;
        snapshot.tree = write_tree(&index).await?;
        Ok(snapshot)
    }

    /// Returns the settings of git, and the ignore files and their like, that differ since: with
    /// them, changed files may be missing in [`TreeSnapshot::changed_files`].
    pub(crate) async fn changed_settings(&self) -> Result<Vec<PathBuf>> {
        let git_dir = self.working_tree()?.git_dir().to_owned();
        let now = ComparisonSettings::read(&self.git, &self.top, &git_dir, self.excludes.as_deref()).await?;
        Ok(self.settings.differences(&now))
    }

    pub(crate) fn taken(&self) -> SystemTime {
        self.taken
    }

    /// Returns the files that changed since, by path.
    pub(crate) async fn changed_files(&self) -> Result<Vec<SnapshotChange>> {
        let before = self.working_tree()?.with_index(&self.scratch, "index");
        let after = before.with_copied_index(&self.scratch, "after")?;
        let changed = after.changed_paths(&self.tree, &write_tree(&after).await?).await?;
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let sizes = sizes(&before, &changed).await?;
        // Files of this index are new for git, so that it writes all of them.
        let former = self.working_tree()?.with_index(&self.scratch, "former");
        former.text("reading the snapshot", &["read-tree", &self.tree]).await?;
        let directory = self.scratch.join("former-files");
        let prefix = format!("--prefix={}/", directory.display());
        let known: Vec<OsString> = changed.iter().filter(|path| sizes.contains_key(*path)).cloned().collect();
        former.for_paths("reading the former files", &["checkout-index", &prefix, "--"], &known).await?;
        let top = self.top.clone();
        let read = move || {
            let mut left = FORMER_BYTES_MAX;
            let file = |path: OsString| {
                let former = match sizes.get(&path) {
                    Some(size) => former_content(&directory.join(&path), *size, &mut left).unwrap_or(FormerContent::Unknown),
                    None => FormerContent::Missing,
                };
                SnapshotChange { path: top.join(path), former }
            };
            changed.into_iter().map(file).collect()
        };
        task::blocking("reading the former files", read).await
    }

    fn working_tree(&self) -> Result<WorkingTree<'_>> {
        WorkingTree::at(&self.git, &self.repository, &self.top)?.with_scratch_objects(&self.scratch)
    }
}

/// Removes the flags of an index that exclude existing files from comparisons. The index must be a
/// copy.
async fn show_all_changes(tree: &WorkingTree<'_>) -> Result<()> {
    let listed = tree.run(Author::Nuncio, &["ls-files", "-v", "-z"]).await?.success("reading the index")?.output;
    let entries = listed.split(|byte| *byte == 0).filter_map(|entry| entry.split_at_checked(2));
    // A lower-case letter: "assume unchanged"; S: "skip worktree".
    let is_flagged = |(tag, path): &(&[u8], &[u8])| {
        (tag[0].is_ascii_lowercase() || tag[0] == b'S') && tree.top.join(OsStr::from_bytes(path)).symlink_metadata().is_ok()
    };
    let flagged: Vec<OsString> = entries.filter(is_flagged).map(|(_, path)| OsStr::from_bytes(path).to_owned()).collect();
    for flag in ["--no-assume-unchanged", "--no-skip-worktree"] {
        tree.for_paths("reading the index", &["update-index", flag, "--"], &flagged).await?;
    }
    Ok(())
}

/// Writes all files of the working tree to the index, which must be a copy. Returns the id of their
/// tree.
async fn write_tree(tree: &WorkingTree<'_>) -> Result<String> {
    tree.text("reading the files", &["-c", "core.looseCompression=0", "add", "--all"]).await?;
    tree.text("reading the files", &["write-tree"]).await
}

/// Returns the paths that an index contains, each with the size of its file when git read it; 0 if
/// git could not be sure that the file did not change since.
async fn sizes(tree: &WorkingTree<'_>, paths: &[OsString]) -> Result<HashMap<OsString, u64>> {
    let listed = tree.for_paths("reading the index", &["--literal-pathspecs", "ls-files", "--debug", "-z", "--"], paths).await?;
    let mut fields = listed.split(|byte| *byte == 0);
    let mut path = fields.next().unwrap_or_default();
    let mut sizes = HashMap::new();
    for field in fields {
        // The lines about a file precede the next path.
        let (mut size, mut rest) = (0, field);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n').filter(|_| rest.starts_with(b"  ")) {
            let line = String::from_utf8_lossy(&rest[..end]);
            let number = line.trim_start().strip_prefix("size: ").and_then(|line| line.split('\t').next());
            size = number.and_then(|number| number.parse().ok()).unwrap_or(size);
            rest = &rest[end + 1..];
        }
        sizes.insert(OsStr::from_bytes(path).to_owned(), size);
        path = rest;
    }
    Ok(sizes)
}

/// Reads a file of a snapshot that had this size in the working tree. Subtracts its size from
/// `left`.
fn former_content(path: &Path, size: u64, left: &mut u64) -> io::Result<FormerContent> {
    // Fails at a symlink, which a filter can have put there.
    let mut file = workspace::open(path)?;
    let metadata = file.metadata()?;
    if (size != 0 && metadata.len() != size) || metadata.len() > *left {
        return Ok(FormerContent::Unknown);
    }
    *left -= metadata.len();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(FormerContent::File { bytes, executable: metadata.permissions().mode() & 0o100 != 0 })
}
