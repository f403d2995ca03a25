//! Whose files nuncio uses in a project: those of the user and of root, as git does (git-config(1),
//! `safe.directory`). The user accepts the directory of another user by trusting it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

use super::data_paths::DataPaths;
use super::trust::Trust;
use crate::workspace::read_small_text;

impl DataPaths {
    /// Returns whether a file with this owner is the user's own or root's.
    pub(crate) fn is_own(&self, uid: u32) -> bool {
        [Some(0), Some(geteuid().as_raw()), self.sudo_user].contains(&Some(uid))
    }

    /// Returns whether another user owns `directory`, and the user did not trust a directory of
    /// that user that contains it. False if it does not exist.
    pub(crate) fn is_of_other_user(&self, directory: &Path) -> bool {
        let owner = |path: &Path| path.metadata().ok().map(|metadata| metadata.uid());
        let Some(uid) = owner(directory).filter(|uid| !self.is_own(*uid)) else { return false };
        Trust::load(self).covering(directory).and_then(|trusted| owner(&trusted)) != Some(uid)
    }
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
