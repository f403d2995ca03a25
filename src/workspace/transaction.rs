//! Changing files by their real paths, all of them or none: what is to be is written beside first and then renamed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fchown, fsync, mkdirat, openat, renameat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::file::{must_be_regular, open_strictly};

/// What becomes of the file `real` ([`super::Placed::real`]).
#[derive(Clone, Copy, Debug)]
pub enum FileChange<'a> {
    /// Its whole content. Its parents are made. Mode bits, and where that is allowed the owner, are those of the file that is
    /// there, or those of `like`, if given.
    Put { real: &'a Path, bytes: &'a [u8], like: Option<&'a Path> },
    /// It must be there.
    Remove { real: &'a Path },
}

impl FileChange<'_> {
    fn real(&self) -> &Path {
        match self {
            FileChange::Put { real, .. } | FileChange::Remove { real } => real,
        }
    }
}

/// A change that could not be made; then none was.
#[derive(Debug)]
pub struct NotChanged {
    pub real: PathBuf,
    pub error: io::Error,
    /// Files that could not be put back as they were, and where their former content lies now.
    pub left: Vec<(PathBuf, PathBuf)>,
}

/// Makes all `changes`, each of another file, or none. Everything is written beside and synced before the first file is
/// renamed; when something fails then, what was done is undone. Only the death of the process between two renames leaves some
/// done, some not, and the rest beside as `.nuncio-*`.
pub fn commit(changes: &[FileChange<'_>]) -> Result<(), NotChanged> {
    let mut transaction = Transaction::default();
    let failed = |change: &FileChange<'_>, error, left| Err(NotChanged { real: change.real().to_owned(), error, left });
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
    transaction.staged.iter().for_each(Staged::clear);
    Ok(())
}

/// Directories that [`create_parents`] made.
pub struct CreatedParents(Transaction<'static>);

/// Creates the missing parent directories of `real`, following no links.
pub fn create_parents(real: &Path) -> io::Result<CreatedParents> {
    let mut transaction = Transaction::default();
    if let Some(parent) = real.parent() {
        transaction.make_directory(parent)?;
    }
    Ok(CreatedParents(transaction))
}

impl CreatedParents {
    /// Removes them again, as far as they are empty.
    pub fn remove(self) {
        self.0.roll_back(0);
    }
}

#[derive(Default)]
struct Transaction<'a> {
    staged: Vec<Staged<'a>>,
    /// Directories that were made: their parents and names, outermost first.
    made: Vec<(OwnedFd, PathBuf)>,
}

/// A file whose change is prepared.
struct Staged<'a> {
    directory: OwnedFd,
    real: &'a Path,
    name: &'a OsStr,
    /// It is there.
    exists: bool,
    /// The new content waits under `temporary`; else the file is to be removed.
    put: bool,
    /// A name in the directory that is ours: before the change for the new content, after it for the old one.
    temporary: String,
    /// What there is to be undone.
    done: Done,
}

#[derive(Clone, Copy, PartialEq)]
enum Done {
    Nothing,
    /// The file was new.
    Made,
    /// The former file lies under `temporary`.
    Kept,
    /// There is nothing to go back to: the only change of its transaction.
    Replaced,
}

