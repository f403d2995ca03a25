//! What a supervisor says on its lifeline when its command has ended: a code, a text about the sandbox, and what a shell left.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::ExitStatus;
use super::exported;
use crate::error::{Error, Kind, Result};

/// Instead of a code: the command was not started, because it could not be confined.
const REFUSED: i32 = i32::MIN;

/// `note` is what the sandbox lacks, or none; `shell` is what the script of a shell wrote.
pub(super) fn ended(code: i32, note: &str, shell: &[u8]) -> Vec<u8> {
    let mut said = code.to_ne_bytes().to_vec();
    said.extend_from_slice(&(note.len() as u32).to_ne_bytes());
    said.extend_from_slice(note.as_bytes());
    said.extend_from_slice(shell);
    said
}

pub(super) fn refused(why: &str) -> Vec<u8> {
    ended(REFUSED, why, &[])
}

/// None: not whole, as when the supervisor was killed.
pub(super) fn read(said: &[u8]) -> Option<Result<ExitStatus>> {
    let (code, rest) = said.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (note, shell) = rest.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
    let (code, note) = (i32::from_ne_bytes(*code), String::from_utf8_lossy(note).into_owned());
    if code == REFUSED {
        let refused = Error::new(Kind::Forbidden, format!("the command was not run: the sandbox cannot be applied: {note}"));
        return Some(Err(refused.hint("--sandbox off, or `mode = \"off\"` under [sandbox], runs commands without one")));
    }
    let mut status = ExitStatus { code, lacks: Some(note).filter(|note| !note.is_empty()), ..ExitStatus::default() };
    // What it exported at its beginning, where it ended, what it exported then; each with a NUL behind it.
    if let [before, cwd, after, _] = shell.split(|byte| *byte == 0).collect::<Vec<_>>().as_slice() {
        let path = cwd.strip_suffix(b"\n").filter(|path| path.starts_with(b"/"));
        status.cwd = path.map(|path| PathBuf::from(OsString::from_vec(path.to_vec())));
        status.exported = Some(exported::changes(before, after));
    }
    Some(Ok(status))
}
