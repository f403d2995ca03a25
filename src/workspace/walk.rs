//! Walks a directory with ripgrep's rules: hidden files and entries excluded by .gitignore, .ignore
//! and similar files are skipped.

use std::ffi::OsStr;
use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ignore::gitignore::Gitignore;
use parking_lot::{Condvar, Mutex};
use tokio_util::sync::CancellationToken;

use super::ignores::{GIT_RULE_FILES, IgnoreFiles, Ignores, RULE_FILES, decision, rules, rules_of_git};
use crate::limits;

#[derive(Debug)]
pub(crate) struct WalkEntry {
    /// The absolute path.
    pub path: PathBuf,
    /// The type of the entry itself; symlinks are not followed.
    pub kind: FileType,
    /// Depth below the root of the walk. Entries of the root have depth 1.
    pub depth: usize,
    /// True if an ignore file excludes the entry or a directory above it.
    pub ignored: bool,
}

impl WalkEntry {
    pub(crate) fn file_name(&self) -> &OsStr {
        self.path.file_name().unwrap_or(self.path.as_os_str())
    }

    /// Returns the metadata of the entry itself; symlinks are not followed.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.path.symlink_metadata()
    }
}

/// A function that returns whether to skip a path, which is free of symlinks.
pub(crate) type PathFilter = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// Configuration of a walk. Both kinds of walk stop soon after `cancel` fires.
#[derive(Clone)]
pub(crate) struct Walk {
    root: PathBuf,
    hidden: bool,
    depth_max: Option<usize>,
    except: Option<PathFilter>,
    excludes: Option<PathBuf>,
    rules: bool,
    ignored_until: Option<Instant>,
    cancel: CancellationToken,
}

impl Walk {
    /// Walks `root`, which is absolute and free of symlinks.
    pub(crate) fn new(root: &Path, cancel: CancellationToken) -> Walk {
        Walk {
            root: root.to_owned(),
            hidden: false,
            depth_max: None,
            except: None,
            excludes: None,
            rules: false,
            ignored_until: None,
            cancel,
        }
    }

    /// Includes hidden files, except `.git`.
    pub(crate) fn hidden(mut self, hidden: bool) -> Walk {
        self.hidden = hidden;
        self
    }

    /// Sets the maximum depth. Entries of the root have depth 1.
    pub(crate) fn depth_max(mut self, depth: usize) -> Walk {
        self.depth_max = Some(depth);
        self
    }

    /// Skips the paths for which `except` returns true.
    pub(crate) fn except(mut self, except: Option<PathFilter>) -> Walk {
        self.except = except;
        self
    }

    /// Sets the user's global git ignore file.
    pub(crate) fn excludes(mut self, file: Option<PathBuf>) -> Walk {
        self.excludes = file;
        self
    }

    /// Includes the files that decide which entries are ignored, and how git compares files, even
    /// if they are ignored themselves.
    pub(crate) fn rules(mut self) -> Walk {
        self.rules = true;
        self
    }

    /// Visits only the files that ignore files exclude, hidden ones too, until `deadline`.
    pub(crate) fn only_ignored(mut self, deadline: Instant) -> Walk {
        self.ignored_until = Some(deadline);
        self
    }

    fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled() || self.ignored_until.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Returns whether an entry has the name of such a file.
    pub(crate) fn is_rules(entry: &WalkEntry) -> bool {
        RULE_FILES.iter().any(|name| entry.file_name() == *name) || GIT_RULE_FILES.iter().any(|name| entry.path.ends_with(name))
    }

    /// Returns the paths of such files outside of the root. They need not exist.
    pub(crate) fn outer_rules(&self) -> Vec<PathBuf> {
        let above = |directory: &Path| {
            let git = directory.join(".git").exists().then(|| rules_of_git(directory));
            RULE_FILES.map(|name| directory.join(name)).into_iter().chain(git.into_iter().flatten()).collect::<Vec<_>>()
        };
        self.root.ancestors().skip(1).flat_map(above).chain(self.excludes.clone()).collect()
    }

