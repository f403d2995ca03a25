//! Watches over the control files of one command from outside of its sandbox, until it has ended:
//! mounts them again if another process ended a mount, restores what the command could change in
//! between, and checks what it created.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::entry::{Entry, FileIdentity};
use super::files::{ControlFile, ControlFiles, Extent, SETTINGS, is_absent, read};
use super::memory;
use super::mounts::Remount;
use super::placeholder::Placeholder;
use super::settings::{Merge, merge};
use super::watch::Watch;
use crate::process::Sandbox;

/// Maximum number of times that files are mounted again in one check.
const ROUNDS_MAX: usize = 4;
/// Time after the start of a command after which settings that do not exist are protected. Earlier,
/// the directory would be in the way of a command that needs an empty one.
const LONG: Duration = Duration::from_secs(2);
/// Time to the next check if a command is not in its mount namespace yet.
const CHECK_AGAIN: Duration = Duration::from_millis(5);
/// The extension that the name of settings receives if a command created them.
const REMOVED: &str = "removed";

/// The guard of one command.
#[derive(Debug, Default)]
pub(in crate::process) struct Guard {
    sandbox: Sandbox,
    /// Directories that variables of the command name as git directories.
    named: Vec<PathBuf>,
    control: ControlFiles,
    /// The system permits mounts.
    mounts: bool,
    before: Vec<Kept>,
    /// The mounted paths with their identities: a path with another one is not mounted any more.
    mounted: Vec<(PathBuf, Option<FileIdentity>)>,
    /// Git directories that did not exist when the command started.
    created: BTreeSet<PathBuf>,
    /// The restored files.
    restored: BTreeSet<String>,
    /// Descriptions of what the command created and what was not restored.
    created_files: BTreeSet<String>,
    /// A watched name changed since the command started.
    changed: bool,
    /// When to check again although nothing changed: the mounts were not made yet, or settings that
    /// do not exist are to be protected.
    due: Option<Instant>,
}

/// A control file as the command must leave it.
#[derive(Clone, Debug)]
struct Kept {
    path: PathBuf,
    /// The file that was mounted all the time. A change of this file was made from outside.
    mounted: Option<FileIdentity>,
    entry: Entry,
    /// The file may be missing: `entry` is its placeholder.
    is_placeholder: bool,
}

impl Kept {
    /// Returns whether a file is as it must be.
    fn is(&self, now: &Entry) -> bool {
        let is_placeholder = || *now == Entry::Missing || now.bytes().is_some_and(|bytes| self.entry.bytes() == Some(bytes));
        *now == self.entry || self.is_placeholder && is_placeholder()
    }

    /// Returns the harmless part of what the file is now, and the rest. `None` for a file of which
    /// no change is harmless.
    fn merge(&self, now: &Entry) -> Option<(Entry, Vec<String>)> {
        let is_config = self.path.file_name().is_some_and(|name| name == "config" || name == "config.worktree");
        let (Some(before), Entry::File { bytes, mode }) = (self.entry.bytes().filter(|_| is_config), now) else { return None };
        let Merge { text, undone } = merge(before, bytes, false);
        Some((Entry::File { bytes: text, mode: *mode }, undone))
    }
}

impl Guard {
    /// Finds what a command must not change. `mounts` tells whether the system permits mounts.
    pub(in crate::process) fn new(sandbox: &Sandbox, named: Vec<PathBuf>, mounts: impl FnOnce() -> bool) -> Guard {
        let control = ControlFiles::find(sandbox, &named);
        let mounts = !(control.files.is_empty() && control.absent.is_empty()) && mounts();
        if let Some(data) = sandbox.private.first() {
            memory::add(data, &control.git_dirs);
        }
        let mut guard = Guard { sandbox: sandbox.clone(), named, mounts, ..Guard::default() };
        let kept = control.files.iter().map(|file| guard.kept(file)).collect::<Result<Vec<_>, _>>();
        match kept {
            Ok(kept) => guard.before = kept.into_iter().flatten().collect(),
            Err(why) => guard.control.unknown = Some(why),
        }
        guard.control = ControlFiles { unknown: control.unknown.clone().or(guard.control.unknown), ..control };
        if guard.mounts {
            guard.control.create_placeholders();
        }
        guard.mounted = guard.control.identities();
        guard.due = guard.control.absent.iter().any(|path| path.ends_with(SETTINGS)).then(|| Instant::now() + LONG);
        guard
    }

    /// Takes over what another guard has seen of the same files: they may differ from it because
    /// its command changes them now.
    pub(in crate::process) fn share(&mut self, other: &Guard) {
        for kept in &mut self.before {
            if let Some(known) = other.before.iter().find(|known| known.path == kept.path) {
                *kept = known.clone();
            }
        }
    }

    /// Returns whether there is something to guard.
    pub(in crate::process) fn is_needed(&self) -> bool {
        !self.control.is_empty() || !self.control.absent.is_empty()
    }

