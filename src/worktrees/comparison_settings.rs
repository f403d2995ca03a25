//! The settings of git and the files that decide which changes git shows: they exclude files, or
//! change how files are compared. A program that hides a change changes one of them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use tokio_util::sync::CancellationToken;

use super::git::GitRunner;
use crate::error::Result;
use crate::task;
use crate::workspace::{Walk, read_small};

/// Name of the settings of git, which several files contain.
const CONFIG: &str = "git config";
/// Starts of settings that change no comparison.
const OTHER: [&[u8]; 3] = [b"branch.", b"remote.", b"user."];
/// Settings with the path of another such file.
const NAMED: [&[u8]; 2] = [b"core.excludesfile\n", b"core.attributesfile\n"];

/// Digests of the settings and of the files, by path.
pub(super) struct ComparisonSettings(BTreeMap<PathBuf, Vec<u8>>);

impl ComparisonSettings {
    /// Reads what applies to the working tree `top`, whose git directory is `git_dir`. `excludes`
    /// is the user's global git ignore file.
    pub(super) async fn read(git: &GitRunner, top: &Path, git_dir: &Path, excludes: Option<&Path>) -> Result<ComparisonSettings> {
        let config = git.read(top, Some(top), ["config", "--list", "-z"]).await?.success("reading git's settings")?.output;
        let walk = Walk::new(top, CancellationToken::new()).hidden(true).rules().excludes(excludes.map(Path::to_owned));
        let mut outer = walk.outer_rules();
        outer.push(git_dir.join("info/sparse-checkout"));
        let home = git.places.home.as_deref().unwrap_or(top);
        outer.extend(config.split(|byte| *byte == 0).filter_map(|setting| named_path(top, home, setting)));
        let read = move || {
            let found = Mutex::new(outer);
            walk.parallel(|| {
                |entry| {
                    if Walk::is_rules(&entry) {
                        found.lock().push(entry.path);
                    }
                    true
                }
            });
            found.into_inner()
        };
        let files = task::blocking("reading the ignore files", read).await?;
        // These sections name remote repositories and people.
        let settings = config.split_inclusive(|byte| *byte == 0);
        let config: Vec<u8> =
            settings.filter(|setting| !OTHER.iter().any(|section| setting.starts_with(section))).flatten().copied().collect();
        let state = |bytes: &[u8]| digest(&SHA256, bytes).as_ref().to_vec();
        let file = |path: PathBuf| Some((state(&read_small(&path).ok()?), path));
        let files = files.into_iter().filter_map(file).map(|(state, path)| (path, state));
        Ok(ComparisonSettings(files.chain([(CONFIG.into(), state(&config))]).collect()))
    }

    /// Returns the paths of the files that differ.
    pub(super) fn differences(&self, other: &ComparisonSettings) -> Vec<PathBuf> {
        let missing = other.0.keys().filter(|path| !self.0.contains_key(*path));
        let changed = self.0.iter().filter(|(path, state)| other.0.get(*path) != Some(state)).map(|(path, _)| path);
        changed.chain(missing).cloned().collect()
    }
}

/// Returns the path that a setting names: the name, a line end and the value.
fn named_path(top: &Path, home: &Path, setting: &[u8]) -> Option<PathBuf> {
    let value = NAMED.iter().find_map(|name| setting.strip_prefix(*name))?;
    let value = Path::new(OsStr::from_bytes(value));
    Some(value.strip_prefix("~").map_or_else(|_| top.join(value), |rest| home.join(rest)))
}
