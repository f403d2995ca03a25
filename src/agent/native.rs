//! Creates the native agents of this process.

use std::sync::Arc;

use super::services::Services;
use super::turn_loop::NativeAgent;
use crate::error::Result;
use crate::session::{Agent, AgentInfo, Agents, SessionSetup};

/// Creates native agents, the only kind of agent in this process.
pub(crate) struct NativeAgents(pub Arc<Services>);

impl Agents for NativeAgents {
    fn list(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { name: "nuncio", kind: "native", version: env!("CARGO_PKG_VERSION") }]
    }

    fn open(&self, setup: SessionSetup) -> Arc<dyn Agent> {
        Arc::new(NativeAgent::new(self.0.clone(), setup.id))
    }

    fn check(&self, setup: &SessionSetup) -> Result<()> {
        self.0.settings(&setup.cwd).map(drop)
    }
}
