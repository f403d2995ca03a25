//! Code shared by the tools: the `Tool` trait, the context of a tool call, and helpers for files,
//! commands and git.

mod after_edit;
mod argument_names;
pub(crate) mod artifact;
mod call_requests;
pub(crate) mod capture;
pub(crate) mod change;
pub(crate) mod change_scan;
mod check_settings;
pub(crate) mod checks;
mod client;
pub(crate) mod client_copy;
mod context;
mod failing_part;
mod files_seen;
pub(crate) mod follow;
pub(crate) mod git;
mod input;
pub(crate) mod jobs;
pub(crate) mod live_output;
mod mcp_names;
#[deny(missing_docs)]
mod output;
pub(crate) mod path_patterns;
pub(crate) mod replacement;
mod review_decision;
mod sandbox_notes;
mod shell;
mod shown_change;
mod subagents;
pub(crate) mod text;
mod tool;
pub(crate) mod tool_list;
mod turn_changes;

pub(crate) use after_edit::after_edit;
pub(crate) use call_requests::CallRequest;
pub use call_requests::CallRequests;
pub(crate) use check_settings::{CheckConfinement, CheckSettings};
pub(crate) use client::{ClientAccess, ClientRefusal, ClientTerminal, TerminalCommand};
pub(crate) use context::RedirectPolicy;
pub use context::ToolContext;
pub(crate) use files_seen::{FilesSeen, PathLocks};
pub(crate) use input::{parse as parse_input, spec};
pub use mcp_names::mcp_tool_names;
pub(crate) use output::Progress;
pub use output::{ToolError, ToolOutput};
pub(crate) use review_decision::{CallReview, ReviewedFile, offer};
pub(crate) use sandbox_notes::sandbox_notes;
pub(crate) use shell::NON_INTERACTIVE;
pub use shell::Shell;
pub(crate) use shell::remove_orphans;
pub(crate) use shown_change::changes_shown;
pub use subagents::Subagents;
pub(crate) use subagents::{Spawner, Subagent, SubagentProfile, SubagentRequest};
pub(crate) use tool::{AnyCall, AnyTool, PreparedCall, Tool, ToolProperties, entry, entry_with, schema_of};
pub(crate) use turn_changes::{TurnChanges, TurnFile};
