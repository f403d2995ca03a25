//! Hides nuncio's own directories in a mount namespace. This is needed when a root contains those
//! directories: Landlock cannot exclude part of a directory that is allowed as a whole. Mounting
//! requires a capability or user namespaces, which are not available on every system.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};

use super::private::{Split, open};

/// Hides the private paths of `split` from this process and its descendants; paths in `kept` stay
/// visible even below a private path. Directories between `tops` and a private path can no longer
/// be renamed. Returns false, without any change, if the system does not permit this.
pub(super) fn mask(split: &Split, tops: &[PathBuf], kept: &[&Path]) -> bool {
    // A partial change cannot be undone, so a child process tries first.
    let tried = succeeds_in_child(|| cover(split, tops, kept));
    tried && cover(split, tops, kept).is_ok()
}

fn cover(split: &Split, tops: &[PathBuf], kept: &[&Path]) -> io::Result<()> {
    enter_namespace()?;
    // Create missing directories: a directory that does not exist cannot be covered, and the
    // command could create it later.
    for path in split.private.iter().filter(|path| !path.exists()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    }
    for directory in tops.iter().flat_map(|top| split.between(top)).filter(|directory| directory.is_dir()) {
        bind(directory)?;
    }
    // Open the kept paths before covering anything, because a covered path cannot be opened, and in
    // this namespace, because a namespace can bind only its own mounts.
    let kept: Vec<(&Path, OwnedFd)> = kept.iter().filter_map(|path| Some((*path, open(path)?))).collect();
    for path in &split.private {
        if !path.is_dir() {
            mount(Some(Path::new("/dev/null")), path, None, libc::MS_BIND, None)?;
            continue;
        }
        let safe = libc::MS_NOSUID | libc::MS_NODEV;
        mount(Some(Path::new("none")), path, Some("tmpfs"), safe, Some("mode=0700,nr_inodes=1k,size=1m"))?;
        for (place, opened) in kept.iter().filter(|(place, _)| place.starts_with(path)) {
            std::fs::create_dir_all(place)?;
            let source = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
            mount(Some(&source), place, None, libc::MS_BIND | libc::MS_REC, None)?;
        }
        mount(None, path, None, libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | safe, None)?;
    }
    Ok(())
}

/// Returns whether this system permits mounts in a new namespace.
pub(in crate::process) fn can_mount() -> bool {
    succeeds_in_child(enter_namespace)
}

/// Runs `attempt` in a child process, and returns whether it succeeds.
pub(super) fn succeeds_in_child(attempt: impl FnOnce() -> io::Result<()>) -> bool {
    // SAFETY: the child makes system calls and allocates little, and then ends.
    match unsafe { libc::fork() } {
        0 => {
            let code = i32::from(attempt().is_err());
            // SAFETY: ends the child without running destructors or exit handlers.
            unsafe { libc::_exit(code) }
        }
        child if child > 0 => {
            let mut status = 0;
            // SAFETY: waits for the child of this process; the pointer is valid for the call.
            unsafe { libc::waitpid(child, &mut status, 0) == child && status == 0 }
        }
        _ => false,
    }
}

/// Enters a new mount namespace, whose mounts do not propagate out of it. Without CAP_SYS_ADMIN,
/// also enters a new user namespace that maps only the current user.
pub(super) fn enter_namespace() -> io::Result<()> {
    let privileged = capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_ADMIN));
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let flags = if privileged { libc::CLONE_NEWNS } else { libc::CLONE_NEWNS | libc::CLONE_NEWUSER };
    // SAFETY: no memory is involved; this process has one thread.
    if unsafe { libc::unshare(flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if !privileged {
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_SLAVE, None)
}

/// Mounts a file or directory on itself. It can no longer be renamed or removed.
pub(super) fn bind(path: &Path) -> io::Result<()> {
    mount(Some(path), path, None, libc::MS_BIND | libc::MS_REC, None)
}

/// Mounts a file or directory on itself, so that it cannot be changed. With `recursive`, this
/// includes what is mounted in it.
pub(super) fn bind_read_only(path: &Path, recursive: bool) -> io::Result<()> {
    bind(path)?;
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    let path = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)?;
    let read_only = libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: mount_setattr(2) reads a C string and a structure of the given size. The system call
    // exists wherever Landlock exists, and unlike a remount it keeps the other flags of the mount.
    let done = unsafe {
        let size = size_of::<libc::mount_attr>();
        libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, path.as_ptr(), flags, &raw const read_only, size)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Invokes mount(2).
fn mount(source: Option<&Path>, target: &Path, kind: Option<&str>, flags: libc::c_ulong, data: Option<&str>) -> io::Result<()> {
    let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::other);
    let source = source.map(|path| text(path.as_os_str().as_bytes())).transpose()?;
    let target = text(target.as_os_str().as_bytes())?;
    let kind = kind.map(|kind| text(kind.as_bytes())).transpose()?;
    let data = data.map(|data| text(data.as_bytes())).transpose()?;
    let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
    // SAFETY: all pointers are null or C strings that live until the call returns.
    let done = unsafe { libc::mount(pointer(&source), target.as_ptr(), pointer(&kind), flags, pointer(&data).cast()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
