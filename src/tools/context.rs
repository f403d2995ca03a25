//! What a tool call may use. It has nothing else of the house.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{ClientHands, FilesSeen, MapCache, Shell, Start, ToolError};
use crate::content::ToolContent;
use crate::id::ToolCallId;
use crate::limits;
use crate::lsp::{Languages, Servers, Terms};
use crate::process::{Sandbox, Supervisor};
use crate::web::{Address, Web};
use crate::workspace::{Except, Walk, Workspace};

/// Takes what a running call shows so far; each replaces the one before. Must not block.
pub type Progress = Arc<dyn Fn(Vec<ToolContent>) + Send + Sync>;

/// Says whether a call may follow a redirection to an address.
pub type Reach = Arc<dyn Fn(&Address) -> bool + Send + Sync>;

/// Made for each call; most of it is the session's.
#[derive(Clone)]
pub struct ToolContext {
    pub call_id: ToolCallId,
    pub workspace: Arc<Workspace>,
    pub supervisor: Supervisor,
    pub shell: Arc<Shell>,
    /// Where and with what a command of this call begins, whatever others leave meanwhile: what is judged is what runs.
    pub start: Start,
    pub files: Arc<FilesSeen>,
    pub languages: Arc<Languages>,
    pub cancel: CancellationToken,
    pub progress: Progress,
    /// What rules keep from tools that look at many files, by real path.
    pub hidden: Option<Except>,
    /// Where rules let a call be redirected; without it everywhere.
    pub reach: Option<Reach>,
    pub web: Web,
    pub maps: Arc<MapCache>,
    /// Searches of directory trees that may run at once: each holds a thread of those that are for all work that blocks.
    pub searches: Arc<Semaphore>,
    /// Hosts that are not on the public web and may be asked nevertheless: `host` or `host:port`.
    pub fetch_hosts: Arc<[String]>,
    /// Names of environment variables that no command gets to see: keys and tokens.
    pub secrets: Arc<[String]>,
    /// The client's own hands, where it lends them.
    pub client: Option<Arc<dyn ClientHands>>,
    /// Directories, without symlinks, whose files the client is asked for: those that it named for
    /// the session; none if the setting `client_files` is off.
    pub client_roots: Arc<[PathBuf]>,
    /// Commands run in its terminals.
    pub client_terminal: bool,
    /// What the commands of this call are confined to.
    pub sandbox: Option<Sandbox>,
}

impl ToolContext {
    /// With what there is outside any session; nobody looks at what its calls show meanwhile.
    pub fn new(workspace: Arc<Workspace>, shell: Arc<Shell>, supervisor: Supervisor) -> ToolContext {
        ToolContext {
            call_id: ToolCallId::new(),
            start: shell.start(&workspace),
            shell,
            workspace,
            languages: Arc::new(Languages::new(Arc::new(Servers::new(supervisor.clone())), Terms::default())),
            supervisor,
            files: Arc::default(),
            cancel: CancellationToken::new(),
            progress: Arc::new(|_| {}),
            hidden: None,
            reach: None,
            web: Web::default(),
            maps: Arc::default(),
            searches: Arc::new(Semaphore::new(limits::WALKS_MAX)),
            fetch_hosts: Arc::new([]),
            secrets: Arc::new([]),
            client: None,
            client_roots: Arc::new([]),
            client_terminal: false,
            sandbox: None,
        }
    }

    /// Looks at files, on a thread that may block. A cancel ends the call at once, and the work soon after it; what it gives then is
    /// dropped.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ToolError::cancelled()),
            found = self.change(work) => found,
        }
    }

    /// [`ToolContext::look`] for what looks through a whole tree. Only [`limits::WALKS_MAX`] of them run at once; the others wait.
    pub(super) async fn search<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let permit = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(ToolError::cancelled()),
            permit = self.searches.clone().acquire_owned() => permit,
        };
        self.look(move || {
            // Held until the thread is free again, also after a cancel.
            let _permit = permit;
            work()
        })
        .await
    }

    /// A walk below `real`, which leaves out what rules and ignore files say, and ends with the call.
    pub(super) fn walk(&self, real: &Path) -> Walk {
        Walk::new(real, self.cancel.clone()).except(self.hidden.clone()).excludes(self.workspace.excludes.clone())
    }

    /// Changes files, on a thread that may block: not at all when it is cancelled before, else to its end, and it is told how it
    /// went.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(ToolError::new("the tool broke; this is a fault in nuncio")))
    }

    /// `doing` is "reading" or the like.
    pub(super) fn failed(&self, doing: &str, path: &Path, error: impl std::fmt::Display) -> ToolError {
        ToolError(format!("{doing} {}: {error}", self.workspace.show(path)))
    }
}
