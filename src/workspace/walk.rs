//! Walking a directory as ripgrep does: hidden files and what .gitignore, .ignore and their like exclude are left out.

use std::ffi::OsStr;
use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ignore::gitignore::Gitignore;
use tokio_util::sync::CancellationToken;

use super::ignores::{Found, Ignores, decision, rules};
use crate::limits;

/// What was met on a walk.
#[derive(Debug)]
pub struct Entry {
    path: PathBuf,
    kind: FileType,
    depth: usize,
}

impl Entry {
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn into_path(self) -> PathBuf {
        self.path
    }

    pub fn file_name(&self) -> &OsStr {
        self.path.file_name().unwrap_or(self.path.as_os_str())
    }

    /// Of the entry itself, where it is a symlink.
    pub fn file_type(&self) -> FileType {
        self.kind
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        self.path.symlink_metadata()
    }

    /// The entries of the directory that is walked have depth 1.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

/// Says of a path, without symlinks, that it is left out.
pub type Except = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// A walk that is about to begin. Both ways of it stop soon after `cancel`.
#[derive(Clone)]
pub struct Walk {
    root: PathBuf,
    hidden: bool,
    depth_max: Option<usize>,
    except: Option<Except>,
    excludes: Option<PathBuf>,
    cancel: CancellationToken,
}

impl Walk {
    /// `root` is absolute and free of symlinks.
    pub fn new(root: &Path, cancel: CancellationToken) -> Walk {
        Walk { root: root.to_owned(), hidden: false, depth_max: None, except: None, excludes: None, cancel }
    }

    /// Visits hidden files too, all but `.git`.
    pub fn hidden(mut self, hidden: bool) -> Walk {
        self.hidden = hidden;
        self
    }

    /// The root's own entries have depth 1.
    pub fn depth_max(mut self, depth: usize) -> Walk {
        self.depth_max = Some(depth);
        self
    }

    /// Leaves out what it says.
    pub fn except(mut self, except: Option<Except>) -> Walk {
        self.except = except;
        self
    }

    /// The user's own ignore file of git.
    pub fn excludes(mut self, file: Option<PathBuf>) -> Walk {
        self.excludes = file;
        self
    }

    fn leaves_out(&self, entry: &Entry) -> bool {
        self.except.as_ref().is_some_and(|except| except(entry.path()))
    }

    /// Visits all entries in the order of their names, a directory before what is in it. `visit` returns false to stop.
    pub fn in_order(&self, mut visit: impl FnMut(Entry) -> bool) {
        let global = self.global();
        let Ok(kind) = self.root.symlink_metadata().map(|metadata| metadata.file_type()) else { return };
        let start = Directory { path: self.root.clone(), depth: 0, ignores: Ignores::above(&self.root) };
        if !kind.is_dir() {
            return;
        }
        let mut levels = vec![self.sorted(start, &global)];
        while let Some((entries, ignores)) = levels.last_mut() {
            let Some(entry) = entries.next() else {
                levels.pop();
                continue;
            };
            let inner =
                self.enters(&entry).then(|| Directory { path: entry.path.clone(), depth: entry.depth, ignores: ignores.clone() });
            if self.cancel.is_cancelled() || !self.leaves_out(&entry) && !visit(entry) {
                return;
            }
            if let Some(inner) = inner {
                levels.push(self.sorted(inner, &global));
            }
        }
    }

    fn sorted(&self, directory: Directory, global: &Gitignore) -> (std::vec::IntoIter<Entry>, Option<Arc<Ignores>>) {
        let (mut entries, ignores) = self.read(directory, global);
        entries.sort_by(|one, other| one.file_name().cmp(other.file_name()));
        (entries.into_iter(), ignores)
    }

