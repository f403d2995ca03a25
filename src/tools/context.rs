//! What a tool call may use. It has nothing else of the house.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{FilesSeen, Shell, ToolError};
use crate::content::ToolContent;
use crate::id::ToolCallId;
use crate::process::Supervisor;
use crate::workspace::Workspace;

/// Takes what a running call shows so far; each replaces the one before. Must not block.
pub type Progress = Arc<dyn Fn(Vec<ToolContent>) + Send + Sync>;

/// Made for each call; most of it is the session's.
#[derive(Clone)]
pub struct ToolContext {
    pub call_id: ToolCallId,
    pub workspace: Arc<Workspace>,
    pub supervisor: Supervisor,
    pub shell: Arc<Shell>,
    pub files: Arc<FilesSeen>,
    pub cancel: CancellationToken,
    pub progress: Progress,
    /// Names of environment variables that no command gets to see: keys and tokens.
    pub secrets: Arc<[String]>,
}

impl ToolContext {
    /// For calls outside any session; nobody looks at what they show meanwhile.
    pub fn new(workspace: Workspace, supervisor: Supervisor) -> ToolContext {
        ToolContext {
            call_id: ToolCallId::new(),
            shell: Arc::new(Shell::new(workspace.cwd.clone())),
            workspace: Arc::new(workspace),
            supervisor,
            files: Arc::default(),
            cancel: CancellationToken::new(),
            progress: Arc::new(|_| {}),
            secrets: Arc::new([]),
        }
    }

    /// Runs work on files on a thread that may block. The work has to look at `cancel` by itself.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let done = tokio::task::spawn_blocking(work).await;
        if self.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        done.unwrap_or_else(|_| Err(ToolError::new("the tool broke; this is a fault in nuncio")))
    }

    /// `doing` is "reading" or the like.
    pub(super) fn failed(&self, doing: &str, path: &Path, error: impl std::fmt::Display) -> ToolError {
        ToolError(format!("{doing} {}: {error}", self.workspace.show(path)))
    }
}
