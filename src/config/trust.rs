//! Trusted directories, whose project settings may widen permissions. The file `trusted` in the
//! data directory has one line for each trusted directory, with a digest of the trusted content.
//! Changing the content revokes the trust.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::data_paths::{DataPaths, trusted_in};
use super::trust_record::TrustRecord;
use super::trusted_content::{TrustedContent, parts};
use super::worktree_origin::{worktree_origin, worktrees_in};
use crate::error::{Error, Result};
use crate::workspace::{lock_files, read_small_text, real_path, replace_private};

/// The list of trusted directories.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    /// Digests by canonical directory. `None`: an earlier version of nuncio recorded no digest.
    digests: BTreeMap<PathBuf, Option<String>>,
    /// The directory of nuncio's worktrees.
    worktrees: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustStatus {
    Yes,
    /// The directory is not in the list.
    No,
    /// The content differs from the trusted content.
    Changed,
    /// The directory was added by an earlier version, without a digest.
    NoDigest,
}

impl TrustStatus {
    /// Returns the reason why a formerly trusted directory is no longer trusted. `None` if it is
    /// trusted, or is not in the list.
    pub(crate) fn why_not(self) -> Option<&'static str> {
        match self {
            TrustStatus::Yes | TrustStatus::No => None,
            TrustStatus::Changed => Some("they changed since they were trusted"),
            TrustStatus::NoDigest => Some("they were trusted with an older version of nuncio, which did not record their content"),
        }
    }
}

impl Trust {
    /// Loads the list; it is empty if the file cannot be read.
    pub(crate) fn load(places: &DataPaths) -> Trust {
        Trust::load_from(&places.data)
    }

