//! Opens files by their real path and fails if a component is a symlink, so that the opened file is
//! the one that the caller resolved, and creates files without a name. `linux` and `posix` define
//! the same functions.

#[cfg(not(posix))]
mod linux;
#[cfg(posix)]
mod posix;

#[cfg(not(posix))]
use linux as system;
#[cfg(posix)]
use posix as system;

pub(super) use system::{name_file, open_no_symlinks, stat_no_symlinks, unnamed_file};
