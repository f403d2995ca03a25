//! The directories whose files nuncio adds to prompts: the session's directory and its parents up
//! to the repository's root. Also checks that such a file belongs to the project and to the user.

use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::config::DataPaths;
use crate::workspace;

#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectDirs<'a> {
    /// From the repository's root down to the session's directory. Without a repository, only the
    /// session's directory.
    pub dirs: Vec<PathBuf>,
    /// The first of the directories, without symlinks. Empty if it does not exist.
    pub root: PathBuf,
    /// Directories, also `.git`, that were ignored because another user owns them.
    pub foreign: Vec<PathBuf>,
    /// Where the list of trusted directories is; `None`: the project is trusted.
    trust: Option<&'a DataPaths>,
}

impl<'a> ProjectDirs<'a> {
    /// Finds the directories of `cwd`. The root is the nearest directory that contains `.git`.
    /// Directories of other users are skipped, unless they are trusted.
    pub(crate) fn new(cwd: &Path, trust: Option<&'a DataPaths>) -> ProjectDirs<'a> {
        let is_other = |directory: &Path| trust.is_some_and(|places| places.is_of_other_user(directory));
        let mut foreign = Vec::new();
        let root = cwd.ancestors().find(|dir| {
            let git = dir.join(".git");
            let is_foreign = git.exists()
                && (is_foreign(dir, &git, trust) || trust.is_some_and(|places| places.foreign_git_part(dir).is_some()));
            if is_foreign {
                foreign.push(git.clone());
            }
            git.exists() && !is_foreign
        });
        let root = root.unwrap_or(cwd);
        let Ok(real) = root.canonicalize() else { return ProjectDirs { foreign, trust, ..ProjectDirs::default() } };
        let dirs = cwd.ancestors().take_while(|dir| dir.starts_with(root)).map(PathBuf::from);
        let (others, mut dirs): (Vec<PathBuf>, Vec<PathBuf>) = dirs.partition(|dir| is_other(dir));
        foreign.extend(others);
        dirs.reverse();
        ProjectDirs { dirs, root: real, foreign, trust }
    }

    /// Returns the real path of a file in `dir`. `None` if the file does not exist or symlinks lead
    /// out of the repository.
    pub(crate) fn inside(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok().filter(|real| real.starts_with(&self.root))
    }

    /// Returns whether another user owns the file `path` in `dir`, or its target `real`.
    pub(crate) fn is_foreign(&self, dir: &Path, path: &Path, real: &Path) -> bool {
        is_foreign(dir, path, self.trust) || is_foreign(&self.root, real, self.trust)
    }
}

/// Returns whether `path`, or a directory between it and `top`, is owned by another user (not root)
/// and lies in a world-writable directory, or is a directory that was not trusted.
fn is_foreign(top: &Path, path: &Path, trust: Option<&DataPaths>) -> bool {
    let below = path.ancestors().take_while(|part| part.starts_with(top) && *part != top);
    let owners = |part: &Path| Some((part.symlink_metadata().ok()?, part.parent()?.metadata().ok()?));
    let pairs: Vec<(Metadata, Metadata)> = below.clone().filter_map(owners).collect();
    let is_own = |uid| trust.map_or([0, geteuid().as_raw()].contains(&uid), |places| places.is_own(uid));
    let is_open = |(part, parent): &(Metadata, Metadata)| !is_own(part.uid()) && parent.mode() & 0o002 != 0;
    pairs.iter().any(is_open)
        || trust.is_some_and(|places| below.clone().any(|part| part.is_dir() && places.is_of_other_user(part)))
}

/// Reads a regular file as text, without following symlinks. A longer file is truncated, and a note
/// in its text says so. `None` if the file cannot be read or is blank.
pub(crate) fn read(real: &Path, bytes_max: usize) -> Option<String> {
    let file = workspace::open(real).ok()?;
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > bytes_max;
    bytes.truncate(bytes_max);
    let mut text = workspace::decoded(&bytes).into_owned();
    if cut {
        text.push_str("\n[truncated: the file exceeds the size limit of instruction files]");
    }
    (!text.trim().is_empty()).then_some(text)
}
