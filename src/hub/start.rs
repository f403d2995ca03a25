//! Starts the process of a hosted agent for a session.

use std::sync::Arc;

use super::conversation::{HostedConversation, LiveSetup, OpenInput};
use super::mcp_servers::AgentMcp;
use super::opencode::OpencodeServers;
use super::process_handle::ProcessSlot;
use super::process_sandbox::ProcessSandbox;
use super::registry;
use crate::config::{AGENT_SESSION_VARIABLE, AgentScope, DEPTH_VARIABLE, HostedAgent, LoadedSettings};
use crate::error::Result;
use crate::process::Command;
use crate::runtime::{AgentToken, McpAccess, Models, Services};
use crate::session::{SessionSetup, Turn};

/// A process that was started.
pub(super) struct StartedAgent {
    pub conversation: Arc<dyn HostedConversation>,
    /// The token with which the process uses nuncio's MCP server.
    pub token: Option<AgentToken>,
}

/// The start of an agent for the turn of a session.
pub(super) struct Start<'a> {
    pub services: &'a Services,
    pub opencode: &'a Arc<OpencodeServers>,
    pub name: &'a str,
    pub session: &'a SessionSetup,
    pub agent: &'a HostedAgent,
    /// The settings in effect in the session's directory.
    pub loaded: &'a LoadedSettings,
    pub turn: &'a Turn,
    /// Receives the process when it is started.
    pub process: &'a ProcessSlot,
}

impl Start<'_> {
    /// Starts the agent, and creates or resumes its session.
    pub(super) async fn open(&self, setup: &LiveSetup) -> Result<StartedAgent> {
        let Start { services, name, agent, turn, .. } = *self;
        let depth = services.depth_of(Some(&turn.log.id), self.session.parent.as_ref()) + 1;
        let session = turn.log.state(|state| state.settings.agent_session.clone());
        let mut opening = registry::opening(services, name, agent, &setup.cwd, self.opencode)?;
        opening.start.process = self.process.clone();
        opening.start.command = self.command(opening.start.command, setup, session.as_deref(), depth);
        if let Some(mode) = setup.sandbox {
            let roots = std::iter::once(&setup.cwd).chain(&setup.directories).cloned().collect();
            let sandbox = ProcessSandbox { services, name, agent, mode, roots, data: opening.data.clone() };
            opening.start.command = sandbox.confine(opening.start.command)?;
        }
        let (mut mcp, mut token) = (AgentMcp::default(), None);
        if agent.mcp {
            mcp.give(services, setup.given.clone())?;
            // In a sandbox, the program could not read nuncio's directories.
            if setup.sandbox.is_none() {
                mcp.add_own(services, &opening.start.command.env_set);
            }
            // No token for a shared server: all its sessions would use the token of one of them.
            if agent.scope == AgentScope::Session {
                let access = McpAccess::hosted(&services.places.data, turn.log.id.clone(), &setup.cwd, &setup.directories, depth);
                token = mcp.add_http(services, access.without_requests())?;
            }
        }
        let opening = OpenInput {
            setup: setup.clone(),
            session,
            cost: turn.log.state(|state| state.turns.total().1).unwrap_or_default(),
            mcp,
            ..opening
        };
        let conversation = (agent.kind.protocol().open)(opening).await?;
        if let Some(token) = &token {
            let weak = Arc::downgrade(&conversation);
            token.valid_while(move || weak.upgrade().is_some_and(|conversation| !conversation.process().has_ended()));
        }
        Ok(StartedAgent { conversation, token })
    }

    /// Completes the environment of the agent. Removes the secrets of the session's settings,
    /// except variables in the agent's own settings.
    fn command(&self, mut command: Command, setup: &LiveSetup, session: Option<&str>, depth: u32) -> Command {
        let Start { services, loaded, turn, .. } = *self;
        let mut variables = services.session_variables(Some(&turn.log.id), &setup.cwd);
        if let Some(session) = session {
            variables.set(AGENT_SESSION_VARIABLE, session);
        }
        for secret in Models::secret_names(&loaded.settings) {
            if !command.env_set.iter().any(|(name, _)| *name == *secret) {
                command = command.env_remove(secret);
            }
        }
        command.variables(variables.iter()).env(DEPTH_VARIABLE, depth.to_string())
    }
}
