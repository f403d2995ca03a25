//! `nuncio run --output-last-message`: writes the last message of the run to a file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::error::{Error, Result};
use crate::workspace::{FileChange, commit};

/// A file that receives the last message.
pub(super) struct MessageFile {
    /// The path as given, for errors.
    given: PathBuf,
    /// The file to write. Only a pipe or a device may be behind a symlink.
    path: PathBuf,
}

impl MessageFile {
    /// Returns an error if the file cannot be written. Changes nothing.
    pub(super) fn check(given: &Path) -> Result<MessageFile> {
        let path = writable(given).map_err(|error| {
            let reason = match error.kind() {
                io::ErrorKind::NotFound => "its directory does not exist".to_owned(),
                _ => error.to_string(),
            };
            Error::invalid_params(format!("--output-last-message {}: {reason}", given.display()))
        })?;
        Ok(MessageFile { given: given.to_owned(), path })
    }

    /// Writes the message. A regular file is replaced atomically and keeps its permissions.
    pub(super) fn write(&self, message: &str) -> Result<()> {
        let written = match fs::metadata(&self.path) {
            // A pipe or a device, such as /dev/stdout.
            Ok(metadata) if !metadata.is_file() => {
                File::options().write(true).open(&self.path).and_then(|mut file| file.write_all(message.as_bytes()))
            }
            _ => commit(&[FileChange::Put { real: &self.path, bytes: message.as_bytes(), like: None }])
                .map_err(|failed| failed.error),
        };
        written.map_err(|error| Error::io(format_args!("writing the last message to {}", self.given.display()), error))
    }
}

/// Returns the path of the file, which exists or can be created. Follows symlinks to files.
fn writable(given: &Path) -> io::Result<PathBuf> {
    let may_write = |path: &Path| accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS);
    let path = match fs::metadata(given) {
        Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if !metadata.is_file() => {
            may_write(given)?;
            return Ok(given.to_owned());
        }
        Ok(_) => {
            may_write(given)?;
            fs::canonicalize(given)?
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) if given.is_symlink() => return Err(io::Error::other("it is a symlink to a missing file")),
        Err(_) => {
            let name = given.file_name().ok_or(io::ErrorKind::IsADirectory)?;
            let directory = given.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            fs::canonicalize(directory)?.join(name)
        }
    };
    may_write(path.parent().ok_or(io::ErrorKind::IsADirectory)?)?;
    Ok(path)
}
