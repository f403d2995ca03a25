//! Control files: files of a git repository that decide which programs git runs
//! (gitrepository-layout(5)), and the directory of a project's settings. Sandboxed commands must
//! not change them, because the user's next git command would run what they name. Which directory
//! is one of git is decided by its name, by what a `.git` file or link names, and by what was
//! protected before, never by a content that an earlier command could have changed: a directory
//! that is incomplete or cannot be read is protected as a whole.

mod files;
mod guard;
mod locks;
mod memory;
mod mounts;
mod placeholder;
mod settings;
mod watch;

pub(super) use files::ControlFiles;
pub(in crate::process) use guard::Guard;
pub(in crate::process) use watch::Watch;
