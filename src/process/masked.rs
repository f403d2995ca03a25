//! Covers nuncio's own directories in a mount namespace. It is for roots that contain them: below a directory that Landlock allows as a
//! whole, nothing else hides a part. It needs a capability or a user namespace, which not every system gives.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, capabilities};

use super::private::{Split, open};

/// Covers the private paths of `split` for this process and all that it starts; `kept` stay what they are although they may be below.
/// What lies between `tops` and a private path cannot be renamed any more. False: this system does not let us, and nothing changed.
pub(super) fn mask(split: &Split, tops: &[PathBuf], kept: &[&Path]) -> bool {
    // Half of it could not be taken back: a child tries first.
    // SAFETY: this process has one thread, and the child only makes system calls and ends.
    let tried = match unsafe { libc::fork() } {
        0 => {
            let code = i32::from(cover(split, tops, kept).is_err());
            // SAFETY: it ends the child without anything of ours being run.
            unsafe { libc::_exit(code) }
        }
        child if child > 0 => {
            let mut status = 0;
            // SAFETY: waits for our own child; the pointer is valid for the call.
            unsafe { libc::waitpid(child, &mut status, 0) == child && status == 0 }
        }
        _ => false,
    };
    tried && cover(split, tops, kept).is_ok()
}

fn cover(split: &Split, tops: &[PathBuf], kept: &[&Path]) -> io::Result<()> {
    enter_namespace()?;
    // What others mount or unmount is still seen here, and nothing of ours by them.
    mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_SLAVE, None)?;
    for directory in tops.iter().flat_map(|top| split.between(top)).filter(|directory| directory.is_dir()) {
        mount(Some(directory), directory, None, libc::MS_BIND | libc::MS_REC, None)?;
    }
    // Opened here, as what is covered cannot be, and only what is of this namespace can be mounted.
    let kept: Vec<(&Path, OwnedFd)> = kept.iter().filter_map(|path| Some((*path, open(path)?))).collect();
    for path in split.private.iter().filter(|path| path.exists()) {
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

/// A mount namespace, in a user namespace with the same user where we may not make one otherwise.
fn enter_namespace() -> io::Result<()> {
    let may = capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_ADMIN));
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let flags = if may { libc::CLONE_NEWNS } else { libc::CLONE_NEWNS | libc::CLONE_NEWUSER };
    // SAFETY: no memory is involved; this process has one thread.
    if unsafe { libc::unshare(flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if !may {
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    Ok(())
}

/// mount(2).
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
