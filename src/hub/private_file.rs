//! Private files for programs that nuncio starts. Each is removed when its value is dropped.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::workspace::{create_private_dir, read_small_text, replace_private};

/// A file that only the user can read.
pub(super) struct PrivateFile {
    path: PathBuf,
    content: String,
}

impl PrivateFile {
    /// Writes the file, or replaces it.
    pub(super) fn write(path: PathBuf, content: String) -> Result<PrivateFile> {
        create_private_dir(path.parent().unwrap_or(&path))?;
        let written = replace_private(&path, content.as_bytes());
        written.map_err(|error| Error::io(format_args!("writing {}", path.display()), error))?;
        Ok(PrivateFile { path, content })
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // Keep a file that the next program of the session has replaced.
        if read_small_text(&self.path).is_ok_and(|content| content == self.content) {
            // Ignore a failure: the next program of the session replaces the file.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
