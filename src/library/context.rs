//! The context of a call of a tool of the embedding program.

use std::path::{Path, PathBuf};

use crate::content::ToolContent;
use crate::id::ToolCallId;
use crate::toolkit;

/// The context of a tool call.
pub struct ToolContext<'a>(pub(super) &'a toolkit::ToolContext);

impl ToolContext<'_> {
    /// Returns the id of the call, as in its events.
    pub fn call_id(&self) -> &ToolCallId {
        &self.0.call_id
    }

    /// Returns the directory of the session.
    pub fn directory(&self) -> &Path {
        &self.0.workspace.cwd
    }

    /// Returns the file or directory of a path, without symbolic links. It is the one that the
    /// permission check evaluated, if the path is one of the call's resources.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.0.workspace.resolve(path).real
    }

    /// Shows text while the call runs. It replaces the text that was shown before.
    pub fn progress(&self, text: impl Into<String>) {
        (self.0.progress)(vec![ToolContent::text(text.into())]);
    }
}
