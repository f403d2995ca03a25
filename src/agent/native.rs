//! The native agents of this process, as sessions use them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::messages;
use super::native_agent::NativeAgent;
use super::request::{report, request};
use super::run;
use super::setup;
use crate::config::{McpServer, NATIVE};
use crate::content::StopReason;
use crate::context::commands::SlashCommand;
use crate::error::Result;
use crate::runtime::services::Services;
#[cfg(feature = "mcp")]
use crate::session::McpResource;
use crate::session::context_report::ContextReport;
use crate::session::message::IncomingMessage;
use crate::session::{
    Agent, AgentInfo, AgentProgram, AgentSetting, AgentSetup, Agents, ExternalTurnStarter, SessionLog, SessionSetup, Turn,
};
use crate::toolkit::jobs::Jobs;

/// Creates nuncio's own agents.
pub(crate) struct NativeAgents(pub Arc<Services>);

impl Agents for NativeAgents {
    fn list(&self) -> Vec<AgentInfo> {
        let version = Some(env!("CARGO_PKG_VERSION").into());
        let program = AgentProgram { name: NATIVE.into(), kind: "native".into(), command: None, version };
        vec![AgentInfo { program, problem: None, processes: None }]
    }

    fn open(&self, setup: SessionSetup, _start_external: ExternalTurnStarter) -> Arc<dyn Agent> {
        Arc::new(NativeAgent::new(self.0.clone(), setup.id, setup.parent))
    }

    fn check(&self, setup: &SessionSetup, _settings: &[AgentSetting]) -> Result<()> {
        self.0.check_depth()?;
        self.0.settings(&setup.cwd).map(drop)
    }
}

impl Agent for NativeAgent {
    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(run::run(self, turn))
    }

    fn context<'a>(&'a self, log: &'a SessionLog) -> BoxFuture<'a, Result<ContextReport>> {
        Box::pin(async {
            let environment = self.next_environment(log).await?;
            let (_, model, _) = self.open_model(log, &environment).await?;
            let system = self.prompt.preview(log, &environment, model.id())?;
            let request = request(log, &environment, &system);
            Ok(report(log, &environment, &*model, &request))
        })
    }

    fn setup<'a>(&'a self, log: &'a SessionLog) -> BoxFuture<'a, Result<AgentSetup>> {
        Box::pin(async { setup::read(&self.services, &self.prompt, &self.next_environment(log).await?, log) })
    }

    fn set_mcp_servers(&self, servers: BTreeMap<String, McpServer>) {
        self.mcp.set_client_servers(servers);
    }

    fn prepare<'a>(&'a self, turn: &'a Turn, message: &'a mut IncomingMessage, opens: bool) -> BoxFuture<'a, Result<()>> {
        Box::pin(messages::prepare(self, turn, message, opens))
    }

    fn commands<'a>(&'a self, cwd: &'a Path, check: bool) -> BoxFuture<'a, Arc<[SlashCommand]>> {
        Box::pin(messages::list_commands(self, cwd, check))
    }

    fn has_background_work(&self) -> bool {
        !self.background_jobs().is_empty()
    }

    #[cfg(feature = "mcp")]
    fn resources(&self) -> BoxFuture<'_, Vec<McpResource>> {
        Box::pin(crate::runtime::mcp::prompts::resources(&self.mcp))
    }

    fn jobs(&self) -> Option<Arc<Jobs>> {
        self.environment.lock().as_ref().map(|environment| environment.shell.jobs.clone())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.mcp.close();
            let environment = self.environment.lock().take();
            if let Some(environment) = environment {
                environment.shell.jobs.close().await;
                // Dropping the environment removes its temporary files, which may block.
                let _ = tokio::task::spawn_blocking(move || drop(environment)).await;
            }
        })
    }
}
