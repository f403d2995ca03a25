//! The files of a session: attachments of messages and artifacts of tools, each kind in a flat
//! directory. File names cannot refer to paths outside of that directory.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::workspace::{self, create_first, create_private_dir, is_zip, media_type};

/// Maximum length of an attachment's file name, in bytes.
const FILE_NAME_BYTES_MAX: usize = 255;
/// The directory of the extracted texts below that of the attachments. Hidden, so that it is no
/// attachment.
pub(crate) const ATTACHMENT_TEXTS: &str = ".text";

/// One flat directory of session files.
pub(crate) struct SessionFiles {
    dir: PathBuf,
}

/// A listed file.
pub(crate) struct SessionFile {
    pub name: String,
    pub size: u64,
    pub mime_type: &'static str,
    /// Milliseconds since the Unix epoch.
    pub modified_ms: u64,
}

impl SessionFiles {
    /// Creates a handle to the files in `dir`. The directory is created with the first file.
    pub(crate) fn new(dir: PathBuf) -> SessionFiles {
        SessionFiles { dir }
    }

    /// Returns the path of the file `name`, whether or not the file exists.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Stores `bytes` atomically as `name`, or under a numbered name if `name` exists. Returns the
    /// name of the stored file.
    pub(crate) fn add(&self, name: &str, bytes: &[u8]) -> Result<String> {
        check_name(name)?;
        if bytes.len() > limits::ATTACHMENT_BYTES_MAX {
            let most = limits::ATTACHMENT_BYTES_MAX >> 20;
            return Err(Error::new(Kind::TooLarge, format!("attachment {name} is larger than {most} MiB")));
        }
        create_private_dir(&self.dir)?;
        let written = create_first(&self.dir, (1..).map(|number| numbered(name, number)), bytes);
        written.map_err(|error| Error::io(format_args!("writing attachment {name}"), error))
    }

    /// Removes a file that was added.
    pub(crate) fn remove(&self, name: &str) {
        let _ = fs::remove_file(self.path(name));
    }

    /// Reads a file. A symlink counts as absent.
    pub(crate) fn get(&self, name: &str) -> Result<Vec<u8>> {
        self.read(name, u64::MAX)
    }

    /// Reads at most `most` bytes of a file.
    pub(crate) fn read(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        check_name(name)?;
        let missing = || Error::not_found(format!("file {name} not found"));
        let dir = fs::canonicalize(&self.dir).map_err(|_| missing())?;
        let file = workspace::open(&dir.join(name)).map_err(|_| missing())?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(|error| Error::io(format_args!("reading file {name}"), error))?;
        Ok(bytes)
    }

    /// Lists all files, sorted by name.
    pub(crate) fn list(&self) -> Result<Vec<SessionFile>> {
        let failed = |error| Error::io(format_args!("listing {}", self.dir.display()), error);
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let Some(name) = entry.file_name().to_str().filter(|name| check_name(name).is_ok()).map(String::from) else { continue };
            // The file may have been removed since the directory was read.
            let Some(metadata) = entry.metadata().ok().filter(fs::Metadata::is_file) else { continue };
            let mut head = self.read(&name, limits::BINARY_PROBE_BYTES as u64);
            if head.as_ref().is_ok_and(|head| is_zip(head)) {
                head = self.get(&name);
            }
            let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            found.push(SessionFile {
                mime_type: head.map_or("application/octet-stream", |head| media_type(&head)),
                name,
                size: metadata.len(),
                modified_ms: modified.map_or(0, |since| since.as_millis() as u64),
            });
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }
}

/// Checks that `name` is a single path component that is not hidden.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let wrong = |what: &str| Err(Error::invalid_params(format!("name: {what}")));
    match name {
        "" => wrong("is empty"),
        _ if name.starts_with('.') => wrong("starts with a dot"),
        _ if name.contains('/') || name.contains("..") => wrong("must not contain / or .."),
        _ if name.chars().any(char::is_control) => wrong("contains control characters"),
        _ if name.len() > FILE_NAME_BYTES_MAX => wrong("is too long"),
        _ => Ok(()),
    }
}

/// Returns `img.png`, `img-2.png`, … with the stem truncated to the length limit.
fn numbered(name: &str, number: u32) -> String {
    if number == 1 {
        return name.into();
    }
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if extension.len() < 16 => (stem, format!("-{number}.{extension}")),
        _ => (name, format!("-{number}")),
    };
    let room = stem.floor_char_boundary(FILE_NAME_BYTES_MAX - extension.len());
    format!("{}{extension}", &stem[..room])
}
