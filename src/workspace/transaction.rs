//! Changes several files by their real paths, all or none. New contents are written to temporary
//! files in the same directories first and then renamed.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fchown, fsync, mkdirat, openat, renameat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::file::require_regular;
use super::new_file::{FORMER, NewFile, remove, remove_left_files, temporary_name};
use super::strict::{open_no_symlinks, stat_no_symlinks};

/// A change to the file `real` ([`super::ResolvedPath::real`]).
#[derive(Clone, Copy, Debug)]
pub enum FileChange<'a> {
    /// Writes the complete content and creates missing parent directories. The mode and, where
    /// permitted, the owner are copied from `like` if given, else from the existing file.
    Put { real: &'a Path, bytes: &'a [u8], like: Option<&'a Path> },
    /// Removes the file, which must exist.
    Remove { real: &'a Path },
}

impl FileChange<'_> {
    fn real(&self) -> &Path {
        match self {
            FileChange::Put { real, .. } | FileChange::Remove { real } => real,
        }
    }
}

/// The change that failed. No change was made, except for the files in `left`.
#[derive(Debug)]
pub struct ChangeFailure {
    pub real: PathBuf,
    pub error: io::Error,
    /// Files that could not be restored, each with the path of its former content.
    pub left: Vec<(PathBuf, PathBuf)>,
}

/// Makes all `changes`, each to a different file, or none. All new contents are written and synced
/// before the first rename; if a later step fails, completed changes are undone. Only a crash
/// between two renames leaves the changes incomplete, with the former content of files as
/// `.nuncio-*` next to them, until the next change in the same directory.
pub fn commit(changes: &[FileChange<'_>]) -> Result<(), ChangeFailure> {
    let mut transaction = Transaction::default();
    let failed = |change: &FileChange<'_>, error, left| Err(ChangeFailure { real: change.real().to_owned(), error, left });
    for change in changes {
        if let Err(error) = transaction.stage(change) {
            return failed(change, error, transaction.roll_back(0));
        }
    }
    let many = changes.len() > 1;
    for (index, change) in changes.iter().enumerate() {
        if let Err(error) = transaction.staged[index].make(many) {
            return failed(change, error, transaction.roll_back(index + 1));
        }
    }
    for (index, change) in changes.iter().enumerate() {
        if let Err(error) = fsync(&transaction.staged[index].directory) {
            return failed(change, error.into(), transaction.roll_back(changes.len()));
        }
    }
    transaction.staged.iter().for_each(StagedChange::remove_temporary);
    Ok(())
}

/// The directories that [`create_parents`] created.
pub(crate) struct CreatedParents(Transaction<'static>);

/// Creates the missing parent directories of `real` without following symlinks.
pub(crate) fn create_parents(real: &Path) -> io::Result<CreatedParents> {
    let mut transaction = Transaction::default();
    if let Some(parent) = real.parent() {
        transaction.create_directory(parent)?;
    }
    Ok(CreatedParents(transaction))
}

impl CreatedParents {
    /// Removes the created directories that are empty.
    pub(crate) fn remove(self) {
        self.0.roll_back(0);
    }
}

#[derive(Default)]
struct Transaction<'a> {
    staged: Vec<StagedChange<'a>>,
    /// Directories that the transaction created, as parent and name, outermost first.
    made: Vec<(OwnedFd, PathBuf)>,
}

/// A prepared change to one file.
struct StagedChange<'a> {
    directory: OwnedFd,
    real: &'a Path,
    name: &'a OsStr,
    /// True if the file exists.
    exists: bool,
    /// The new content; `None` if the file is to be removed.
    new: Option<NewFile>,
    /// Temporary name in the directory of the new content, and then of the former content.
    temporary: String,
    /// The step that was completed, which a failure has to undo.
    done: FinishedStep,
}

#[derive(Clone, Copy, PartialEq)]
enum FinishedStep {
    Nothing,
    /// The file was created.
    Created,
    /// The former file is under `temporary`.
    Kept,
    /// The former file was replaced and cannot be restored: the transaction has only this change.
    Replaced,
}

