//! A connected client: identity, role and allowed roots.

use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{worktree_origin, worktrees_in};
use crate::error::{Error, Kind, Result};
use crate::event::Actor;
use crate::id::{Seq, SessionId};
use crate::protocol::acp;
use crate::session::Session;
use crate::session::permissions::broker::Responder;

/// The principal of the owner's token, which is in the file `token`.
pub(crate) const OWNER: &str = "owner";

/// Callback that makes a transport show a session to its client, from the given seq on, unless the
/// session is already shown.
pub(crate) type ShowSession = Box<dyn Fn(&Session, Seq) + Send + Sync>;

/// Access level of a client. An observer reads. A controller also prompts, answers permission
/// requests and changes sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TokenRole")]
pub enum ClientRole {
    Observer,
    Controller,
}

impl ClientRole {
    /// Returns the name of the role in JSON and in command-line flags.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ClientRole::Observer => "observer",
            ClientRole::Controller => "controller",
        }
    }
}

impl FromStr for ClientRole {
    type Err = Error;

    fn from_str(name: &str) -> Result<ClientRole> {
        let role = [ClientRole::Observer, ClientRole::Controller].into_iter().find(|role| role.as_str() == name);
        role.ok_or_else(|| {
            Error::invalid_params(format!("role \"{name}\" is unknown")).hint("use --role observer or --role controller")
        })
    }
}

/// A connected client: its identity, capabilities and access rights. Processes send each other the
/// client of a call.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    /// The identity that the log records for decisions: `client`, `terminal`, or the name of a
    /// token.
    pub principal: String,
    /// Unique id of the client, recorded in the log.
    pub id: String,
    pub role: ClientRole,
    /// The working directory of the client's own nuncio process, for a client on the standard
    /// streams or the command line of that process; `None` for an HTTP client. With a directory,
    /// prompts to a busy session wait, relative paths are resolved against the directory, and the
    /// client's turns end when its connection ends.
    pub local: Option<PathBuf>,
    /// True if the command line of this process has flags that apply only to turns in this process.
    #[serde(skip)]
    pub needs_own_process: bool,
    /// True unless the client's token is limited to roots: the client may see the metrics of this
    /// process and the counts of all its sessions, and may start programs as MCP servers.
    #[serde(default)]
    pub sees_all: bool,
    /// True if a model writes the client's prompts, which then use no MCP server.
    #[serde(default)]
    pub is_model: bool,
    /// Canonical root directories: the client has access to the sessions inside them. None gives
    /// access to every directory.
    roots: Option<Arc<[PathBuf]>>,
    /// nuncio's data directory. A client with access to a repository has access to the worktrees
    /// that nuncio created for it there.
    #[serde(default)]
    pub data: PathBuf,
    #[serde(skip)]
    capabilities: RwLock<acp::ClientCapabilities>,
    /// True if the capabilities include boolean options.
    #[serde(default)]
    boolean_options: AtomicBool,
    logged_out: AtomicBool,
    /// True if the client said that no person answers its permission requests.
    #[serde(skip)]
    is_program: AtomicBool,
    /// True if the turns of the client go on when its connection has ended.
    #[serde(skip)]
    finishes_turns: AtomicBool,
    #[serde(skip)]
    show: OnceLock<ShowSession>,
}

impl Client {
    /// Creates a client on the standard streams of this process: with the controller role, access
    /// to every directory and a generated id. `cwd` is the working directory of the process.
    pub(crate) fn new(principal: &str, cwd: PathBuf) -> Client {
        let id = format!("{principal}-{}", uuid::Uuid::now_v7().simple());
        Client { id, local: Some(cwd), ..Client::limited(principal, ClientRole::Controller, None) }
    }

    /// Creates a client with this role and these roots; `principal` is also the client's id.
    pub(crate) fn limited(principal: &str, role: ClientRole, roots: Option<Arc<[PathBuf]>>) -> Client {
        Client {
            principal: principal.into(),
            id: principal.into(),
            role,
            local: None,
            needs_own_process: false,
            sees_all: true,
            is_model: false,
            roots,
            data: PathBuf::new(),
            capabilities: RwLock::default(),
            boolean_options: AtomicBool::new(false),
            logged_out: AtomicBool::new(false),
            is_program: AtomicBool::new(false),
            finishes_turns: AtomicBool::new(false),
            show: OnceLock::new(),
        }
    }

    /// Returns the author of the turns and messages of the client.
    pub(crate) fn actor(&self) -> Actor {
        Actor::from(&*self.id)
    }

    /// Creates a client with the same principal and access rights, for one call.
    pub(crate) fn for_call(&self) -> Client {
        Client {
            sees_all: self.sees_all,
            data: self.data.clone(),
            ..Client::limited(&self.principal, self.role, self.roots.clone())
        }
    }

    /// Returns whether the client may change the user's settings: it is on the standard streams of
    /// this process, or has the owner's token.
    pub(in crate::api) fn is_owner(&self) -> bool {
        !self.is_model && (self.local.is_some() || self.principal == OWNER)
    }

