//! What tools share: the trait of a tool, the context of a call, and what they do with files,
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

pub use after_edit::after_edit;
pub use client::{ClientAccess, ClientRefusal, ClientTerminal, TerminalCommand};
pub use context::{Progress, RedirectPolicy, ToolContext};
pub use files_seen::{FilesSeen, PathLocks};
pub use output::{ToolError, ToolOutput};
pub use sandbox_notes::sandbox_notes;
pub use shell::{CommandStart, Shell, remove_orphans};
pub use tool::{AnyCall, AnyTool, PreparedCall, Tool, ToolProperties, entry};
