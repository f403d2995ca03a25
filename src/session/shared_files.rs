//! Attachments, artifacts and recorded requests in a store with nodes. All nodes read and write
//! them as rows of the database. A node also writes them to its disk before it uses them, because
//! tools read files by path.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::files::{ATTACHMENT_TEXTS, check_name};
use crate::context::request_record::{RecordedText, digest_of};
use crate::error::{Error, Result};
use crate::event::Body;
use crate::id::SessionId;
use crate::store::{Store, StoredFile};
use crate::task;
use crate::workspace::{create_private, create_private_dir, replace_file};

/// The directory of artifacts, in the paths of rows.
pub(crate) const ARTIFACTS: &str = "artifacts";
/// The directory of attachments, in the paths of rows.
pub(crate) const ATTACHMENTS: &str = "attachments";
/// The directory of the texts of attachments, in the paths of rows.
pub(crate) const TEXTS: &str = "texts";
/// The directory of what the log does not have of model requests, in the paths of rows.
pub(crate) const REQUESTS: &str = "requests";
const DIRECTORIES: [&str; 4] = [ARTIFACTS, ATTACHMENTS, TEXTS, REQUESTS];
/// The directories of the data directory with a subdirectory per session; that of artifacts is the
/// first one.
pub(crate) const SESSION_DIRECTORIES: [&str; 4] = [ARTIFACTS, ATTACHMENTS, "drafts", REQUESTS];
/// Maximum size of an artifact in the database, in bytes. Commands keep at most 16 MiB of output.
const ROW_BYTES_MAX: u64 = 64 << 20;

/// The files of sessions, as rows and on the disk of this machine. In a store without nodes, whose
/// files are only on disk, the functions do nothing.
pub(crate) struct SharedFiles {
    store: Store,
    /// The data directory.
    dir: PathBuf,
}

impl SharedFiles {
    /// Returns the files of the sessions of `store`, with the data directory `dir`.
    pub(crate) fn new(store: Store, dir: &Path) -> SharedFiles {
        SharedFiles { store, dir: dir.to_owned() }
    }

    /// Writes the new and changed files in one directory of a session to the database.
    pub(crate) async fn store(&self, id: &SessionId, directory: &'static str) -> Result<()> {
        if !self.store.has_nodes() {
            return Ok(());
        }
        let place = self.place(id, directory)?;
        let found = task::blocking("listing files", move || list(&place)).await?;
        if found.is_empty() {
            return Ok(());
        }
        let stored = self.store.files(id).await?.into_iter().map(|file| (file.path, file.size));
        let stored: HashMap<String, u64> = stored.collect();
        for (name, file, size) in found {
            let path = format!("{directory}/{name}");
            if stored.get(&path) == Some(&size) {
                continue;
            }
            if size > ROW_BYTES_MAX {
                tracing::warn!(session = %id, path, size, "a file is too large for the database");
                continue;
            }
            let content =
                tokio::fs::read(&file).await.map_err(|error| Error::io(format_args!("reading {}", file.display()), error))?;
            self.store.put_file(id, &path, &content, true).await?;
        }
        Ok(())
    }

    /// Writes a new file of a session to the database. Returns false if another node has written a
    /// file with this name.
    pub(crate) async fn add(&self, id: &SessionId, directory: &'static str, name: &str, content: &[u8]) -> Result<bool> {
        self.store.put_file(id, &format!("{directory}/{name}"), content, false).await
    }

    /// Writes texts of model requests, each to a file whose name is its digest.
    pub(crate) async fn keep_requests(&self, id: &SessionId, texts: Vec<RecordedText>) -> Result<()> {
        if self.store.has_nodes() {
            for RecordedText { digest, text } in &texts {
                self.add(id, REQUESTS, digest, text.as_bytes()).await?;
            }
        }
        let place = self.place(id, REQUESTS)?;
        task::blocking("recording a model request", move || {
            create_private_dir(&place)?;
            texts.iter().try_for_each(|RecordedText { digest, text }| keep(&place.join(digest), text))
        })
        .await?
    }

    /// Returns a text of a model request; `None` if it is not stored.
    pub(crate) async fn request_text(&self, id: &SessionId, digest: &str) -> Result<Option<String>> {
        check_name(digest)?;
        let file = self.place(id, REQUESTS)?.join(digest);
        let mut text = tokio::fs::read_to_string(&file).await.ok();
        if text.is_none() && self.store.has_nodes() {
            let stored = self.store.file(id, &format!("{REQUESTS}/{digest}")).await?;
            text = stored.and_then(|content| String::from_utf8(content).ok());
        }
        Ok(text.filter(|text| digest_of(text) == digest))
    }

    /// Copies the texts of the model requests of a session to its fork.
    pub(crate) async fn fork_requests(&self, parent: &SessionId, fork: &SessionId) -> Result<()> {
        self.fetch(parent, Some(&[REQUESTS])).await?;
        let (source, target) = (self.place(parent, REQUESTS)?, self.place(fork, REQUESTS)?);
        task::blocking("copying the model requests", move || copy_new(&source, &target)).await??;
        self.store(fork, REQUESTS).await
    }

