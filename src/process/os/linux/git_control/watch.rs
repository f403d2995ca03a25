//! Reports that a name which matters to control files appeared or changed (inotify(7)).

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// Maximum number of watched directories. Beyond it, all are forgotten and watched again.
const WATCHES_MAX: usize = 8192;

/// Names that matter in every watched directory.
const NAMES: [&str; 18] = [
    ".git",
    ".bare",
    ".hg",
    ".jj",
    "hgrc",
    "requires",
    "config.toml",
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "hooks",
    "locked",
    "modules",
    "objects",
    "workspace-config.toml",
    "worktrees",
];

/// A watch over directories. Without inotify, [`Watch::descriptor`] is `None`.
#[derive(Debug)]
pub(in crate::process) struct Watch {
    inotify: Option<OwnedFd>,
    /// True if every name matters, by the number of the watch.
    every_name: HashMap<i32, bool>,
}

impl Watch {
    /// Opens a watch over nothing.
    pub(in crate::process) fn new() -> Watch {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        Watch { inotify, every_name: HashMap::new() }
    }

    /// Returns a descriptor that is readable when something changed.
    pub(in crate::process) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Watches directories, each with whether every name in it matters. Ignores those that do not
    /// exist any more.
    pub(super) fn add<'a>(&mut self, directories: impl Iterator<Item = &'a (PathBuf, bool)>) {
        if self.every_name.len() > WATCHES_MAX {
            *self = Watch::new();
        }
        let Some(inotify) = &self.inotify else { return };
        let changes = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE;
        let flags = changes | WatchFlags::CLOSE_WRITE | WatchFlags::MODIFY | WatchFlags::ONLYDIR;
        for (directory, every_name) in directories {
            if let Ok(number) = inotify::add_watch(inotify, directory, flags) {
                self.every_name.insert(number, *every_name);
            }
        }
    }

    /// Reads what changed. Returns whether it matters.
    pub(in crate::process) fn matters(&mut self) -> bool {
        let Some(inotify) = &self.inotify else { return true };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(inotify, &mut buffer);
        let mut matters = false;
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::IGNORED) {
                self.every_name.remove(&event.wd());
            }
            let every = self.every_name.get(&event.wd()) == Some(&true) || event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            matters |= every || name.is_some_and(|name| NAMES.iter().any(|known| name == *known));
        }
        matters
    }
}
