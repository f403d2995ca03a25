//! The context of a tool call: everything that a tool may use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::call_requests::CallRequests;
use super::check_settings::{CheckConfinement, CheckSettings};
use super::client::ClientAccess;
use super::files_seen::{FilesSeen, KnownFiles};
use super::output::{Progress, ToolError};
use super::review_decision::CallReview;
use super::shell::{CommandStart, Shell};
use super::subagents::Subagents;
use super::turn_changes::TurnChanges;
use crate::config::SessionVariables;
use crate::id::ToolCallId;
use crate::limits;
use crate::lsp::{LanguageConfig, Languages, ServerLimits, Servers};
use crate::process::{ProcessLauncher, Sandbox};
use crate::web::{Address, HttpClients};
use crate::workspace::{PathFilter, Walk, Workspace};

/// Returns whether a call may follow a redirect to an address.
pub(crate) type RedirectPolicy = Arc<dyn Fn(&Address) -> bool + Send + Sync>;

/// The context of one call. Most fields are shared by the calls of a session.
#[derive(Clone)]
pub struct ToolContext {
    pub call_id: ToolCallId,
    pub workspace: Arc<Workspace>,
    pub launcher: ProcessLauncher,
    pub shell: Arc<Shell>,
    /// Working directory and variables with which a command of this call starts. They are fixed
    /// before the permission check, so that concurrent calls cannot change them after the check.
    pub start: CommandStart,
    pub files: Arc<FilesSeen>,
    pub languages: Arc<Languages>,
    pub cancel: CancellationToken,
    pub progress: Progress,
    /// Files, by real path, that permission rules hide from tools that search many files.
    pub path_filter: Option<PathFilter>,
    /// Redirects that permission rules allow; `None` allows all.
    pub redirect_policy: Option<RedirectPolicy>,
    pub web: HttpClients,
    /// Permits for concurrent directory searches, each of which occupies a blocking thread.
    pub searches: Arc<Semaphore>,
    /// Hosts outside the public web that `fetch` may access: `host` or `host:port`.
    pub fetch_hosts: Arc<[String]>,
    /// Names of environment variables that contain keys and tokens. They are removed from the
    /// environment of all commands.
    pub secrets: Arc<[String]>,
    /// The model of subagents whose definition names none, if it is not that of the session.
    pub subagent_model: Option<Arc<str>>,
    /// The client's files and terminals, if it provides any.
    pub client: Option<Arc<dyn ClientAccess>>,
    /// Directories, without symlinks, whose files are read and written through the client: the
    /// directories that the client named for the session. Empty if the setting `client_files` is
    /// off.
    pub client_roots: Arc<[PathBuf]>,
    /// True if commands run in the client's terminals.
    pub client_terminal: bool,
    /// The repository of the workspace belongs to another user: its directory and the owner.
    pub foreign_repository: Option<Arc<str>>,
    /// The sandbox of the call's commands.
    pub sandbox: Option<Sandbox>,
    /// The user's decisions about parts of the call's changes, if the answer had any.
    pub review: Option<Arc<CallReview>>,
    /// True if the model writes files without a permission request.
    pub unasked: bool,
    /// The files that the model of the call knows. `None` if no model makes the call: it may
    /// replace all files.
    pub known_files: Option<KnownFiles>,
    /// True if permission rules let the model read the files of the call.
    pub may_read: bool,
    /// The project's check commands.
    pub checks: CheckSettings,
    /// Set if nuncio makes the call by itself.
    pub check_confinement: Option<CheckConfinement>,
    /// The files that the turn changed.
    pub changes: Arc<TurnChanges>,
    /// Number of parent sessions of the call's session, including those of the processes that
    /// started nuncio.
    pub depth: u32,
    /// The environment variables of commands, with which they find the session.
    pub variables: Arc<SessionVariables>,
    /// Starts subagents; `None` outside of a session.
    pub subagents: Option<Subagents>,
    /// Passes requests of the running call to the user and to the model.
    pub requests: Option<CallRequests>,
}

impl ToolContext {
    /// Creates a context without a session. Progress updates are dropped.
    pub fn new(workspace: Arc<Workspace>, shell: Arc<Shell>, launcher: ProcessLauncher) -> ToolContext {
        ToolContext {
            call_id: ToolCallId::new(),
            start: shell.start(&workspace),
            shell,
            workspace,
            languages: Arc::new(Languages::new(Arc::new(Servers::new(launcher.clone())), LanguageConfig::default())),
            launcher,
            files: Arc::default(),
            cancel: CancellationToken::new(),
            progress: Arc::new(|_| {}),
            path_filter: None,
            redirect_policy: None,
            web: HttpClients::default(),
            searches: Arc::new(Semaphore::new(limits::WALKS_MAX)),
            fetch_hosts: Arc::new([]),
            secrets: Arc::new([]),
            subagent_model: None,
            client: None,
            client_roots: Arc::new([]),
            client_terminal: false,
            foreign_repository: None,
            sandbox: None,
            review: None,
            unasked: false,
            known_files: None,
            may_read: false,
            checks: CheckSettings::default(),
            check_confinement: None,
            changes: Arc::default(),
            depth: 0,
            variables: Arc::default(),
            subagents: None,
            requests: None,
        }
    }

    /// Runs work that only reads files, on a blocking thread. A cancellation ends the call at once;
    /// the work ends soon afterwards, and its result is dropped.
    pub(crate) async fn read_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        self.unless_cancelled(self.write_blocking(work)).await?
    }

    /// Waits for `work`. Fails if the call is cancelled first.
    pub(crate) async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, ToolError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(ToolError::cancelled()),
            done = work => Ok(done),
        }
    }

    /// Runs a search of a directory tree, like [`ToolContext::read_blocking`]. At most
    /// [`limits::WALKS_MAX`] searches run concurrently; the others wait.
    pub(crate) async fn search<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let permit = self.unless_cancelled(self.searches.clone().acquire_owned()).await?;
        self.read_blocking(move || {
            // The permit is held until the blocking thread is free again, even after a
            // cancellation.
            let _permit = permit;
            work()
        })
        .await
    }

    /// Creates a directory walk below `real` that skips files excluded by permission rules or
    /// ignore files, and ends when the call is cancelled.
    pub(crate) fn walk(&self, real: &Path) -> Walk {
        Walk::new(real, self.cancel.clone()).except(self.path_filter.clone()).excludes(self.workspace.excludes.clone())
    }

    /// Runs work that changes files, on a blocking thread. A cancellation before the work starts
    /// prevents the work; a later cancellation has no effect, so that the result of the work is
    /// always reported.
    pub(crate) async fn write_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(ToolError::new("internal error: the tool panicked")))
    }

    /// Returns the confinement of language servers that the call starts.
    pub(crate) fn server_limits(&self) -> ServerLimits<'_> {
        ServerLimits { sandbox: self.sandbox.as_ref(), unasked: self.unasked }
    }

    /// Creates the error for a failed operation on a file; `doing` is a verb such as "reading".
    pub(crate) fn failed(&self, doing: &str, path: &Path, error: impl std::fmt::Display) -> ToolError {
        ToolError(format!("{doing} {}: {error}", self.workspace.show(path)))
    }
}
