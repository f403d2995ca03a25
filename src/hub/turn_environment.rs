//! The environment of a hosted agent's turn: for the commands that it runs with nuncio, and for the
//! hooks and the checks of the turn.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::config::{AGENT_PORT_VARIABLE, AGENT_SESSION_VARIABLE};
use crate::content::ToolStatus;
use crate::error::Result;
use crate::event::SessionParent;
use crate::hooks::HookTool;
use crate::id::ToolCallId;
use crate::runtime::{ForeignCallHooks, Services, SessionEnvironment};
use crate::session::Turn;
use crate::task;

/// The environment of a turn, which is created when it is first used.
pub(super) struct TurnEnvironment<'a> {
    pub services: &'a Arc<Services>,
    pub turn: &'a Turn,
    pub parent: Option<&'a SessionParent>,
    /// The port and the session of the agent.
    pub agent: (Option<u16>, String),
    /// The session has hooks for tool calls.
    pub has_hooks: bool,
    /// The hooks run when the agent asks for permission, because it does not ask before each call.
    pub checks_requests: bool,
    pub created: OnceCell<Arc<SessionEnvironment>>,
    /// The calls that were denied. The agent must not run them.
    pub denied: Mutex<HashSet<ToolCallId>>,
    /// The files that the agent reports as changed.
    pub announced: Mutex<HashSet<PathBuf>>,
}

impl<'a> TurnEnvironment<'a> {
    /// Returns the environment. The first call reads files.
    pub(super) async fn get(&self) -> Result<&Arc<SessionEnvironment>> {
        self.created.get_or_try_init(|| self.create()).await
    }

    async fn create(&self) -> Result<Arc<SessionEnvironment>> {
        let (services, id, parent) = (self.services.clone(), self.turn.log.id.clone(), self.parent.cloned());
        let (cwd, directories) = self.turn.log.state(|state| (state.cwd.clone(), state.additional_directories().to_vec()));
        let (port, session) = self.agent.clone();
        let build = move || {
            let mut environment = SessionEnvironment::new(services, Some(&id), parent.as_ref(), cwd, directories, None)?;
            environment.set_variable(AGENT_SESSION_VARIABLE, session);
            if let Some(port) = port {
                environment.set_variable(AGENT_PORT_VARIABLE, port.to_string());
            }
            Ok(Arc::new(environment))
        };
        task::blocking("building the environment", build).await?
    }

    /// Runs the hooks before a call about which the agent asks. Returns why they block it, if they
    /// do.
    pub(super) async fn before_call(&self, call: HookTool) -> Option<String> {
        if !self.has_hooks {
            return None;
        }
        match self.get().await {
            Ok(environment) => ForeignCallHooks { host: self.turn, environment }.before(call).await,
            Err(error) => Some(format!("the hooks cannot run: {error}")),
        }
    }

    /// Runs the hooks after a call.
    pub(super) async fn after_call(&self, call: HookTool, status: ToolStatus, output: String) {
        if self.has_hooks
            && let Ok(environment) = self.get().await
        {
            let hooks = ForeignCallHooks { host: self.turn, environment };
            hooks.after(call, status == ToolStatus::Completed, output).await;
        }
    }
}
