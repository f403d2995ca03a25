//! Code shared by the tools: the `Tool` trait, the context of a tool call, and helpers for files,
//! commands and git.

mod after_edit;
mod argument_names;
pub(crate) mod artifact;
pub(crate) mod capture;
pub(crate) mod change;
mod client;
pub(crate) mod client_copy;
mod context;
mod files_seen;
pub(crate) mod follow;
pub(crate) mod git;
mod input;
pub(crate) mod jobs;
mod output;
pub(crate) mod path_patterns;
mod sandbox_notes;
mod shell;
pub(crate) mod text;
mod tool;

pub(crate) use after_edit::after_edit;
pub(crate) use client::{ClientAccess, ClientRefusal, ClientTerminal, TerminalCommand};
pub use context::ToolContext;
pub(crate) use context::{Progress, RedirectPolicy};
pub(crate) use files_seen::{FilesSeen, PathLocks};
pub use output::{ToolError, ToolOutput};
pub(crate) use sandbox_notes::sandbox_notes;
pub use shell::Shell;
pub(crate) use shell::remove_orphans;
pub(crate) use tool::{AnyTool, PreparedCall, Tool, ToolProperties, entry};