    /// Returns locks to keep open while the command runs. Fails if the state of a file is unknown.
    pub(in crate::process::os::linux) fn lock(&self) -> Result<Vec<File>, String> {
        match &self.control.unknown {
            Some(why) => Err(why.clone()),
            None => self.control.lock(self.sandbox.private.first().map(PathBuf::as_path)),
        }
    }

    /// Mounts the files for this process, the supervisor, and its descendants. `in_namespace` is
    /// true if the process is in its own mount namespace already.
    pub(in crate::process::os::linux) fn protect(&self, in_namespace: bool) -> Result<(), String> {
        if self.mounts { self.control.protect(in_namespace) } else { Ok(()) }
    }

    /// Watches the directories of the control files.
    pub(in crate::process) fn watch(&self, watch: &mut Watch) {
        watch.add(self.control.watched.iter());
    }

    /// Returns the state of a file to which it is restored. `None` for what only a mount protects:
    /// a directory that is mounted cannot be changed, and not be replaced by a rename.
    fn kept(&self, file: &ControlFile) -> Result<Option<Kept>, String> {
        let kind = file.path.symlink_metadata();
        let is_dir = kind.as_ref().is_ok_and(fs::Metadata::is_dir);
        if self.mounts && (is_dir || file.placeholder == Placeholder::Directory) {
            return Ok(None);
        }
        let entry = match Entry::read(&file.path) {
            Ok(entry) => entry,
            // The mount protects a file that cannot be read.
            Err(_) if self.mounts => return Ok(None),
            Err(error) => return Err(format!("{} cannot be restored: {error}", file.path.display())),
        };
        // A link is not mounted.
        let mounted = kind.ok().filter(|kind| !kind.is_symlink()).and_then(|_| FileIdentity::new(&file.path));
        let path = file.path.clone();
        Ok(Some(match file.placeholder {
            // A placeholder of another command exists as long as that command runs.
            Placeholder::Text(text) if entry == Entry::Missing || entry.bytes() == Some(text.as_bytes()) => {
                Kept { path, mounted, entry: Entry::text(text), is_placeholder: true }
            }
            _ => Kept { path, mounted, entry, is_placeholder: false },
        }))
    }

