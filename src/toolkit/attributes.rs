//! Attributes of files that a change may lose: the new content is another file of the same name.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

struct Attributes {
    mode: u32,
    owner: (u32, u32),
    links: u64,
}

impl Attributes {
    fn read(real: &Path) -> Option<Attributes> {
        let metadata = real.symlink_metadata().ok()?;
        let owner = (metadata.uid(), metadata.gid());
        Some(Attributes { mode: metadata.mode() & 0o7777, owner, links: metadata.nlink() })
    }
}

/// The attributes of files before they are changed, each with the file's new path and the shown
/// path.
pub(super) struct FormerAttributes(Vec<(Attributes, PathBuf, String)>);

impl FormerAttributes {
    /// Reads the attributes of files that are replaced, each given by its path, its new path and
    /// the shown path.
    pub(super) fn read<'p>(files: impl Iterator<Item = (&'p Path, &'p Path, &'p str)>) -> FormerAttributes {
        let read =
            |(before, after, shown): (&Path, &Path, &str)| Some((Attributes::read(before)?, after.to_owned(), shown.to_owned()));
        FormerAttributes(files.filter_map(read).collect())
    }

    /// Describes for the model what the files lost.
    pub(super) fn lost(&self) -> String {
        let mut text = String::new();
        for (before, real, shown) in &self.0 {
            let Some(after) = Attributes::read(real) else { continue };
            if after.mode != before.mode {
                text += &format!("\n[{shown} had mode {:o} and has {:o} now]", before.mode, after.mode);
            }
            if after.owner != before.owner {
                let ((user, group), (now_user, now_group)) = (before.owner, after.owner);
                text += &format!("\n[{shown} belonged to user {user}, group {group}, now to user {now_user}, group {now_group}]");
            }
            if after.links < before.links {
                let others = before.links - after.links;
                let links = if others == 1 { "1 other hard link keeps" } else { "other hard links keep" };
                text += &format!("\n[{shown} had {} hard links: {links} the former content]", before.links);
            }
        }
        text
    }
}
