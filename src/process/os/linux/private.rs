//! Prevents a sandboxed command from reading nuncio's own directories. Landlock rules can only
//! grant access, so access to `/` is not granted as a whole: each directory above a private
//! directory is split, and access to its other entries is granted individually.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

/// Maximum number of entries that a sandboxed command may access in each directory above nuncio's
/// private directories. Further entries are inaccessible.
const SANDBOX_ENTRIES_MAX: usize = 10_000;

/// The private paths and the directories that have to be split.
pub(super) struct Split {
    /// The private paths, including their paths through other mounts. None is below another.
    pub private: Vec<PathBuf>,
    above: BTreeSet<PathBuf>,
}

impl Split {
    /// Creates the split for `private` paths, which are absolute and free of symlinks and need not
    /// exist.
    pub(crate) fn new(private: &[PathBuf]) -> Split {
        if private.is_empty() {
            return Split { private: Vec::new(), above: BTreeSet::new() };
        }
        let mounts = std::fs::read("/proc/self/mountinfo").map(|text| mounts(&text)).unwrap_or_default();
        let mut all: Vec<PathBuf> = private.iter().flat_map(|path| names(path, &mounts)).collect();
        all.sort();
        // A path sorts before the paths below it, which are removed here.
        all.dedup_by(|path, kept| path.starts_with(&*kept));
        let above = all.iter().flat_map(|path| path.ancestors().skip(1).map(Path::to_owned)).collect();
        Split { private: all, above }
    }

    /// Returns whether a private path is `directory` or below it.
    pub(crate) fn is_in(&self, directory: &Path) -> bool {
        self.above.contains(directory) || self.private.iter().any(|private| private == directory)
    }

    /// Returns the directories between `top` and private paths, outermost first.
    pub(crate) fn between<'s>(&'s self, top: &'s Path) -> impl Iterator<Item = &'s PathBuf> {
        self.above.iter().filter(move |directory| **directory != top && directory.starts_with(top))
    }

    /// Passes descriptors to `allow` that together cover `top` except for private paths, each with
    /// a flag: true if the descriptor is a directory. Entries created later in a split directory
    /// are not covered. Symlinks are skipped, because their targets are covered by their own paths.
    /// At most [`SANDBOX_ENTRIES_MAX`] entries per directory are covered.
    pub(crate) fn allow(&self, top: &Path, allow: &mut impl FnMut(OwnedFd, bool)) {
        if self.private.iter().any(|private| private == top) {
            return;
        }
        if !self.above.contains(top) {
            if let Some(opened) = open(top) {
                allow_one(opened, allow);
            }
            return;
        }
        for inner in self.above.iter().filter(|inner| inner.parent() == Some(top)) {
            self.allow(inner, allow);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(directory) = openat2(CWD, top, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else { return };
        let Ok(entries) = Dir::read_from(&directory) else { return };
        for entry in entries.flatten().take(SANDBOX_ENTRIES_MAX) {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || entry.file_type() == FileType::Symlink {
                continue;
            }
            if self.is_in(&top.join(std::ffi::OsStr::from_bytes(name.to_bytes()))) {
                continue;
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(opened) = openat(directory.as_fd(), name, flags, Mode::empty()) {
                allow_one(opened, allow);
            }
        }
    }
}

fn allow_one(opened: OwnedFd, allow: &mut impl FnMut(OwnedFd, bool)) {
    let kind = fstat(&opened).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::Symlink) | Err(_) => {}
        Ok(kind) => allow(opened, kind == FileType::Directory),
    }
}

/// Opens `path` without following symlinks, because an earlier command may have replaced a
/// directory with a symlink. `None` if it cannot be opened.
pub(super) fn open(path: &Path) -> Option<OwnedFd> {
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()
}

/// A line of /proc/self/mountinfo (proc(5)): file system, the directory in it that is mounted, and
/// the mount point.
struct Mount {
    device: Vec<u8>,
    root: PathBuf,
    at: PathBuf,
}

fn mounts(text: &[u8]) -> Vec<Mount> {
    let line = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let device = fields.next()?.to_vec();
        Some(Mount { device, root: unescaped(fields.next()?), at: unescaped(fields.next()?) })
    };
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// Decodes a path in which a byte can be written as a backslash and three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let code = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        let (byte, next) = match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => (byte, &after[3..]),
            None => (*first, after),
        };
        bytes.push(byte);
        rest = next;
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns `path` and the paths of the same directory through other mounts of its file system, such
/// as bind mounts.
fn names(path: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    // Of several mounts at one path, the last one is visible.
    let own = mounts.iter().filter(|mount| path.starts_with(&mount.at)).max_by_key(|mount| mount.at.components().count());
    let inner = own.and_then(|own| Some((own, own.root.join(path.strip_prefix(&own.at).ok()?))));
    if let Some((own, inner)) = inner {
        for mount in mounts.iter().filter(|mount| mount.device == own.device) {
            match (inner.strip_prefix(&mount.root), mount.root.starts_with(&inner)) {
                (Ok(rest), _) => all.push(mount.at.components().chain(rest.components()).collect()),
                // A part of the private directory that is mounted elsewhere.
                (Err(_), true) => all.push(mount.at.clone()),
                (Err(_), false) => {}
            }
        }
    }
    all
}