    fn skips(&self, entry: &WalkEntry) -> bool {
        self.except.as_ref().is_some_and(|except| except(&entry.path))
    }

    /// Visits all entries sorted by name, a directory before its contents. `visit` returns false to
    /// stop.
    pub(crate) fn in_order(&self, mut visit: impl FnMut(WalkEntry) -> bool) {
        let global = self.global();
        let Ok(kind) = self.root.symlink_metadata().map(|metadata| metadata.file_type()) else { return };
        let start = Directory { path: self.root.clone(), depth: 0, ignored: false, ignores: Ignores::above(&self.root) };
        if !kind.is_dir() {
            return;
        }
        let mut levels = vec![self.sorted(start, &global)];
        while let Some((entries, ignores)) = levels.last_mut() {
            let Some(entry) = entries.next() else {
                levels.pop();
                continue;
            };
            let inner = self.enters(&entry).then(|| Directory::below(&entry, ignores));
            if self.is_stopped() || !self.skips(&entry) && !visit(entry) {
                return;
            }
            if let Some(inner) = inner {
                levels.push(self.sorted(inner, &global));
            }
        }
    }

    fn sorted(&self, directory: Directory, global: &Gitignore) -> (std::vec::IntoIter<WalkEntry>, Option<Arc<Ignores>>) {
        let (mut entries, ignores) = self.read(directory, global);
        entries.sort_by(|one, other| one.file_name().cmp(other.file_name()));
        (entries.into_iter(), ignores)
    }

    /// Visits all files on several threads, in no particular order; if the root is a file, only the
    /// root. `visitor` creates a function for each thread, which returns false to stop all threads.
    pub(crate) fn parallel<V>(&self, mut visitor: impl FnMut() -> V)
    where
        V: FnMut(WalkEntry) -> bool + Send,
    {
        let Ok(kind) = self.root.symlink_metadata().map(|metadata| metadata.file_type()) else { return };
        let start = if kind.is_dir() {
            Work::Directory(Directory { path: self.root.clone(), depth: 0, ignored: false, ignores: Ignores::above(&self.root) })
        } else {
            Work::Files(vec![WalkEntry { path: self.root.clone(), kind, depth: 0, ignored: false }])
        };
        let queue = WorkQueue {
            state: Mutex::new(QueueState { waiting: vec![start], working: 0, stopped: false }),
            changed: Condvar::new(),
        };
        let global = self.global();
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get()).min(limits::WALK_THREADS_MAX);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let visit = visitor();
                let (queue, global) = (&queue, &global);
                scope.spawn(move || self.work(queue, global, visit));
            }
        });
    }

    /// Runs one thread of a parallel walk.
    fn work(&self, queue: &WorkQueue, global: &Gitignore, mut visit: impl FnMut(WalkEntry) -> bool) {
        // Stop the other threads if a visitor panics.
        let mut guard = StopGuard { queue, stop: true };
        while let Some(work) = queue.next() {
            let files = match work {
                Work::Files(files) => files,
                Work::Directory(directory) => {
                    let (entries, ignores) = self.read(directory, global);
                    let (directories, mut files): (Vec<WalkEntry>, Vec<WalkEntry>) = entries
                        .into_iter()
                        .filter(|entry| entry.kind.is_file() || self.enters(entry))
                        .partition(|entry| entry.kind.is_dir());
                    let mut found: Vec<Work> = Vec::with_capacity(directories.len());
                    found.extend(directories.iter().map(|entry| Work::Directory(Directory::below(entry, &ignores))));
                    while files.len() > FILES_PER_BATCH {
                        found.push(Work::Files(files.split_off(files.len() - FILES_PER_BATCH)));
                    }
                    queue.add(found);
                    files
                }
            };
            for entry in files.into_iter().filter(|entry| self.ignored_until.is_none() || entry.ignored) {
                if self.is_stopped() || !self.skips(&entry) && entry.kind.is_file() && !visit(entry) {
                    return;
                }
            }
            queue.done();
        }
        guard.stop = false;
    }

    fn global(&self) -> Gitignore {
        let mut left = limits::IGNORE_RULES_MAX;
        self.excludes.as_ref().map_or_else(Gitignore::empty, |file| rules(&self.root, file, &mut left))
    }

    fn enters(&self, entry: &WalkEntry) -> bool {
        entry.kind.is_dir() && self.depth_max.is_none_or(|most| entry.depth < most)
    }

    /// Reads a directory. Returns its entries that are not ignored, and the ignore rules that apply
    /// in it. An unreadable directory has no entries.
    fn read(&self, directory: Directory, global: &Gitignore) -> (Vec<WalkEntry>, Option<Arc<Ignores>>) {
        let Directory { path, depth, ignored: below_ignored, ignores: above } = directory;
        let mut found = IgnoreFiles::default();
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            if self.is_stopped() {
                return (Vec::new(), above);
            }
            let (name, kind) = (entry.file_name(), entry.file_type());
            found.note(&name);
            if let (Ok(kind), true) = (kind, name != ".git") {
                names.push((name, kind));
            }
        }
        let ignores = Ignores::enter(above, &path, found);
        let mut entries = Vec::with_capacity(names.len());
        for rules in found.git_rules(&path).filter(|_| self.rules) {
            entries.extend(rules.symlink_metadata().map(|found| WalkEntry {
                path: rules,
                kind: found.file_type(),
                depth: depth + 1,
                ignored: false,
            }));
        }
        for (name, kind) in names {
            let mut entry = WalkEntry { path: path.join(&name), kind, depth: depth + 1, ignored: below_ignored };
            let decided = ignores.as_ref().and_then(|ignores| ignores.decide(&entry.path, kind.is_dir()));
            let decided = decided.or_else(|| if global.is_empty() { None } else { decision(global, &entry.path, kind.is_dir()) });
            let hidden = !self.hidden && name.as_bytes().first() == Some(&b'.');
            let is_rules = self.rules && RULE_FILES.iter().any(|rules| name == *rules);
            entry.ignored |= decided == Some(true);
            if is_rules || !decided.unwrap_or(hidden) || entry.ignored && self.ignored_until.is_some() {
                entries.push(entry);
            }
        }
        (entries, ignores)
    }
}

