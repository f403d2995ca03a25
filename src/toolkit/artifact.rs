//! Artifacts: numbered files that tools keep for their session, readable only by the user.

use std::io::{self, Write};
use std::path::PathBuf;

use super::context::ToolContext;
use super::output::ToolError;
use crate::workspace::{create_private, create_private_dir};

/// Writes `bytes` to `STEM-N.EXTENSION` with the first free number N. Blocks the thread.
pub(crate) fn keep(context: &ToolContext, stem: &str, extension: &str, bytes: &[u8]) -> Result<PathBuf, ToolError> {
    let directory = &context.workspace.artifacts;
    let written = || -> Result<PathBuf, crate::error::Error> {
        create_private_dir(directory)?;
        let mut number = 1;
        loop {
            let path = directory.join(format!("{stem}-{number}.{extension}"));
            match create_private(&path).and_then(|mut file| file.write_all(bytes)) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(crate::error::Error::io(format_args!("writing {}", path.display()), error)),
            }
        }
    };
    Ok(written()?)
}
