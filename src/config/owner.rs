//! Whose files nuncio uses in a project: those of the user and of root, as git does (git-config(1),
//! `safe.directory`). The user accepts the directory of another user by trusting it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::data_paths::DataPaths;
use super::trust::Trust;
use crate::workspace::{read_small, read_small_text};

impl DataPaths {
    /// Returns whether a file with this owner is the user's own or root's.
    pub(crate) fn is_own(&self, uid: u32) -> bool {
        [Some(0), Some(geteuid().as_raw()), self.sudo_user].contains(&Some(uid))
    }

    /// Returns whether another user owns `directory`, and the user did not trust a directory of
    /// that user that contains it. False if it does not exist.
    pub(crate) fn is_of_other_user(&self, directory: &Path) -> bool {
        self.is_of_other_than(directory, directory)
    }

    /// Returns the first part of the repository of `directory` that another user owns: the
    /// directory, its `.git`, or the git directories to which that file refers. The trust in the
    /// directory covers the other parts.
    pub(crate) fn foreign_git_part(&self, directory: &Path) -> Option<PathBuf> {
        let git = directory.join(".git");
        let linked = referred(&git, "gitdir:");
        let common = linked.as_ref().and_then(|linked| referred(&linked.join("commondir"), ""));
        let parts = [Some(directory.to_owned()), Some(git), linked, common].into_iter().flatten();
        parts.into_iter().find(|part| self.is_of_other_than(part, directory))
    }

    /// Returns whether another user owns `part`, and the user did not trust a directory of that
    /// user that contains `part` or `directory`.
    fn is_of_other_than(&self, part: &Path, directory: &Path) -> bool {
        let owner = |path: &Path| path.metadata().ok().map(|metadata| metadata.uid());
        let Some(uid) = owner(part).filter(|uid| !self.is_own(*uid)) else { return false };
        let trust = Trust::load(self);
        let is_trusted = |path: &Path| trust.covering(path).and_then(|trusted| owner(&trusted)) == Some(uid);
        !is_trusted(part) && (part == directory || !is_trusted(directory))
    }
}

/// Returns the path to which a file of git refers, after `prefix` (gitrepository-layout(5)).
fn referred(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = read_small(file).ok()?;
    let named = text.strip_prefix(prefix.as_bytes())?.trim_ascii();
    Some(file.parent()?.join(OsStr::from_bytes(named)))
}

/// Returns the name of the owner of `path`, for people.
pub(crate) fn owner_name(path: &Path) -> String {
    let Ok(uid) = path.symlink_metadata().map(|metadata| metadata.uid()) else { return "unknown".into() };
    let users = read_small_text(Path::new("/etc/passwd")).unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("uid {uid}"))
}
