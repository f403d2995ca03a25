//! The mounts that protect control files, in the mount namespace of a command.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

use super::super::entry::FileIdentity;
use super::super::masked;
use super::files::{ControlFiles, Extent, is_absent};

/// The result of [`ControlFiles::mount_again`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remount {
    Done,
    /// The command is not in its mount namespace yet.
    TooEarly,
    Failed,
}

impl ControlFiles {
    /// Mounts the files read-only for this process and its descendants. `in_namespace` is true if
    /// the process is in its own mount namespace already.
    pub(super) fn protect(&self, in_namespace: bool) -> Result<(), String> {
        if !in_namespace {
            masked::enter_namespace().map_err(|error| format!("git's control files cannot be mounted read-only: {error}"))?;
        }
        self.create_placeholders();
        self.mount(is_absent).map_err(|(path, error)| format!("{} cannot be mounted read-only: {error}", path.display()))
    }

    /// Mounts the files, from outside, in the namespace of a supervisor where they are not mounted
    /// any more: a rename over a mounted file, in another namespace, ends the mount.
    pub(super) fn mount_again(&self, supervisor: u32) -> Remount {
        let namespace = |pid: &str, kind: &str| File::open(format!("/proc/{pid}/ns/{kind}"));
        let pid = supervisor.to_string();
        let opened = || {
            Ok::<_, io::Error>([
                namespace(&pid, "user")?,
                namespace("self", "user")?,
                namespace(&pid, "mnt")?,
                namespace("self", "mnt")?,
            ])
        };
        let Ok([user, own_user, mounts, own_mounts]) = opened() else { return Remount::Failed };
        let is_same = |one: &File, other: &File| one.metadata().and_then(|one| Ok(one.ino() == other.metadata()?.ino()));
        match (is_same(&user, &own_user), is_same(&mounts, &own_mounts)) {
            (Ok(same_user), Ok(false)) => {
                self.create_placeholders();
                let done = masked::succeeds_in_child(|| {
                    if !same_user {
                        enter(&user, libc::CLONE_NEWUSER)?;
                    }
                    enter(&mounts, libc::CLONE_NEWNS)?;
                    self.mount(|path| is_mounted(path) || is_absent(path)).map_err(|(_, error)| error)
                });
                if done { Remount::Done } else { Remount::Failed }
            }
            (Ok(_), Ok(true)) => Remount::TooEarly,
            (Err(_), _) | (_, Err(_)) => Remount::Failed,
        }
    }

    /// Returns the paths that are mounted, each with its identity.
    pub(super) fn identities(&self) -> Vec<(PathBuf, Option<FileIdentity>)> {
        let paths = self.directories().into_iter().chain(self.files.iter().map(|file| file.path.clone()));
        paths.map(|path| (path.clone(), FileIdentity::new(&path))).collect()
    }

    /// Returns the directories that must not be renamed, the outermost first: those between a
    /// writable one and a file, because others could take their place, and those by which git
    /// recognizes a repository.
    fn directories(&self) -> BTreeSet<PathBuf> {
        let above = |path: &PathBuf| path.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
        let is_below = |directory: &PathBuf| self.tops.iter().any(|top| directory != top && directory.starts_with(top));
        self.files.iter().map(|file| &file.path).flat_map(above).chain(self.kept.iter().cloned()).filter(is_below).collect()
    }

    /// Mounts all paths for which `skip` is false. Links cannot be mounted.
    fn mount(&self, skip: impl Fn(&Path) -> bool) -> Result<(), (PathBuf, io::Error)> {
        let excepted = self.files.iter().filter(|file| file.extent == Extent::ExceptRoots);
        let excepted = excepted.flat_map(|file| self.tops.iter().filter(|top| top.starts_with(&file.path)));
        let bind = |path: &PathBuf| match skip(path) || path.is_symlink() {
            true => Ok(()),
            false => masked::bind(path).map_err(|error| (path.clone(), error)),
        };
        self.directories().iter().try_for_each(bind)?;
        excepted.into_iter().try_for_each(bind)?;
        for file in &self.files {
            if !skip(&file.path) && !file.path.is_symlink() {
                let recursive = file.extent != Extent::ExceptRoots;
                masked::bind_read_only(&file.path, recursive).map_err(|error| (file.path.clone(), error))?;
            }
        }
        Ok(())
    }
}

/// Enters a namespace of another process (setns(2)).
fn enter(namespace: &File, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is involved; this process has one thread.
    if unsafe { libc::setns(namespace.as_raw_fd(), kind) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn is_mounted(path: &Path) -> bool {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}
