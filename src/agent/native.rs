//! Creates the native agents of this process.

use std::sync::Arc;

use super::services::Services;
use super::turn::turn_loop::NativeAgent;
use crate::config::NATIVE;
use crate::error::Result;
use crate::session::{AdoptTurn, Agent, AgentInfo, Agents, SessionSetup};

/// Creates nuncio's own agents.
pub(crate) struct NativeAgents(pub Arc<Services>);

impl Agents for NativeAgents {
    fn list(&self) -> Vec<AgentInfo> {
        vec![AgentInfo {
            name: NATIVE.into(),
            kind: "native",
            version: env!("CARGO_PKG_VERSION").into(),
            command: Vec::new(),
            problem: None,
        }]
    }

    fn open(&self, setup: SessionSetup, _adopt: AdoptTurn) -> Arc<dyn Agent> {
        Arc::new(NativeAgent::new(self.0.clone(), setup.id, setup.parent))
    }

    fn check(&self, setup: &SessionSetup) -> Result<()> {
        self.0.check_depth()?;
        self.0.settings(&setup.cwd).map(drop)
    }
}
