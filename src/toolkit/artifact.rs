//! Artifacts: numbered files that tools keep for their session, readable only by the user.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::context::ToolContext;
use super::output::ToolError;
use crate::error::{Error, Result};
use crate::workspace::{create_private, create_private_dir};

/// Writes `bytes` to `STEM-N.EXTENSION` with the first free number N. Blocks the thread.
pub(crate) fn keep(context: &ToolContext, stem: &str, extension: &str, bytes: &[u8]) -> std::result::Result<PathBuf, ToolError> {
    Ok(keep_in(&context.workspace.artifacts, stem, extension, bytes)?)
}

/// Writes `bytes` to a new file in `directory`, as [`keep`] does in the session's directory for
/// artifacts. Creates the directory if it is missing.
pub(crate) fn keep_in(directory: &Path, stem: &str, extension: &str, bytes: &[u8]) -> Result<PathBuf> {
    create_private_dir(directory)?;
    let mut number = 1;
    loop {
        let path = directory.join(format!("{stem}-{number}.{extension}"));
        match create_private(&path).and_then(|mut file| file.write_all(bytes)) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(Error::io(format_args!("writing {}", path.display()), error)),
        }
    }
}

/// Returns the path of the file for the output of a command of the call: `STEM-CALL.log`.
pub(crate) fn log_path(context: &ToolContext, stem: &str) -> PathBuf {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() || "-_".contains(character) { character } else { '_' }
    };
    let name: String = context.call_id.as_str().chars().map(plain).collect();
    context.workspace.artifacts.join(format!("{stem}-{name}.log"))
}
