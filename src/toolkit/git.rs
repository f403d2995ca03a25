//! What the git tools share. Runs the program `git` non-interactively, with limits on time and
//! output.
//!
//! Reading commands do not execute programs from the settings of the repository: no pager, hook,
//! file system monitor, external diff, text conversion or signature check, and no fetch of missing
//! objects. The exception are filters (`filter.NAME.clean`), because git needs them to compare
//! files; they run in a sandbox without write access.

mod arguments;
pub(crate) mod changes;
mod origin;
mod repository;

pub(crate) use self::arguments::{pathspec, quoted, with_paths};
pub(crate) use self::repository::{Git, GitOutput};
