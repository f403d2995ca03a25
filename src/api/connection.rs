//! Whoever is at the other end of a door.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::error::{Error, Kind, Result};
use crate::protocol::acp;

/// One client: what it said of itself, and whether it may work.
pub struct Client {
    /// Who decides, in the log: `client`, `terminal`.
    pub principal: &'static str,
    /// Tells it from other clients, in the log too.
    pub id: String,
    capabilities: RwLock<acp::ClientCapabilities>,
    logged_out: AtomicBool,
}

impl Client {
    pub fn new(principal: &'static str) -> Client {
        Client {
            principal,
            id: format!("{principal}-{}", uuid::Uuid::now_v7().simple()),
            capabilities: RwLock::default(),
            logged_out: AtomicBool::new(false),
        }
    }

    pub fn capabilities(&self) -> acp::ClientCapabilities {
        self.capabilities.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn introduce(&self, capabilities: acp::ClientCapabilities) {
        *self.capabilities.write().unwrap_or_else(PoisonError::into_inner) = capabilities;
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