    /// Loads the list of a data directory.
    pub(super) fn load_from(data: &Path) -> Trust {
        let text = read_small_text(&trusted_in(data)).unwrap_or_default();
        let mut digests = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match line.split_once(' ').filter(|(digest, _)| is_digest(digest)) {
                Some((digest, directory)) => digests.insert(PathBuf::from(directory), Some(digest.to_owned())),
                None => digests.insert(PathBuf::from(line), None),
            };
        }
        Trust { digests, worktrees: worktrees_in(data) }
    }

    /// Returns the trust status of the settings of `directory`. `content` is the content of its
    /// settings file, `None` if there is no file. Parent directories have no influence. Settings in
    /// a worktree of nuncio are also trusted if they equal the trusted settings of its repository.
    pub(crate) fn settings(&self, directory: &Path, content: Option<&[u8]>) -> TrustStatus {
        let directory = real_path(directory);
        self.compared(&self.place(&directory), || Ok(TrustedContent::read_with(&directory, content.map(<[u8]>::to_vec))))
    }

    /// Returns the trust status of the current content of `directory`.
    pub(crate) fn status(&self, directory: &Path) -> TrustStatus {
        let directory = real_path(directory);
        self.compared(&self.place(&directory), || TrustedContent::read(&directory))
    }

    /// Returns the directory whose entry in the list decides about the settings of `directory`,
    /// which is free of symlinks. For a worktree of nuncio without its own entry, it is the
    /// counterpart in the repository.
    pub(super) fn place(&self, directory: &Path) -> PathBuf {
        match worktree_origin(&self.worktrees, directory) {
            Some(origin) if !self.digests.contains_key(directory) => origin.repository.join(origin.rest),
            _ => directory.to_owned(),
        }
    }

    /// Returns whether the list has an entry that decides about the settings of `directory`.
    pub(crate) fn lists(&self, directory: &Path) -> bool {
        self.digests.contains_key(&self.place(&real_path(directory)))
    }

    /// Compares content with the digest that is recorded for `recorded`.
    fn compared(&self, recorded: &Path, content: impl FnOnce() -> std::io::Result<TrustedContent>) -> TrustStatus {
        match self.digests.get(recorded) {
            None => TrustStatus::No,
            Some(None) => TrustStatus::NoDigest,
            Some(Some(trusted)) => match content() {
                Ok(content) if content.digest().as_ref() == Ok(trusted) => TrustStatus::Yes,
                Ok(_) | Err(_) => TrustStatus::Changed,
            },
        }
    }

    /// Returns whether `directory` or a parent directory is trusted and unchanged. Only then may
    /// programs that no setting names run code in `directory`. A worktree of nuncio counts as a
    /// directory at the place of its repository. A repository inside another one is not covered by
    /// the trust of the outer one.
    pub(crate) fn covers(&self, directory: &Path) -> bool {
        self.covering(directory).is_some()
    }

    /// Finds the trusted directory that covers `directory`, as described at [`Trust::covers`].
    pub(crate) fn covering(&self, directory: &Path) -> Option<PathBuf> {
        let directory = real_path(directory);
        let above = directory.ancestors().map(|above| (above.to_owned(), above.to_owned()));
        let mut pairs: Vec<(PathBuf, PathBuf)> = above.collect();
        if let Some(origin) = worktree_origin(&self.worktrees, &directory) {
            let place = origin.repository.join(&origin.rest);
            pairs.extend(place.ancestors().map(|recorded| match recorded.strip_prefix(&origin.repository) {
                Ok(rest) => (recorded.to_owned(), origin.worktree.join(rest)),
                Err(_) => (recorded.to_owned(), recorded.to_owned()),
            }));
        }
        pairs.retain(|(recorded, _)| self.digests.contains_key(recorded));
        let covers = |recorded: &Path, actual: &Path| {
            same_repository(actual, &directory) && self.compared(recorded, || TrustedContent::read(actual)) == TrustStatus::Yes
        };
        pairs.into_iter().find(|(recorded, actual)| covers(recorded, actual)).map(|(recorded, _)| recorded)
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = (&Path, TrustStatus)> {
        self.digests.keys().map(|directory| (directory.as_path(), self.compared(directory, || TrustedContent::read(directory))))
    }

    /// Removes `directory` from the list. Returns its entry, or `None` if there was none.
    pub(crate) fn remove(places: &DataPaths, directory: &Path) -> Result<Option<PathBuf>> {
        let _lock = lock_files(&places.data)?;
        let mut trust = Trust::load(places);
        let Some((directory, _)) = trust.digests.remove_entry(&real_path(directory)) else { return Ok(None) };
        trust.write(places)?;
        Ok(Some(directory))
    }

    /// Trusts `content`, which was read in `directory`, and writes the list. `directory` is free of
    /// symlinks.
    pub(crate) fn add(places: &DataPaths, directory: &Path, content: &TrustedContent) -> Result<()> {
        let doing = format!("trusting {}", directory.display());
        if directory.to_str().is_none_or(|name| name.contains(['\n', '\r'])) {
            return Err(Error::invalid_params(format!("{doing}: its path is not UTF-8 or contains a line break")));
        }
        let digest = content.digest().map_err(|error| Error::invalid_params(format!("{doing}: {error}")))?;
        let _lock = lock_files(&places.data)?;
        let mut trust = Trust::load(places);
        TrustRecord::store(places, directory, &digest, content)?;
        trust.digests.insert(directory.to_owned(), Some(digest));
        trust.write(places)
    }

    /// Returns the settings and checks with which `directory` was trusted. `None` if they are not
    /// known.
    pub(super) fn record(&self, places: &DataPaths, directory: &Path) -> Option<TrustRecord> {
        let (directory, digest) = self.recorded(directory)?;
        TrustRecord::read(places, &directory, digest)
    }

    /// Returns the entry that decides about the settings of `directory`, with its digest.
    fn recorded(&self, directory: &Path) -> Option<(PathBuf, &str)> {
        let directory = self.place(&real_path(directory));
        let digest = self.digests.get(&directory)?.as_deref()?;
        Some((directory, digest))
    }

    /// Returns the content of `directory` when it was trusted, by the names of its parts. `None` if
    /// `directory` is not trusted, or was trusted by a version of nuncio that did not store it.
    pub(crate) fn trusted_parts(&self, places: &DataPaths, directory: &Path) -> Option<BTreeMap<String, String>> {
        let TrustRecord { settings, checks } = self.record(places, directory)?;
        let (directory, digest) = self.recorded(directory)?;
        Some(parts(settings, &checks, TrustRecord::files(places, &directory, digest)?))
    }

    /// Returns the check commands of AGENTS.md with which the trusted directory above `directory`
    /// was trusted. Empty if they are not known.
    pub(crate) fn trusted_checks(&self, places: &DataPaths, directory: &Path) -> Vec<String> {
        let record = self.covering(directory).and_then(|covering| self.record(places, &covering));
        record.map(|record| record.checks).unwrap_or_default()
    }

    fn write(&self, places: &DataPaths) -> Result<()> {
        let mut lines = String::new();
        for (directory, digest) in &self.digests {
            let digest = digest.as_ref().map(|digest| format!("{digest} ")).unwrap_or_default();
            let _ = writeln!(lines, "{digest}{}", directory.display());
        }
        let path = places.trusted();
        replace_private(&path, lines.as_bytes()).map_err(|error| Error::io(format_args!("writing {}", path.display()), error))
    }
}

/// Returns whether no repository lies between `above`, a trusted directory, and `directory`. If
/// `above` is in no repository, there may be one below it.
fn same_repository(above: &Path, directory: &Path) -> bool {
    let tops = |directory: &Path| {
        directory.ancestors().filter(|top| top.join(".git").symlink_metadata().is_ok()).map(Path::to_owned).collect::<Vec<_>>()
    };
    match tops(above).first() {
        Some(top) => tops(directory).first() == Some(top),
        None => tops(directory).len() <= 1,
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