impl<'a> Transaction<'a> {
    fn stage(&mut self, change: &FileChange<'a>) -> io::Result<()> {
        let (FileChange::Put { real, .. } | FileChange::Remove { real }) = *change;
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"));
        };
        let directory = match change {
            FileChange::Put { .. } => self.create_directory(parent)?,
            FileChange::Remove { .. } => open_no_symlinks(parent, DIRECTORY)?,
        };
        let before = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(before) => Some(before),
            Err(Errno::NOENT) if matches!(change, FileChange::Put { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(before) = before {
            require_regular(FileType::from_raw_mode(before.st_mode))?;
        }
        remove_left_files(&directory);
        let (exists, temporary, done) = (before.is_some(), temporary_name(), FinishedStep::Nothing);
        self.staged.push(StagedChange { directory, real, name, exists, new: None, temporary, done });
        let Some(staged) = self.staged.last_mut() else { return Ok(()) };
        match *change {
            FileChange::Put { bytes, like: None, .. } => staged.write(bytes, before),
            FileChange::Put { bytes, like: Some(like), .. } => staged.write(bytes, Some(stat_no_symlinks(like)?)),
            FileChange::Remove { .. } => Ok(()),
        }
    }

    /// Opens `directory`, and creates it and its parents if they are missing.
    fn create_directory(&mut self, directory: &Path) -> io::Result<OwnedFd> {
        let mut missing = Vec::new();
        let mut existing = directory;
        let mut opened = loop {
            match (open_no_symlinks(existing, DIRECTORY), existing.parent(), existing.file_name()) {
                (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                    missing.push(name);
                    existing = parent;
                }
                (opened, ..) => break opened?,
            }
        };
        for name in missing.into_iter().rev() {
            let made = match mkdirat(&opened, name, Mode::from_raw_mode(0o777)) {
                Err(Errno::EXIST) => false,
                made => made.map(|()| true)?,
            };
            let inner = openat(&opened, name, DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
            let parent = std::mem::replace(&mut opened, inner);
            if made {
                self.made.push((parent, name.into()));
            }
        }
        Ok(opened)
    }

    /// Undoes the first `made` changes and removes temporary files. Returns the files that could
    /// not be restored.
    fn roll_back(self, made: usize) -> Vec<(PathBuf, PathBuf)> {
        let mut left = Vec::new();
        for staged in self.staged[..made].iter().rev() {
            if staged.undo().is_err() && staged.done == FinishedStep::Kept {
                left.push((staged.real.to_owned(), staged.real.with_file_name(&staged.temporary)));
            }
        }
        self.staged.iter().filter(|staged| staged.done == FinishedStep::Nothing).for_each(StagedChange::remove_temporary);
        for (parent, name) in self.made.into_iter().rev() {
            // Keep the directory if another process has put files into it.
            let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
        }
        left
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

impl StagedChange<'_> {
    fn write(&mut self, bytes: &[u8], like: Option<Stat>) -> io::Result<()> {
        let new = self.new.insert(NewFile::create(&self.directory, &self.temporary, Mode::from_raw_mode(0o666))?);
        if let Some(like) = like {
            // Only root can change the owner; a failure must not prevent the write.
            let _ = fchown(&new.file, Some(Uid::from_raw(like.st_uid)), Some(Gid::from_raw(like.st_gid)));
            fchmod(&new.file, Mode::from_raw_mode(like.st_mode & 0o7777))?;
        }
        new.file.write_all(bytes)?;
        Ok(fsync(&new.file)?)
    }

    /// Makes the change atomically. With `keep`, the former file is kept under `temporary`.
    fn make(&mut self, keep: bool) -> io::Result<()> {
        let StagedChange { directory, name, temporary, .. } = &*self;
        self.done = match (&self.new, self.exists, keep) {
            (None, ..) => renameat(directory, *name, directory, temporary).map(|()| FinishedStep::Kept)?,
            (Some(new), false, _) => new.add(directory, temporary, name).map(|()| FinishedStep::Created)?,
            (Some(new), true, keep) => {
                new.appear(directory, temporary)?;
                match keep {
                    false => renameat(directory, temporary, directory, *name).map(|()| FinishedStep::Replaced)?,
                    true => self.exchange().map(|()| FinishedStep::Kept)?,
                }
            }
        };
        Ok(())
    }

    /// Swaps the new content and the former file, which is then under `temporary`.
    fn exchange(&self) -> io::Result<()> {
        let StagedChange { directory, name, temporary, .. } = self;
        match renameat_with(directory, temporary, directory, *name, RenameFlags::EXCHANGE) {
            // Without support for RENAME_EXCHANGE, the file is missing for a moment.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            exchanged => return Ok(exchanged?),
        }
        let aside = format!("{temporary}{FORMER}");
        renameat(directory, *name, directory, &aside)?;
        if let Err(error) = renameat(directory, temporary, directory, *name) {
            renameat(directory, &aside, directory, *name)?;
            return Err(error.into());
        }
        Ok(renameat(directory, &aside, directory, temporary)?)
    }

    fn undo(&self) -> io::Result<()> {
        match self.done {
            FinishedStep::Nothing | FinishedStep::Replaced => Ok(()),
            FinishedStep::Created => Ok(unlinkat(&self.directory, self.name, AtFlags::empty())?),
            FinishedStep::Kept => Ok(renameat(&self.directory, &self.temporary, &self.directory, self.name)?),
        }
    }

    fn remove_temporary(&self) {
        remove(&self.directory, &self.temporary);
    }
}
