//! The slash commands of directories. Their files are read again only after one of them, or a
//! directory in which they are searched, changed.

use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::commands::{self, SlashCommand};
use super::prompt_files::{PromptDirs, Version};

/// Maximum number of directories whose slash commands are kept in memory.
const COMMAND_LISTS_MAX: usize = 16;

/// The lists of slash commands that were read, by directory. Each has its own lock, because a check
/// can take long on a network file system.
#[derive(Default)]
pub(crate) struct CommandLists(Mutex<HashMap<PathBuf, Arc<Mutex<CommandList>>>>);

struct CommandList {
    commands: Arc<[SlashCommand]>,
    places: SearchedPlaces,
}

impl CommandLists {
    /// Returns the commands of `cwd` if they were read before. With `check`, returns `None` if one
    /// of the files changed since then.
    pub(crate) fn known(&self, cwd: &Path, check: bool) -> Option<Arc<[SlashCommand]>> {
        let list = self.0.lock().get(cwd)?.clone();
        let mut list = list.lock();
        (!check || list.places.are_unchanged()).then(|| list.commands.clone())
    }

    pub(crate) fn read(&self, dirs: &PromptDirs<'_>) -> Arc<[SlashCommand]> {
        // A change while the files are read is found by the next check.
        let places = SearchedPlaces::new(dirs);
        let commands: Arc<[SlashCommand]> = commands::list(dirs).into();
        let mut lists = self.0.lock();
        if lists.len() >= COMMAND_LISTS_MAX {
            lists.clear();
        }
        let list = CommandList { commands: commands.clone(), places };
        lists.insert(dirs.cwd.to_path_buf(), Arc::new(Mutex::new(list)));
        commands
    }
}

/// The files and directories on which a list depends, as they were before it was read.
#[derive(Default)]
struct SearchedPlaces {
    present: Vec<(PathBuf, Version, Stamp)>,
    /// Paths that did not exist, grouped by their nearest existing parent directory.
    missing: BTreeMap<PathBuf, (Stamp, Vec<PathBuf>)>,
    /// True if one of them changed so recently that another change may have left the same times.
    is_recent: bool,
}

/// Differs between versions of a file or directory.
#[derive(Clone, Copy, PartialEq)]
struct Stamp {
    file: (u64, u64, u32, u32),
    content: Option<(u64, i64, i64, i64, i64)>,
}

/// Two changes of a file within this period can have the same time: file systems take it from a
/// clock that advances every few milliseconds.
const CLOCK_TICK: Duration = Duration::from_millis(20);

impl SearchedPlaces {
    fn new(dirs: &PromptDirs<'_>) -> SearchedPlaces {
        let mut places = SearchedPlaces::default();
        for (path, version) in dirs.searched_paths() {
            places.add(path, version);
        }
        places
    }

    fn add(&mut self, path: PathBuf, version: Version) {
        if let Ok(metadata) = path.metadata() {
            self.is_recent |= version == Version::Content && is_recent(&metadata);
            self.present.push((path, version, stamp(&metadata, version)));
            return;
        }
        let parent = path.ancestors().skip(1).find_map(|parent| Some((parent, parent.metadata().ok()?)));
        let Some((parent, metadata)) = parent else { return };
        self.is_recent |= is_recent(&metadata);
        let (_, children) = self.missing.entry(parent.into()).or_insert_with(|| (stamp(&metadata, Version::Content), Vec::new()));
        let child = path.strip_prefix(parent).ok().and_then(|rest| rest.iter().next());
        children.extend(child.map(|child| parent.join(child)).filter(|child| !children.contains(child)));
    }

    fn are_unchanged(&mut self) -> bool {
        let now = |path: &Path, version| path.metadata().ok().map(|metadata| stamp(&metadata, version));
        let is_unchanged = |(parent, (before, children)): (&PathBuf, &mut (Stamp, Vec<PathBuf>))| {
            let Ok(metadata) = parent.metadata() else { return false };
            let now = stamp(&metadata, Version::Content);
            if now != *before {
                if children.iter().any(|child| child.symlink_metadata().is_ok()) {
                    return false;
                }
                // Another entry of the directory changed.
                if !is_recent(&metadata) {
                    *before = now;
                }
            }
            true
        };
        !self.is_recent
            && self.present.iter().all(|(path, version, before)| now(path, *version) == Some(*before))
            && self.missing.iter_mut().all(is_unchanged)
    }
}

fn stamp(metadata: &Metadata, version: Version) -> Stamp {
    let content = || (metadata.size(), metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec());
    Stamp {
        file: (metadata.dev(), metadata.ino(), metadata.uid(), metadata.mode()),
        content: (version == Version::Content).then(content),
    }
}

fn is_recent(metadata: &Metadata) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::new(metadata.ctime().max(0) as u64, metadata.ctime_nsec().max(0) as u32);
    now < changed + CLOCK_TICK
}
