//! Whoever is at the other end of a door.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::error::{Error, Kind, Result};
use crate::id::Seq;
use crate::protocol::acp;
use crate::session::Session;

/// How a door begins to show a session after an event, unless it shows it already.
pub type Show = Box<dyn Fn(&Arc<Session>, Seq) + Send + Sync>;

/// One client: what it said of itself, and whether it may work.
pub struct Client {
    /// Who decides, in the log: `client`, `terminal`.
    pub principal: &'static str,
    /// Tells it from other clients, in the log too.
    pub id: String,
    capabilities: RwLock<acp::ClientCapabilities>,
    logged_out: AtomicBool,
    show: OnceLock<Show>,
}

impl Client {
    pub fn new(principal: &'static str) -> Client {
        Client {
            principal,
            id: format!("{principal}-{}", uuid::Uuid::now_v7().simple()),
            capabilities: RwLock::default(),
            logged_out: AtomicBool::new(false),
            show: OnceLock::new(),
        }
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
