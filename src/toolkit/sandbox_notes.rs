//! Notes on the sandbox in the results of commands.

use crate::process::{ExitStatus, Sandbox};

/// Messages of git and other programs about a read-only control file. Some git commands print one
/// and end with exit code 0.
const CONTROL_FILE_ERRORS: [&str; 4] =
    ["could not lock config file", "could not write config file", "Read-only file system", "Device or resource busy"];

/// Messages about a full disk, which no sandbox causes (ENOSPC, EDQUOT).
const FULL_DISK_ERRORS: [&str; 4] = ["No space left on device", "Disk quota exceeded", "ENOSPC", "disk is full"];

/// Returns notes on the sandbox for the model, one per line: protections that this system does not
/// support, control files that were restored and, if the command failed and the disk was not full,
/// what the sandbox permits.
/// `output` is what the command printed.
pub(crate) fn sandbox_notes(sandbox: &Sandbox, status: &ExitStatus, output: &str) -> String {
    let mut notes = String::new();
    if let Some(unsupported) = &status.unsupported {
        notes = format!("[sandbox: not blocked on this system: {unsupported}]\n");
    }
    if let Some(restored) = &status.restored {
        notes += &format!("[sandbox: commands cannot change these files, so they were restored: {restored}]\n");
    }
    if let Some(created) = &status.created {
        notes += &format!("[sandbox: {created}]\n");
    }
    let is_protected = !sandbox.writable.is_empty() && !sandbox.git_config;
    if is_protected && CONTROL_FILE_ERRORS.iter().any(|error| output.contains(error)) {
        notes += "[sandbox: git's configuration and hooks, and .nuncio, are read-only, so that a part of the command may not have \
                  been done; git_branch sets upstreams and remotes]\n";
    }
    if status.code != 0 && !FULL_DISK_ERRORS.iter().any(|error| output.contains(error)) {
        let mode = if sandbox.writable.is_empty() { "read-only" } else { "workspace-write" };
        let writable: String = sandbox.writable.iter().map(|path| format!("{}, ", path.display())).collect();
        let network = if sandbox.network { "network, but no unix sockets" } else { "no network, no sockets" };
        let private = if sandbox.private.is_empty() {
            ""
        } else {
            "; nuncio's own directories cannot be read, and those above them cannot be listed"
        };
        notes += &format!("[sandbox {mode}: writes only below {writable}$TMPDIR; {network}{private}]\n");
    }
    notes
}