    /// Protects again what changed. `supervisor` is the command's.
    pub(in crate::process) fn check(&mut self, supervisor: u32) {
        let now = Instant::now();
        self.changed = true;
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.protect_absent_settings();
        }
        for _ in 0..ROUNDS_MAX {
            self.adopt();
            let identities = self.control.identities();
            if self.mounts && self.mounted != identities {
                match self.control.mount_again(supervisor) {
                    // A file that was replaced again has another identity at the next check.
                    Remount::Done | Remount::Failed => self.mounted = identities,
                    Remount::TooEarly => self.due = Some(now + CHECK_AGAIN),
                }
            }
            if !self.restore() {
                return;
            }
        }
    }

    /// Returns when to check again although nothing changed.
    pub(in crate::process) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Lets a command that runs for a longer time not create settings: the user may create them
    /// while it runs. Those that exist by now were created by the command.
    fn protect_absent_settings(&mut self) {
        let (settings, rest) =
            std::mem::take(&mut self.control.absent).into_iter().partition(|path: &PathBuf| path.ends_with(SETTINGS));
        self.control.absent = rest;
        for path in Vec::from_iter(settings) {
            if !is_absent(&path) {
                self.remove_settings(&path);
            }
            if self.mounts {
                self.control.files.push(ControlFile { path, placeholder: Placeholder::Directory, extent: Extent::All });
            } else {
                self.control.absent.push(path);
            }
        }
    }

    /// Makes the last check, after the command and its processes have ended, and removes
    /// placeholders. Returns the restored files, and descriptions of what the command created.
    pub(in crate::process) fn finish(mut self) -> [Vec<String>; 2] {
        // Without mounts, more can change than what is watched.
        if self.changed || !self.mounts {
            self.adopt();
            self.restore();
        }
        for git_dir in std::mem::take(&mut self.created) {
            self.check_created(&git_dir);
        }
        for path in std::mem::take(&mut self.control.absent).into_iter().filter(|path| !is_absent(path)) {
            if path.ends_with(SETTINGS) {
                self.remove_settings(&path);
            } else {
                self.check_new_repository(&path);
            }
        }
        self.control.remove_placeholders(self.sandbox.private.first().map(PathBuf::as_path));
        [self.restored, self.created_files].map(|reports| reports.into_iter().collect())
    }

    /// Adds git directories that are complete and did not exist before, such as that of a linked
    /// worktree that the user created while the command runs.
    fn adopt(&mut self) {
        let found = ControlFiles::find(&self.sandbox, &self.named);
        let absent = self.control.absent.clone();
        let is_new_repository = |path: &Path| absent.iter().any(|absent| path.starts_with(absent));
        for git_dir in found.git_dirs.into_iter().filter(|path| !is_new_repository(path)) {
            if !self.control.git_dirs.contains(&git_dir) {
                self.created.insert(git_dir.clone());
                self.control.git_dirs.push(git_dir);
            }
        }
        for file in found.files {
            let is_known = self.control.files.iter().any(|known| known.path == file.path);
            if is_known || is_new_repository(&file.path) {
                continue;
            }
            if file.extent == Extent::Incomplete {
                self.created.insert(file.path);
                continue;
            }
            if let Some(git_dir) = file.path.parent().filter(|parent| self.created.contains(*parent)) {
                self.check_created(git_dir);
            }
            if let Ok(kept) = self.kept(&file) {
                self.before.extend(kept);
                self.control.files.push(file);
            }
        }
        self.control.kept.extend(found.kept.into_iter().filter(|path| !is_new_repository(path)));
        self.control.kept.sort();
        self.control.kept.dedup();
    }

    /// Restores files that the command could change. Returns whether one was written.
    fn restore(&mut self) -> bool {
        let mut written = false;
        for kept in &mut self.before {
            let now = Entry::read(&kept.path);
            if now.as_ref().is_ok_and(|now| kept.is(now)) {
                continue;
            }
            let is_gone = kept.path.parent().is_some_and(is_absent);
            kept.mounted = kept.mounted.filter(|mounted| FileIdentity::new(&kept.path) == Some(*mounted));
            // The mount was in place all the time, or the user removed the whole directory.
            if self.mounts && (is_gone || kept.mounted.is_some()) {
                kept.entry = now.unwrap_or(Entry::Missing);
                continue;
            }
            let name = kept.path.display();
            let report = match now.as_ref().ok().and_then(|now| kept.merge(now)) {
                Some((merged, undone)) => {
                    kept.entry = merged;
                    kept.is_placeholder = false;
                    if undone.is_empty() {
                        continue;
                    }
                    format!("{name} ({})", undone.join("; "))
                }
                None => name.to_string(),
            };
            let restored = kept.entry.restore(&kept.path);
            written |= restored.is_ok();
            self.restored.insert(match restored {
                Ok(()) => report,
                Err(error) => format!("{report} (failed: {error})"),
            });
        }
        written
    }

    /// Checks that a git directory that appeared has git's own form, and corrects it.
    fn check_created(&mut self, git_dir: &Path) {
        let is_linked = git_dir.parent().is_some_and(|parent| parent.ends_with("worktrees"));
        let common = git_dir.join("commondir");
        let expected = is_linked.then_some("../..");
        let text = read(&common);
        let is_usual = text.as_deref().map(str::trim_end) == expected || text.as_deref() == Some(".\n");
        if !is_usual && !is_absent(&common) {
            let _ = match expected {
                Some(expected) => Entry::text(&format!("{expected}\n")).restore(&common),
                None => Entry::Missing.restore(&common),
            };
            self.restored.insert(format!("{}", common.display()));
        }
        for name in ["config", "config.worktree"] {
            let path = git_dir.join(name);
            if let Ok(Entry::File { bytes, mode }) = Entry::read(&path) {
                let Merge { text, undone } = merge(b"", &bytes, true);
                let harmless = Entry::File { bytes: text, mode };
                if !undone.is_empty() && harmless.restore(&path).is_ok() {
                    self.restored.insert(format!("{} ({})", path.display(), undone.join("; ")));
                }
            }
        }
    }

    /// Reports what names programs in a repository that the command created in a root.
    fn check_new_repository(&mut self, path: &Path) {
        let config = path.join("config");
        if let Ok(Entry::File { bytes, .. }) = Entry::read(&config) {
            let undone = merge(b"", &bytes, true).undone;
            if !undone.is_empty() {
                self.created_files.insert(format!(
                    "{} of the new repository names programs or has other settings: {}",
                    config.display(),
                    undone.join("; ")
                ));
            }
        }
        let hooks = fs::read_dir(path.join("hooks")).into_iter().flatten().flatten();
        for hook in hooks.filter(|hook| hook.path().extension().is_none_or(|extension| extension != "sample")) {
            self.created_files.insert(format!("{} is a hook of the new repository", hook.path().display()));
        }
    }

    /// Renames settings that the command created, so that nothing is lost if it was the user.
    fn remove_settings(&mut self, path: &Path) {
        let aside = path.with_extension(REMOVED);
        let renamed = Entry::Missing.restore(&aside).and_then(|()| fs::rename(path, &aside));
        self.created_files.insert(match renamed {
            Ok(()) => format!("{} is created by the user only, so it was renamed to {}", path.display(), aside.display()),
            Err(error) => format!("{} is created by the user only, but it could not be renamed: {error}", path.display()),
        });
    }
}