    /// Visits all files on several threads, in no order; the root itself when it is a file. `visitor` makes a function for each
    /// thread, which returns false to stop all of them.
    pub fn parallel<V>(&self, mut visitor: impl FnMut() -> V)
    where
        V: FnMut(Entry) -> bool + Send,
    {
        let Ok(kind) = self.root.symlink_metadata().map(|metadata| metadata.file_type()) else { return };
        let start = if kind.is_dir() {
            Work::Directory(Directory { path: self.root.clone(), depth: 0, ignores: Ignores::above(&self.root) })
        } else {
            Work::Files(vec![Entry { path: self.root.clone(), kind, depth: 0 }])
        };
        let queue =
            Queue { state: Mutex::new(State { waiting: vec![start], working: 0, stopped: false }), changed: Condvar::new() };
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

    /// What one thread does.
    fn work(&self, queue: &Queue, global: &Gitignore, mut visit: impl FnMut(Entry) -> bool) {
        // Also when a visitor panics, nobody waits for what it would have found.
        let mut working = Working { queue, stop: true };
        while let Some(work) = queue.next() {
            let files = match work {
                Work::Files(files) => files,
                Work::Directory(directory) => {
                    let (entries, ignores) = self.read(directory, global);
                    let (directories, mut files): (Vec<Entry>, Vec<Entry>) = entries
                        .into_iter()
                        .filter(|entry| entry.kind.is_file() || self.enters(entry))
                        .partition(|entry| entry.kind.is_dir());
                    let mut found: Vec<Work> = Vec::with_capacity(directories.len());
                    found.extend(directories.into_iter().map(|entry| {
                        Work::Directory(Directory { path: entry.path, depth: entry.depth, ignores: ignores.clone() })
                    }));
                    while files.len() > FILES_AT_ONCE {
                        found.push(Work::Files(files.split_off(files.len() - FILES_AT_ONCE)));
                    }
                    queue.add(found);
                    files
                }
            };
            for entry in files {
                if self.cancel.is_cancelled() || !self.leaves_out(&entry) && entry.kind.is_file() && !visit(entry) {
                    return;
                }
            }
            queue.done();
        }
        working.stop = false;
    }

    fn global(&self) -> Gitignore {
        self.excludes.as_ref().map_or_else(Gitignore::empty, |file| rules(&self.root, file))
    }

    fn enters(&self, entry: &Entry) -> bool {
        entry.kind.is_dir() && self.depth_max.is_none_or(|most| entry.depth < most)
    }

    /// The entries of a directory that are not left out, and the rules that hold in it. What cannot be read has none.
    fn read(&self, directory: Directory, global: &Gitignore) -> (Vec<Entry>, Option<Arc<Ignores>>) {
        let Directory { path, depth, ignores: above } = directory;
        let mut found = Found::default();
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            if self.cancel.is_cancelled() {
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
        for (name, kind) in names {
            let entry = Entry { path: path.join(&name), kind, depth: depth + 1 };
            let decided = ignores.as_ref().and_then(|ignores| ignores.decide(&entry.path, kind.is_dir()));
            let decided = decided.or_else(|| if global.is_empty() { None } else { decision(global, &entry.path, kind.is_dir()) });
            let hidden = !self.hidden && name.as_bytes().first() == Some(&b'.');
            if !decided.unwrap_or(hidden) {
                entries.push(entry);
            }
        }
        (entries, ignores)
    }
}

/// A directory that is to be read, and the rules of those above it.
struct Directory {
    path: PathBuf,
    depth: usize,
    ignores: Option<Arc<Ignores>>,
}

enum Work {
    Directory(Directory),
    Files(Vec<Entry>),
}

/// Files of one directory that one thread visits while another may take the next ones.
const FILES_AT_ONCE: usize = 32;

/// What the threads of a walk share.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: Vec<Work>,
    /// Threads that may still find more.
    working: usize,
    stopped: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something to do; `None` at the end of the walk.
    fn next(&self) -> Option<Work> {
        let mut state = self.state();
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
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, found: Vec<Work>) {
        let many = found.len();
        self.state().waiting.extend(found);
        (0..many).for_each(|_| self.changed.notify_one());
    }

    fn done(&self) {
        let mut state = self.state();
        state.working -= 1;
        if state.working == 0 && state.waiting.is_empty() {
            self.changed.notify_all();
        }
    }
}

/// Ends the walk of all threads when the one that has it ends early.
struct Working<'q> {
    queue: &'q Queue,
    stop: bool,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if self.stop {
            self.queue.state().stopped = true;
            self.queue.changed.notify_all();
        }
    }
}
