//! Lists processes and their properties from /proc (proc(5)).

use std::fs;
use std::path::PathBuf;

use super::process_status::{ProcessStatus, StartTime};

pub(in crate::process) fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Reads fields 3, 4 and 22 of /proc/PID/stat (proc(5)). The second field, the program's name, may
/// contain any character, including parentheses.
pub(in crate::process) fn status(pid: u32) -> Option<ProcessStatus> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_ascii_whitespace();
    let zombie = fields.next()? == "Z";
    let parent = fields.next()?.parse().ok()?;
    let started = StartTime(fields.nth(17)?.parse().ok()?);
    Some(ProcessStatus { zombie, parent, started })
}

/// Returns the start time of a process that starts now, in clock ticks since the boot.
pub(in crate::process) fn start_time_now() -> StartTime {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = uptime.split_ascii_whitespace().next().and_then(|seconds| seconds.parse::<f64>().ok());
    let ticks = |seconds: f64| (seconds * rustix::param::clock_ticks_per_second() as f64) as u64;
    StartTime(seconds.map_or(u64::MAX, ticks))
}

/// Returns the name of a process's program, or an empty text if the process has ended.
pub(in crate::process) fn name(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/comm")).unwrap_or_default().trim_ascii_end().to_vec()
}

/// Returns the working directory of a process. `None` if this process may not inspect it.
pub(in crate::process) fn directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Returns the device and the inode of a file that a process has open. `None` if it does not, or if
/// this process may not inspect it.
#[cfg(posix)]
pub(in crate::process) fn open_file(pid: u32, descriptor: i32) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    let file = fs::metadata(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    Some((file.dev(), file.ino()))
}

pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