    /// Returns [`Kind::Forbidden`] unless the client may change the user's settings.
    pub(in crate::api) fn require_owner(&self) -> Result<()> {
        match self.is_owner() {
            true => Ok(()),
            false => Err(Error::new(Kind::Forbidden, "only the owner of the server may change its settings")
                .hint("use the owner's token, or the command line of the server")),
        }
    }

    /// Returns whether turns of the client should run in its own process, which the owner of an
    /// idle session then lets take the session.
    pub(in crate::api) fn prefers_ownership(&self) -> bool {
        let capabilities = self.capabilities();
        let lends = capabilities.fs.read_text_file || capabilities.fs.write_text_file || capabilities.terminal;
        lends || self.needs_own_process
    }

    /// Returns whether the client sees the sessions to which it sends prompts.
    pub(in crate::api) fn shows(&self) -> bool {
        self.show.get().is_some()
    }

    /// Returns the capabilities that the client announced in `initialize`.
    pub(crate) fn capabilities(&self) -> acp::ClientCapabilities {
        self.capabilities.read().clone()
    }

    pub(crate) fn supports_boolean_options(&self) -> bool {
        self.boolean_options.load(Ordering::Acquire)
    }

    /// Returns who answers permission requests through the client.
    pub(crate) fn responder(&self) -> Responder {
        if self.is_program.load(Ordering::Acquire) { Responder::Program } else { Responder::Person }
    }

    /// Sets whether a person answers permission requests through the client.
    pub(crate) fn set_interactive(&self, interactive: bool) {
        self.is_program.store(!interactive, Ordering::Release);
    }

    /// Sets whether the turns of the client go on when its connection has ended.
    pub(crate) fn set_finishes_turns(&self, finishes: bool) {
        self.finishes_turns.store(finishes, Ordering::Release);
    }

    pub(crate) fn finishes_turns(&self) -> bool {
        self.finishes_turns.load(Ordering::Acquire)
    }

    /// Sets the capabilities of the client.
    pub(crate) fn introduce(&self, capabilities: acp::ClientCapabilities) {
        let options = capabilities.session.as_ref().and_then(|session| session.config_options.as_ref());
        self.boolean_options.store(options.is_some_and(|options| options.boolean.is_some()), Ordering::Release);
        *self.capabilities.write() = capabilities;
    }

    /// Sets the callback that makes the transport show a session. Only the first call has an
    /// effect.
    pub(crate) fn on_show(&self, show: ShowSession) {
        let _ = self.show.set(show);
    }

    /// Shows a session to the client that sent a prompt, from seq `after` on. The client then sees
    /// the turn and can answer permission requests even if it never opened the session.
    pub(crate) fn show(&self, session: &Session, after: Seq) {
        if let Some(show) = self.show.get() {
            show(session, after);
        }
    }

    /// Returns [`Kind::Forbidden`] unless the client has at least `role`.
    pub(crate) fn require_role(&self, role: ClientRole) -> Result<()> {
        if self.role < role {
            return Err(Error::new(Kind::Forbidden, format!("{} has the observer role", self.principal))
                .hint("use a token with the controller role"));
        }
        Ok(())
    }

    /// Returns whether the client has access to sessions in `dir`.
    pub(crate) fn has_access_to(&self, dir: &Path) -> bool {
        let Some(roots) = &self.roots else { return true };
        let inside = |dir: &Path| roots.iter().any(|root| dir.starts_with(root));
        // If the directory no longer exists, compare the recorded path.
        let exists = std::fs::canonicalize(dir);
        if exists.is_err() && dir.components().any(|part| part == Component::ParentDir) {
            return false;
        }
        let real = exists.unwrap_or_else(|_| dir.into());
        inside(&real)
            || worktree_origin(&worktrees_in(&self.data), &real).is_some_and(|origin| inside(&origin.repository.join(origin.rest)))
    }

    /// Returns [`Kind::Forbidden`] if `cwd` of session `id` is outside of the roots. The message
    /// does not reveal `cwd`.
    pub(crate) fn require_session(&self, id: &SessionId, cwd: &Path) -> Result<()> {
        if self.has_access_to(cwd) {
            return Ok(());
        }
        Err(Error::new(Kind::Forbidden, format!("session {id} is outside the allowed roots")))
    }

    /// Returns [`Kind::Forbidden`] if `dir` is outside of the roots.
    pub(crate) fn require_dir(&self, dir: &Path) -> Result<()> {
        if self.has_access_to(dir) {
            return Ok(());
        }
        Err(Error::new(Kind::Forbidden, format!("{} is outside the allowed roots", dir.display()))
            .hint("allow it with --root of the server and of the token"))
    }

    /// Marks the connection as logged out or logged in.
    pub(crate) fn log_out(&self, out: bool) {
        self.logged_out.store(out, Ordering::Release);
    }

    /// Returns [`Kind::Unauthenticated`] after a logout, until the client authenticates again.
    pub(crate) fn authorized(&self) -> Result<()> {
        if self.logged_out.load(Ordering::Acquire) {
            return Err(Error::new(Kind::Unauthenticated, "this connection is logged out").hint("call authenticate first"));
        }
        Ok(())
    }
}
