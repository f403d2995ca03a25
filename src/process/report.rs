//! The report that a supervisor sends on its lifeline: at once its process id, then the process id
//! of its command, and when the command has ended the exit code, a note about the sandbox, and the
//! final directory and variables of a shell.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::exported::{self, ExportedChange};
use crate::error::{Error, Kind, Result};

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitStatus {
    /// Exit status, or 128 + the number of the signal that killed the command.
    pub code: i32,
    /// The final directory of a shell; `None` if the shell did not report it.
    pub cwd: Option<PathBuf>,
    /// The exported variables that a shell changed; `None` if they were not reported, for example
    /// after `exec`.
    pub exported: Option<Vec<ExportedChange>>,
    /// The restrictions of the sandbox that this kernel does not support.
    pub unsupported: Option<String>,
    /// The control files that the command changed, and that were restored after it.
    pub restored: Option<String>,
    /// Descriptions of control files that the command created.
    pub created: Option<String>,
}

impl ExitStatus {
    /// Creates an exit status without a directory and variables.
    pub(crate) fn from_code(code: i32) -> ExitStatus {
        ExitStatus { code, ..ExitStatus::default() }
    }
}

/// Maximum size of a list of files, in bytes.
const FILES_BYTES_MAX: usize = 8 << 10;

/// Value sent instead of an exit code if the command was not started because it could not be
/// sandboxed.
const REFUSED: i32 = i32::MIN;

/// Value sent instead of an exit code if the lease of this node ended before the command.
const LEASE_ENDED: i32 = i32::MIN + 1;

/// Encodes the first part of a report: the process id of the supervisor.
pub(super) fn started(pid: u32) -> [u8; 4] {
    pid.to_ne_bytes()
}

/// Decodes the process id of the supervisor. `None` if it has not been received.
pub(super) fn supervisor(report: &[u8]) -> Option<u32> {
    report.first_chunk::<4>().map(|pid| u32::from_ne_bytes(*pid))
}

/// Encodes the second part: the process id of the command.
pub(super) fn command_started(pid: u32) -> [u8; 4] {
    pid.to_ne_bytes()
}

/// Encodes the second part for a command that was not started.
pub(super) const NO_COMMAND: [u8; 4] = [0; 4];

/// Decodes the process id of the command: 0 if it was not started. `None` if it has not been
/// received.
pub(super) fn command(report: &[u8]) -> Option<u32> {
    report.get(4..).and_then(supervisor)
}

/// Encodes the third part of the report of an ended command. `note` names the unsupported
/// restrictions of the sandbox; `shell` is what the shell's script wrote to the report file.
pub(super) fn ended(code: i32, note: &str, shell: &[u8]) -> Vec<u8> {
    [code.to_ne_bytes().as_slice(), &with_length(note.as_bytes()), &with_length(shell)].concat()
}

/// Encodes the last part, which the fork server appends: the restored files, and what the command
/// created, each at most [`FILES_BYTES_MAX`].
pub(super) fn files(restored: &str, created: &str) -> Vec<u8> {
    [restored, created].map(|text| with_length(&text.as_bytes()[..text.len().min(FILES_BYTES_MAX)])).concat()
}

fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_ne_bytes(), bytes].concat()
}

/// Encodes the third part of the report of a command that was not started.
pub(super) fn refused(why: &str) -> Vec<u8> {
    ended(REFUSED, why, &[])
}

/// Encodes the third part of the report of a command that was not started, or was ended, because
/// the lease of this node ended. `message` is the error message.
pub(super) fn lease_ended(message: &str) -> Vec<u8> {
    ended(LEASE_ENDED, message, &[])
}

/// Decodes a report. `None` if it is incomplete because the supervisor was killed.
pub(super) fn read(report: &[u8]) -> Option<Result<ExitStatus>> {
    let (_pids, rest) = report.split_first_chunk::<8>()?;
    let (code, rest) = rest.split_first_chunk::<4>()?;
    let (note, rest) = take(rest)?;
    let (shell, rest) = take(rest)?;
    let (restored, rest) = take(rest).unwrap_or_default();
    let (created, _) = take(rest).unwrap_or_default();
    let [note, restored, created] = [note, restored, created].map(text);
    let code = i32::from_ne_bytes(*code);
    if code == REFUSED {
        let note = note.unwrap_or_default();
        let refused = Error::new(Kind::Forbidden, format!("the command was not run: the sandbox cannot be applied: {note}"));
        return Some(Err(refused.hint("--sandbox off, or `mode = \"off\"` under [sandbox], runs commands without one")));
    }
    if code == LEASE_ENDED {
        return Some(Err(Error::new(Kind::Internal, note.unwrap_or_default())));
    }
    let mut status = ExitStatus { code, unsupported: note, restored, created, ..ExitStatus::default() };
    // The variables exported at the start, the final directory and the variables exported at the
    // end, each followed by a NUL.
    if let [before, cwd, after, _] = shell.split(|byte| *byte == 0).collect::<Vec<_>>().as_slice() {
        let path = cwd.strip_suffix(b"\n").filter(|path| path.starts_with(b"/"));
        status.cwd = path.map(|path| PathBuf::from(OsString::from_vec(path.to_vec())));
        status.exported = Some(exported::changes(before, after));
    }
    Some(Ok(status))
}

/// Decodes bytes with their length, and returns the rest.
fn take(report: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = report.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_ne_bytes(*length) as usize)
}

/// Decodes a text, which is `None` if it is empty.
fn text(bytes: &[u8]) -> Option<String> {
    Some(String::from_utf8_lossy(bytes).into_owned()).filter(|text| !text.is_empty())
}