/// A directory to read, with the rules of its ancestors.
struct Directory {
    path: PathBuf,
    depth: usize,
    ignored: bool,
    ignores: Option<Arc<Ignores>>,
}

impl Directory {
    /// Creates a directory from its entry and the rules of the directory that contains it.
    fn below(entry: &WalkEntry, ignores: &Option<Arc<Ignores>>) -> Directory {
        Directory { path: entry.path.clone(), depth: entry.depth, ignored: entry.ignored, ignores: ignores.clone() }
    }
}

enum Work {
    Directory(Directory),
    Files(Vec<WalkEntry>),
}

/// Maximum number of files in one unit of work, so that several threads share a large directory.
const FILES_PER_BATCH: usize = 32;

/// The work queue that the threads of a walk share.
struct WorkQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

struct QueueState {
    waiting: Vec<Work>,
    /// Number of threads that are processing work and may add more.
    working: usize,
    stopped: bool,
}

impl WorkQueue {
    /// Waits for work and returns it, or `None` at the end of the walk.
    fn next(&self) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(work) = state.waiting.pop() {
                state.working += 1;
                return Some(work);
            }
            if state.working == 0 {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    fn add(&self, found: Vec<Work>) {
        let many = found.len();
        self.state.lock().waiting.extend(found);
        for _ in 0..many {
            self.changed.notify_one();
        }
    }

    fn done(&self) {
        let mut state = self.state.lock();
        state.working -= 1;
        if state.working == 0 && state.waiting.is_empty() {
            self.changed.notify_all();
        }
    }
}

/// Guard that stops all threads when its thread ends early.
struct StopGuard<'q> {
    queue: &'q WorkQueue,
    stop: bool,
}

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        if self.stop {
            self.queue.state.lock().stopped = true;
            self.queue.changed.notify_all();
        }
    }
}
