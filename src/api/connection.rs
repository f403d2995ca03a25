//! Whoever is at the other end of a door.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};
use crate::id::{Seq, SessionId};
use crate::protocol::acp;
use crate::session::Session;

/// How a door begins to show a session after an event, unless it shows it already.
pub type Show = Box<dyn Fn(&Arc<Session>, Seq) + Send + Sync>;

/// What a client may do: an observer reads; a controller prompts, answers and changes, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TokenRole")]
pub enum Role {
    Observer,
    Controller,
}

/// One client: who it is, what it said of itself, and what it may do.
pub struct Client {
    /// Who decides, in the log: `client`, `terminal`, the name of a token.
    pub principal: String,
    /// Tells it from other clients, in the log too.
    pub id: String,
    pub role: Role,
    /// It is connected to the standard streams of this process: its prompts wait for their turn,
    /// and its relative paths count from the directory of the process.
    pub local: bool,
    /// Everything that this process serves is its business.
    pub sees_all: bool,
    /// Directories, without symlinks, that its sessions must be in; none: any.
    roots: Option<Arc<[PathBuf]>>,
    capabilities: RwLock<acp::ClientCapabilities>,
    logged_out: AtomicBool,
    show: OnceLock<Show>,
}

impl Client {
    /// One that may do everything everywhere.
    pub fn new(principal: &str) -> Client {
        let id = format!("{principal}-{}", uuid::Uuid::now_v7().simple());
        Client { id, ..Client::limited(principal, Role::Controller, None) }
    }

    pub fn limited(principal: &str, role: Role, roots: Option<Arc<[PathBuf]>>) -> Client {
        Client {
            principal: principal.into(),
            id: principal.into(),
            role,
            local: false,
            sees_all: true,
            roots,
            capabilities: RwLock::default(),
            logged_out: AtomicBool::new(false),
            show: OnceLock::new(),
        }
    }

    /// The same principal with the same rights, for another call.
    pub fn again(&self) -> Client {
        Client { sees_all: self.sees_all, ..Client::limited(&self.principal, self.role, self.roots.clone()) }
    }

    pub fn capabilities(&self) -> acp::ClientCapabilities {
        self.capabilities.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn introduce(&self, capabilities: acp::ClientCapabilities) {
        *self.capabilities.write().unwrap_or_else(PoisonError::into_inner) = capabilities;
    }

    /// For a door that shows sessions as they go on.
    pub fn on_show(&self, show: Show) {
        let _ = self.show.set(show);
    }

    /// Whoever prompts sees what comes of it and can be asked about it, also where they never opened the session.
    pub fn show(&self, session: &Arc<Session>, after: Seq) {
        if let Some(show) = self.show.get() {
            show(session, after);
        }
    }

    /// `forbidden` unless it is at least `role`.
    pub fn must_be(&self, role: Role) -> Result<()> {
        if self.role < role {
            return Err(Error::new(Kind::Forbidden, format!("{} may only look", self.principal)).hint("use a controller's token"));
        }
        Ok(())
    }

    /// Whether sessions in `dir` are its business.
    pub fn may_enter(&self, dir: &Path) -> bool {
        let Some(roots) = &self.roots else { return true };
        match std::fs::canonicalize(dir) {
            Ok(real) => roots.iter().any(|root| real.starts_with(root)),
            // One that is gone was somewhere, too.
            Err(_) => !dir.components().any(|part| part == Component::ParentDir) && roots.iter().any(|root| dir.starts_with(root)),
        }
    }

    /// `forbidden` for a session that works elsewhere; where that is, is not told.
    pub fn must_see(&self, id: &SessionId, cwd: &Path) -> Result<()> {
        if self.may_enter(cwd) {
            return Ok(());
        }
        Err(Error::new(Kind::Forbidden, format!("session {id} is outside of the allowed roots")))
    }

    /// `forbidden` outside of its roots.
    pub fn must_enter(&self, dir: &Path) -> Result<()> {
        if self.may_enter(dir) {
            return Ok(());
        }
        Err(Error::new(Kind::Forbidden, format!("{} is outside of the allowed roots", dir.display()))
            .hint("the server's --root, and the token's, say what is inside"))
    }

    pub fn log_out(&self, out: bool) {
        self.logged_out.store(out, Ordering::Release);
    }

    /// `unauthenticated` after a logout, until it authenticates again.
    pub fn authorized(&self) -> Result<()> {
        if self.logged_out.load(Ordering::Acquire) {
            return Err(Error::new(Kind::Unauthenticated, "this connection is logged out").hint("call authenticate first"));
        }
        Ok(())
    }
}
