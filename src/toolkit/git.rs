//! Code shared by the git tools. Runs the program `git` non-interactively, with limits on time and
//! output.
//!
//! Read-only commands do not execute programs configured in the repository: no pager, hook, file
//! system monitor, external diff, text conversion or signature check. They also do not fetch
//! missing objects. Filters (`filter.NAME.clean`) are an exception, because git needs them to
//! compare files; they run in a sandbox without write access.

mod arguments;
pub(crate) mod changes;
mod origin;
mod repository;

pub(crate) use self::arguments::{pathspec, quoted, with_paths};
pub(crate) use self::repository::{Git, GitOutput};