    /// Writes the files of a session that this machine lacks to its disk; with `only`, those in
    /// these directories.
    pub(crate) async fn fetch(&self, id: &SessionId, only: Option<&[&str]>) -> Result<()> {
        for StoredFile { path, size } in self.store.files(id).await? {
            let Some((directory, name)) = path.split_once('/').filter(|(_, name)| check_name(name).is_ok()) else { continue };
            if only.is_some_and(|only| !only.contains(&directory)) {
                continue;
            }
            // A newer version may have added directories.
            let Ok(place) = self.place(id, directory) else { continue };
            let file = place.join(name);
            // A longer file is the output of a command of this node, which is written to the
            // database when the call ends.
            if tokio::fs::symlink_metadata(&file).await.is_ok_and(|metadata| metadata.len() >= size) {
                continue;
            }
            let Some(content) = self.store.file(id, &path).await? else { continue };
            let name = name.to_owned();
            task::blocking("writing a file", move || replace(&place, &name, &content)).await??;
        }
        Ok(())
    }

    /// Removes artifacts of a session from the database.
    pub(super) async fn remove_artifacts(&self, id: &SessionId, names: &[String]) -> Result<()> {
        let paths: Vec<String> = names.iter().map(|name| format!("{ARTIFACTS}/{name}")).collect();
        self.store.remove_files(id, &paths).await
    }

    /// Returns the path of one of [`DIRECTORIES`] of a session on this machine. Fails for other
    /// names, and for a session id that is not a file name, because users of the database must not
    /// be able to write other files of this machine.
    fn place(&self, id: &SessionId, directory: &str) -> Result<PathBuf> {
        check_name(id.as_str())?;
        Ok(match directory {
            ARTIFACTS => self.dir.join(ARTIFACTS).join(id.as_str()),
            REQUESTS => self.dir.join(REQUESTS).join(id.as_str()),
            ATTACHMENTS => self.dir.join(ATTACHMENTS).join(id.as_str()),
            TEXTS => self.dir.join(ATTACHMENTS).join(id.as_str()).join(ATTACHMENT_TEXTS),
            _ => return Err(Error::internal(format!("session {id} has files in the unknown directory {directory}"))),
        })
    }
}

/// Returns whether tools may have written artifacts before this event.
pub(in crate::session) fn follows_artifacts(body: &Body) -> bool {
    matches!(
        body,
        Body::ToolCompleted { .. }
            | Body::ContextPruned { .. }
            | Body::TurnCompleted { .. }
            | Body::TurnFailed { .. }
            | Body::TurnCancelled { .. }
    )
}

/// Copies the files of a session to another store. Each store has a data directory if its files are
/// only there.
pub(crate) async fn copy_files(id: &SessionId, from: (&Store, Option<&Path>), to: (&Store, Option<&Path>)) -> Result<()> {
    match (from, to) {
        ((from, None), (to, None)) => {
            let held = to.files(id).await?;
            for file in from.files(id).await?.into_iter().filter(|file| !held.contains(file)) {
                let content = from.file(id, &file.path).await?.unwrap_or_default();
                to.put_file(id, &file.path, &content, true).await?;
            }
        }
        ((from, None), (_, Some(dir))) => SharedFiles::new(from.clone(), dir).fetch(id, None).await?,
        ((_, Some(dir)), (to, None)) => {
            let files = SharedFiles::new(to.clone(), dir);
            for directory in DIRECTORIES {
                files.store(id, directory).await?;
            }
        }
        ((store, Some(from)), (_, Some(to))) => {
            let [from, to] = [from, to].map(|dir| SharedFiles::new(store.clone(), dir));
            for directory in DIRECTORIES {
                let (source, target) = (from.place(id, directory)?, to.place(id, directory)?);
                task::blocking("copying files", move || copy_new(&source, &target)).await??;
            }
        }
    }
    Ok(())
}

/// Writes a text to a file that has it, or a part of it after a crash, or is absent.
fn keep(file: &Path, text: &str) -> Result<()> {
    let failed = |error| Error::io(format_args!("writing {}", file.display()), error);
    match fs::symlink_metadata(file) {
        Ok(metadata) if metadata.len() == text.len() as u64 => return Ok(()),
        Ok(_) => fs::remove_file(file).map_err(failed)?,
        Err(_) => {}
    }
    create_private(file).and_then(|mut created| created.write_all(text.as_bytes())).map_err(failed)
}

/// Copies the files of a directory that another one lacks.
fn copy_new(source: &Path, target: &Path) -> Result<()> {
    for (name, file, _) in list(source) {
        if !target.join(&name).exists() {
            let content = fs::read(&file).map_err(|error| Error::io(format_args!("reading {}", file.display()), error))?;
            replace(target, &name, &content)?;
        }
    }
    Ok(())
}

/// Lists the files in a directory: their names, paths and sizes.
fn list(directory: &Path) -> Vec<(String, PathBuf, u64)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let name = entry.file_name().to_str().filter(|name| check_name(name).is_ok())?.to_owned();
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some((name, entry.path(), metadata.len()))
    });
    files.collect()
}

/// Writes a file atomically, in place of an existing one. Calls can write the same file
/// concurrently.
fn replace(directory: &Path, name: &str, content: &[u8]) -> Result<()> {
    create_private_dir(directory)?;
    let written = replace_file(directory, name, content);
    written.map_err(|error| Error::io(format_args!("writing {}", directory.join(name).display()), error))
}
