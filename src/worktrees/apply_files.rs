//! Writes the result of a merge to the files of a working tree, and restores them after a failure.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::working_tree::{Author, ScratchDir, WorkingTree, is_plain_directory};
use crate::error::{Error, Kind, Result};

/// A change of the files of a working tree from one tree to another. git refuses to overwrite a
/// file that does not have the content of `before`.
pub(super) struct FileUpdate<'u> {
    pub target: &'u WorkingTree<'u>,
    pub scratch: &'u ScratchDir,
    pub before: &'u str,
    pub after: &'u str,
}

impl FileUpdate<'_> {
    /// Writes the files. If that fails, restores those that were written.
    pub(super) async fn write(&self, changed: &[OsString]) -> Result<()> {
        let user = self.target.with_copied_index(self.scratch, "write")?;
        user.add_files(changed).await?;
        let written = user.run(Author::Nuncio, &["read-tree", "-m", "-u", self.before, self.after]).await;
        match written.and_then(|written| written.success("changing the files")) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.restore(changed, error).await),
        }
    }

    /// Restores the files after the failure `error`: those that are missing, and those that have
    /// the content of `after`. A file with other content was not written, or the user has changed
    /// it. Returns the error, which names the files that could not be restored.
    pub(super) async fn restore(&self, changed: &[OsString], error: Error) -> Error {
        let directory = self.target.top.display();
        match self.restore_files(changed).await {
            Ok(other) if other.is_empty() => {
                let message = format!("{}; the files of {directory} are as before", error.message);
                Error { message, ..error }
            }
            Ok(other) => {
                let names: Vec<_> = other.iter().map(|path| path.to_string_lossy()).collect();
                let message = format!("{}; not as before in {directory}: {}", error.message, names.join(", "));
                Error { message, ..error }.hint("compare these files: git diff")
            }
            Err(failed) => {
                let message = format!("{}; restoring the files of {directory} failed: {}", error.message, failed.message);
                Error { kind: Kind::Internal, message, ..error }.hint("compare the files: git diff")
            }
        }
    }

    /// Restores the files. Returns the files that could not be restored.
    async fn restore_files(&self, changed: &[OsString]) -> Result<Vec<OsString>> {
        let after = self.target.with_index(self.scratch, "after");
        let (in_after, unlike_after) = compare(&after, self.after).await?;
        let before = self.target.with_index(self.scratch, "before");
        let (in_before, unlike_before) = compare(&before, self.before).await?;
        let mut lost = Vec::new();
        for path in changed {
            let exists = self.target.top.join(path).symlink_metadata().is_ok();
            let is_new_content = in_after.contains(path) && !unlike_after.contains(path);
            match in_before.contains(path) {
                true if !exists || is_new_content && unlike_before.contains(path) => lost.push(path.clone()),
                false if exists && is_new_content => remove(&self.target.top, path)?,
                _ => {}
            }
        }
        before.for_paths("restoring files", &["checkout-index", "--force", "--quiet", "--"], &lost).await?;
        let (_, unlike_before) = compare(&before, self.before).await?;
        Ok(changed.iter().filter(|path| unlike_before.contains(*path)).cloned().collect())
    }
}

/// Reads a tree into the index of `tree`. Returns its paths, and the paths whose files differ from
/// the tree.
async fn compare(tree: &WorkingTree<'_>, id: &str) -> Result<(HashSet<OsString>, HashSet<OsString>)> {
    tree.text("reading a tree", &["read-tree", id]).await?;
    // Ends with 1 if files differ.
    tree.run(Author::Nuncio, &["update-index", "-q", "--refresh"]).await?;
    let all = tree.paths("listing files", &["ls-files", "-z"]).await?;
    let unlike = tree.paths("comparing files", &["diff-files", "-z", "--name-only"]).await?;
    Ok((all.into_iter().collect(), unlike.into_iter().collect()))
}

/// Removes a file that the update created, and its empty parent directories.
fn remove(top: &Path, path: &OsString) -> Result<()> {
    let file = top.join(path);
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io(format_args!("removing {}", file.display()), error));
        }
        _ => {}
    }
    let directories = file.ancestors().skip(1).take_while(|above| *above != top);
    for directory in directories {
        // Fails for a directory with other files.
        if std::fs::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

/// Returns the files that stand in the way of directories, and the directories with other files
/// that stand in the way of files: git would replace ignored ones.
pub(super) fn blocked_by(top: &Path, paths: &[OsString]) -> Vec<OsString> {
    let named: HashSet<&OsStr> = paths.iter().map(OsString::as_os_str).collect();
    let mut blocking = BTreeSet::new();
    for path in paths {
        let above = Path::new(path).ancestors().skip(1).filter(|above| *above != Path::new(""));
        let is_file = |above: &&Path| top.join(above).symlink_metadata().is_ok_and(|metadata| !metadata.is_dir());
        let files = above.filter(is_file).filter(|above| !named.contains(above.as_os_str()));
        blocking.extend(files.map(|above| above.as_os_str().to_owned()));
        if is_plain_directory(&top.join(path)) && has_other_files(top, Path::new(path), &named) {
            blocking.insert(path.clone());
        }
    }
    blocking.into_iter().collect()
}

fn has_other_files(top: &Path, directory: &Path, named: &HashSet<&OsStr>) -> bool {
    let entries = std::fs::read_dir(top.join(directory)).into_iter().flatten().flatten();
    entries.map(|entry| (directory.join(entry.file_name()), entry)).any(|(path, entry)| {
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => has_other_files(top, &path, named),
            false => !named.contains(path.as_os_str()),
        }
    })
}
