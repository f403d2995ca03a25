//! The text of the composer that was not sent, kept in a private file for each session, so that a
//! crash does not lose it.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::workspace::create_private_dir;

/// How long after a change the text is written.
const DELAY: Duration = Duration::from_secs(1);

/// The draft of the session.
pub(crate) struct Draft {
    directory: PathBuf,
    file: PathBuf,
    written: String,
    /// When the text changed that was not written yet.
    changed: Option<Instant>,
}

impl Draft {
    /// Opens the draft in a directory. Returns it with its text.
    pub(crate) fn open(directory: PathBuf) -> (Draft, String) {
        let file = directory.join("text");
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        (Draft { directory, file, written: written.clone(), changed: None }, written)
    }

    /// Returns when [`Draft::save`] writes the text.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.changed.map(|changed| changed + DELAY)
    }

    /// Records that the text of the composer may have changed.
    pub(crate) fn change(&mut self) {
        self.changed.get_or_insert_with(Instant::now);
    }

    /// Writes the text if it differs from the file. A failure is logged, because the text is still
    /// in the composer.
    pub(crate) fn save(&mut self, text: &str) {
        self.changed = None;
        if text == self.written {
            return;
        }
        let saved = match text.trim().is_empty() {
            true => fs::remove_file(&self.file).or_else(|error| match error.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(Error::io("removing a draft", error)),
            }),
            false => create_private_dir(&self.directory).and_then(|()| {
                // Not synced to the disk: a crash of nuncio loses nothing.
                let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&self.file);
                file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| Error::io("writing a draft", error))
            }),
        };
        match saved {
            Ok(()) => self.written = text.into(),
            Err(error) => tracing::warn!(%error, file = %self.file.display(), "a draft was not written"),
        }
    }
}
