//! Access to nuncio's MCP server: the rights of each client, and the bearer tokens of the hosted
//! agents of this process.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "mcp")]
use super::mcp_calls::SuspendedCalls;
use crate::config::{worktree_origin, worktrees_in};
use crate::context::project_dirs::ProjectDirs;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::limits;
use crate::workspace::real_path;

/// Maximum number of sessions that a client of `nuncio mcp serve` can continue.
const DELEGATED_SESSIONS_MAX: usize = 1_000;

/// The rights of a client of nuncio's MCP server, and the state that its calls share.
pub(crate) struct McpAccess {
    /// The session of the hosted agent; `None` for another client.
    pub session: Option<SessionId>,
    /// The directory of the session, or of the process.
    pub cwd: PathBuf,
    /// Directories that the client has access to.
    pub roots: Arc<[PathBuf]>,
    /// Number of parent sessions of the sessions that the client creates.
    pub depth: u32,
    /// True if the transport carries requests of the server to the client.
    pub answers: bool,
    /// Cancelled when the client has ended.
    pub ended: CancellationToken,
    /// Permits for concurrent calls of `delegate`.
    pub permits: Arc<Semaphore>,
    /// Calls of `delegate` that wait for an answer of the client.
    #[cfg(feature = "mcp")]
    pub suspended: SuspendedCalls,
    sessions: Mutex<DelegatedSessions>,
    /// Returns whether the process of the agent runs. Not set while the process starts.
    runs: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}

/// The sessions that calls of `delegate` created.
#[derive(Default)]
struct DelegatedSessions {
    /// The sessions that can be continued, the oldest first.
    created: VecDeque<SessionId>,
    /// The sessions of the running calls.
    in_use: HashSet<SessionId>,
}

/// RAII guard: a call uses the session.
pub(crate) struct SessionInUse {
    pub id: SessionId,
    access: Arc<McpAccess>,
}

impl McpAccess {
    /// Creates the access of a client that can answer requests of the server, limited to `roots`.
    pub(crate) fn new(session: Option<SessionId>, cwd: PathBuf, roots: Arc<[PathBuf]>, depth: u32) -> McpAccess {
        McpAccess {
            session,
            cwd,
            roots,
            depth,
            answers: true,
            ended: CancellationToken::new(),
            permits: Arc::new(Semaphore::new(limits::DELEGATIONS_MAX)),
            #[cfg(feature = "mcp")]
            suspended: SuspendedCalls::default(),
            sessions: Mutex::default(),
            runs: OnceLock::new(),
        }
    }

    /// Creates the access of the agent of a session: to the directories of the session and to its
    /// repository. `data` is nuncio's data directory.
    pub(crate) fn hosted(data: &Path, session: SessionId, cwd: &Path, directories: &[PathBuf], depth: u32) -> McpAccess {
        let repository = ProjectDirs::new(cwd, None).root;
        let origin = worktree_origin(&worktrees_in(data), &real_path(cwd)).map(|origin| origin.repository);
        let named = [cwd, &repository].into_iter().chain(directories.iter().map(PathBuf::as_path));
        let roots = named.filter(|path| !path.as_os_str().is_empty()).map(real_path).chain(origin);
        McpAccess::new(Some(session), cwd.into(), roots.collect(), depth)
    }

    /// Sets the token that is cancelled when the client has ended.
    pub(crate) fn until(self, ended: CancellationToken) -> McpAccess {
        McpAccess { ended, ..self }
    }

    /// Returns the access for a transport that carries no requests of the server.
    pub(crate) fn without_requests(self) -> McpAccess {
        McpAccess { answers: false, ..self }
    }

    fn sessions(&self) -> MutexGuard<'_, DelegatedSessions> {
        self.sessions.lock()
    }

    /// Records a session that a call created. Only these can be continued.
    pub(crate) fn created(&self, id: SessionId) {
        let mut sessions = self.sessions();
        if sessions.created.len() >= DELEGATED_SESSIONS_MAX {
            sessions.created.pop_front();
        }
        sessions.created.push_back(id);
    }

    /// Reserves a session for a call; two calls must not prompt the same session.
    pub(crate) fn claim(self: &Arc<Self>, id: &SessionId) -> Result<SessionInUse> {
        let mut sessions = self.sessions();
        if !sessions.created.contains(id) {
            return Err(Error::invalid_params(format!("session {id} was not created by this server")).hint("omit session"));
        }
        if !sessions.in_use.insert(id.clone()) {
            return Err(Error::invalid_params(format!("session {id} is used by another call")).hint("wait for its result"));
        }
        Ok(SessionInUse { id: id.clone(), access: self.clone() })
    }
}

impl Drop for SessionInUse {
    fn drop(&mut self) {
        self.access.sessions().in_use.remove(&self.id);
    }
}

/// The bearer tokens of the hosted agents of this process, by SHA-256 digest.
#[derive(Default)]
pub(crate) struct AgentTokens(Mutex<HashMap<[u8; 32], Arc<McpAccess>>>);

/// RAII guard: the token of a hosted agent is valid. Dropping it cancels the running calls.
pub(crate) struct AgentToken {
    /// The token in the header `Authorization`.
    pub text: String,
    digest: [u8; 32],
    access: Arc<McpAccess>,
    tokens: Arc<AgentTokens>,
}

impl AgentTokens {
    fn granted(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<McpAccess>>> {
        self.0.lock()
    }

    pub(crate) fn grant(self: &Arc<Self>, access: McpAccess) -> Result<AgentToken> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| Error::internal("the system's random number generator failed"))?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (digest, access) = (sha256(&text), Arc::new(access));
        self.granted().insert(digest, access.clone());
        Ok(AgentToken { text, digest, access, tokens: self.clone() })
    }

    /// Returns the access of a token, if its agent runs.
    pub(crate) fn find(&self, token: &str) -> Option<Arc<McpAccess>> {
        let access = self.granted().get(&sha256(token)).cloned()?;
        access.runs.get().is_none_or(|runs| runs()).then_some(access)
    }

    /// Returns the nesting depth of a session that a hosted agent created by `delegate`; else 0.
    pub(crate) fn depth_of(&self, session: &SessionId) -> u32 {
        let granted: Vec<Arc<McpAccess>> = self.granted().values().cloned().collect();
        let creator = granted.into_iter().find(|access| access.sessions().created.contains(session));
        creator.map_or(0, |access| access.depth)
    }
}

impl AgentToken {
    /// Restricts the token to the time in which `runs` returns true.
    pub(crate) fn valid_while(&self, runs: impl Fn() -> bool + Send + Sync + 'static) {
        // Set once, when the process has started.
        let _ = self.access.runs.set(Box::new(runs));
    }
}

impl Drop for AgentToken {
    fn drop(&mut self) {
        self.tokens.granted().remove(&self.digest);
        self.access.ended.cancel();
    }
}

fn sha256(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}