impl<'a> Transaction<'a> {
    fn stage(&mut self, change: &FileChange<'a>) -> io::Result<()> {
        let (FileChange::Put { real, .. } | FileChange::Remove { real }) = *change;
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
        };
        let directory = match change {
            FileChange::Put { .. } => self.make_directory(parent)?,
            FileChange::Remove { .. } => open_strictly(parent, DIRECTORY)?,
        };
        let before = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(before) => Some(before),
            Err(Errno::NOENT) if matches!(change, FileChange::Put { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(before) = before {
            must_be_regular(FileType::from_raw_mode(before.st_mode))?;
        }
        let temporary = format!(".nuncio-{}", uuid::Uuid::now_v7().simple());
        let put = matches!(change, FileChange::Put { .. });
        self.staged.push(Staged { directory, real, name, exists: before.is_some(), put, temporary, done: Done::Nothing });
        let Some(staged) = self.staged.last() else { return Ok(()) };
        match *change {
            FileChange::Put { bytes, like: None, .. } => staged.write(bytes, before),
            FileChange::Put { bytes, like: Some(like), .. } => staged.write(bytes, Some(stat_strictly(like)?)),
            FileChange::Remove { .. } => Ok(()),
        }
    }

    /// Opens `directory`, which is made with its parents where it does not exist.
    fn make_directory(&mut self, directory: &Path) -> io::Result<OwnedFd> {
        let mut missing = Vec::new();
        let mut existing = directory;
        let mut opened = loop {
            match (open_strictly(existing, DIRECTORY), existing.parent(), existing.file_name()) {
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

    /// Undoes the first `made` changes and takes away what was written beside. Gives what could not be undone.
    fn roll_back(self, made: usize) -> Vec<(PathBuf, PathBuf)> {
        let mut left = Vec::new();
        for staged in self.staged[..made].iter().rev() {
            if staged.undo().is_err() && staged.done == Done::Kept {
                left.push((staged.real.to_owned(), staged.real.with_file_name(&staged.temporary)));
            }
        }
        self.staged.iter().filter(|staged| staged.done == Done::Nothing).for_each(Staged::clear);
        for (parent, name) in self.made.into_iter().rev() {
            // Somebody else may have put something there meanwhile; then it stays.
            let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
        }
        left
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

fn stat_strictly(real: &Path) -> io::Result<Stat> {
    Ok(rustix::fs::fstat(open_strictly(real, OFlags::PATH)?)?)
}

impl Staged<'_> {
    /// Writes the new content beside the file.
    fn write(&self, bytes: &[u8], like: Option<Stat>) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.directory, &self.temporary, flags, Mode::from_raw_mode(0o666))?);
        if let Some(like) = like {
            // Only root may give files away; the content matters more.
            let _ = fchown(&file, Some(Uid::from_raw(like.st_uid)), Some(Gid::from_raw(like.st_gid)));
            fchmod(&file, Mode::from_raw_mode(like.st_mode & 0o7777))?;
        }
        file.write_all(bytes)?;
        Ok(fsync(&file)?)
    }

    /// Makes the change, in one step that others see whole. With `keep` the former file is kept under `temporary`.
    fn make(&mut self, keep: bool) -> io::Result<()> {
        let Staged { directory, name, temporary, .. } = &*self;
        self.done = match (self.put, self.exists, keep) {
            (false, ..) => renameat(directory, *name, directory, temporary).map(|()| Done::Kept)?,
            (true, false, _) => self.add().map(|()| Done::Made)?,
            (true, true, false) => renameat(directory, temporary, directory, *name).map(|()| Done::Replaced)?,
            (true, true, true) => self.exchange().map(|()| Done::Kept)?,
        };
        Ok(())
    }

    /// The new content under the file's name, unless somebody made one meanwhile.
    fn add(&self) -> io::Result<()> {
        let Staged { directory, name, temporary, .. } = self;
        match renameat_with(directory, temporary, directory, *name, RenameFlags::NOREPLACE) {
            // Not every file system knows that.
            Err(Errno::INVAL | Errno::NOSYS) => Ok(renameat(directory, temporary, directory, *name)?),
            added => Ok(added?),
        }
    }

    /// The new content under the file's name, the former one under `temporary`.
    fn exchange(&self) -> io::Result<()> {
        let Staged { directory, name, temporary, .. } = self;
        match renameat_with(directory, temporary, directory, *name, RenameFlags::EXCHANGE) {
            // Not every file system knows that; then there is a moment without the file.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            exchanged => return Ok(exchanged?),
        }
        let aside = format!("{temporary}-former");
        renameat(directory, *name, directory, &aside)?;
        if let Err(error) = renameat(directory, temporary, directory, *name) {
            renameat(directory, &aside, directory, *name)?;
            return Err(error.into());
        }
        Ok(renameat(directory, &aside, directory, temporary)?)
    }

    fn undo(&self) -> io::Result<()> {
        match self.done {
            Done::Nothing | Done::Replaced => Ok(()),
            Done::Made => Ok(unlinkat(&self.directory, self.name, AtFlags::empty())?),
            Done::Kept => Ok(renameat(&self.directory, &self.temporary, &self.directory, self.name)?),
        }
    }

    /// Takes away what is still beside the file. A temporary file that stays is the lesser evil.
    fn clear(&self) {
        let _ = unlinkat(&self.directory, &self.temporary, AtFlags::empty());
    }
}
