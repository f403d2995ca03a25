//! Lists processes and their properties on macOS (libproc.h).

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::process_status::{ProcessStatus, StartTime};

/// Room for processes that start between the two calls of `proc_listallpids`.
const PIDS_EXTRA: usize = 64;
/// The status of a process that has ended and has not been reaped (`SZOMB` in sys/proc.h).
const ZOMBIE: u32 = 5;

pub(in crate::process) fn pids() -> Vec<u32> {
    // SAFETY: a null buffer asks for the number of processes.
    let count = unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) };
    let mut pids = vec![0u32; usize::try_from(count).unwrap_or(0) + PIDS_EXTRA];
    let size = i32::try_from(size_of_val(pids.as_slice())).unwrap_or(i32::MAX);
    // SAFETY: the buffer has `size` bytes, and ids of processes are 32 bits wide.
    let listed = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), size) };
    pids.truncate(usize::try_from(listed).unwrap_or(0));
    pids.retain(|pid| *pid > 0);
    pids
}

/// Reads a structure with properties of a process. `None` if the process does not exist or may not
/// be inspected.
///
/// # Safety
///
/// `T` is the structure of `flavor`.
unsafe fn properties<T>(pid: u32, flavor: libc::c_int) -> Option<T> {
    let pid = i32::try_from(pid).ok()?;
    let size = i32::try_from(size_of::<T>()).ok()?;
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the buffer has `size` bytes; the call fills all of them or returns less.
    let written = unsafe { libc::proc_pidinfo(pid, flavor, 0, value.as_mut_ptr().cast(), size) };
    // SAFETY: the structures consist of numbers and arrays of them, and were filled.
    (written == size).then(|| unsafe { value.assume_init() })
}

fn description(pid: u32) -> Option<libc::proc_bsdinfo> {
    // SAFETY: the structure is that of the flavor.
    unsafe { properties(pid, libc::PROC_PIDTBSDINFO) }
}

pub(in crate::process) fn status(pid: u32) -> Option<ProcessStatus> {
    let process = description(pid)?;
    let started = StartTime(process.pbi_start_tvsec * 1_000_000 + process.pbi_start_tvusec);
    Some(ProcessStatus { zombie: process.pbi_status == ZOMBIE, parent: process.pbi_ppid, started })
}

/// Returns the start time of a process that starts now, in microseconds since 1970.
pub(in crate::process) fn start_time_now() -> StartTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    StartTime(now.and_then(|now| u64::try_from(now.as_micros()).ok()).unwrap_or(u64::MAX))
}

/// Returns the name of a process's program, or an empty text if the process has ended.
pub(in crate::process) fn name(pid: u32) -> Vec<u8> {
    let comm = description(pid).map(|process| process.pbi_comm.map(|byte| byte as u8));
    let comm = comm.unwrap_or_default();
    CStr::from_bytes_until_nul(&comm).map(|name| name.to_bytes().to_vec()).unwrap_or_default()
}

/// Returns the working directory of a process. `None` if this process may not inspect it.
pub(in crate::process) fn directory(pid: u32) -> Option<PathBuf> {
    // SAFETY: the structure is that of the flavor.
    let paths: libc::proc_vnodepathinfo = unsafe { properties(pid, libc::PROC_PIDVNODEPATHINFO) }?;
    let path: Vec<u8> = paths.pvi_cdir.vip_path.as_flattened().iter().map(|byte| *byte as u8).collect();
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    Some(OsStr::from_bytes(path.to_bytes()).into())
}

/// `struct vnode_fdinfo` of sys/proc_info.h.
#[repr(C)]
struct FileDescription {
    /// `struct proc_fileinfo`.
    flags: [u32; 2],
    offset: libc::off_t,
    kind: [u32; 2],
    vnode: libc::vnode_info,
}

/// `PROC_PIDFDVNODEINFO` of sys/proc_info.h.
const FILE_DESCRIPTION: libc::c_int = 1;

/// Returns the device and the inode of a file that a process has open. `None` if it does not, or if
/// this process may not inspect it.
pub(in crate::process) fn open_file(pid: u32, descriptor: i32) -> Option<(u64, u64)> {
    let pid = i32::try_from(pid).ok()?;
    let size = i32::try_from(size_of::<FileDescription>()).ok()?;
    let mut file = std::mem::MaybeUninit::<FileDescription>::zeroed();
    // SAFETY: the buffer has `size` bytes; the call fills all of them or returns less.
    let written = unsafe { libc::proc_pidfdinfo(pid, descriptor, FILE_DESCRIPTION, file.as_mut_ptr().cast(), size) };
    // SAFETY: the structure consists of numbers and arrays of them, and was filled.
    let file = (written == size).then(|| unsafe { file.assume_init() })?.vnode.vi_stat;
    Some((file.vst_dev.into(), file.vst_ino))
}

pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    // SAFETY: the structure is that of the flavor.
    let task: libc::proc_taskinfo = unsafe { properties(pid, libc::PROC_PIDTASKINFO) }?;
    Some(task.pti_resident_size)
}
