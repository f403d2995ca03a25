//! A hosted agent as the agent of a session.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::abilities;
use super::conversation::COMPACT;
use super::hosted_session::HostedSession;
use super::hosted_turn::HostedTurn;
use super::registry;
use super::session_settings;
use crate::config::McpServer;
use crate::content::StopReason;
use crate::context::commands::SlashCommand;
use crate::error::Result;
use crate::runtime::TurnBudget;
use crate::session::context_report::{ContextReport, ContextSources};
use crate::session::{Agent, AgentOption, AgentSetting, CommandRequest, CommandResult, HostedProcess, SessionLog, Turn};

impl HostedSession {
    /// Runs a turn, and ends the agent's process if no turn follows for some time.
    async fn work(&self, turn: &Turn) -> Result<StopReason> {
        let agent = registry::allowed(&self.services, &self.name)?;
        let cwd = turn.log.state(|state| state.cwd.clone());
        registry::check_trust(&self.services, &self.name, &cwd)?;
        let loaded = self.services.settings(&cwd)?;
        let wanted = turn.log.state(|state| session_settings::wanted(&state.settings, &self.services.overrides, &self.name));
        self.turns.fetch_add(1, Ordering::Relaxed);
        let budget = TurnBudget::with_limits(turn, &loaded.settings, abilities::chosen_limits(&loaded));
        let idle_ttl = registry::idle_ttl(&self.services, &agent);
        let result =
            HostedTurn { session: self, turn, agent, loaded, cwd, wanted, budget, usage_reports: Notify::new() }.run().await;
        self.end_when_idle(idle_ttl);
        result
    }
}

impl Agent for HostedSession {
    fn run<'a>(&'a self, turn: &'a Turn) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(self.work(turn))
    }

    fn context<'a>(&'a self, log: &'a SessionLog) -> BoxFuture<'a, Result<ContextReport>> {
        Box::pin(async move {
            let tokens = log.state(|state| state.context_tokens);
            let context_window = self.current().map_or(0, |conversation| conversation.report().context_window);
            let free = context_window.saturating_sub(tokens);
            let sources = ContextSources { messages: tokens, free, ..ContextSources::default() };
            Ok(ContextReport { model: self.name.clone(), context_window, tokens, measured: tokens > 0, compact_at: None, sources })
        })
    }

    fn check_settings(&self, settings: &[AgentSetting]) -> Result<()> {
        if settings.is_empty() {
            return Ok(());
        }
        let agent = registry::allowed(&self.services, &self.name)?;
        abilities::check(&self.name, &agent, settings)?;
        // The commands of an agent that does not run are not known.
        let commands = self.current().map(|conversation| conversation.report().commands).unwrap_or_default();
        let lacks_compact = !commands.is_empty() && !commands.iter().any(|command| command.name == COMPACT);
        match settings.iter().find(|setting| **setting == AgentSetting::Compaction && lacks_compact) {
            Some(setting) => Err(setting.refused(&self.name)),
            None => Ok(()),
        }
    }

    fn set_mcp_servers(&self, servers: BTreeMap<String, McpServer>) {
        *self.given.lock() = servers;
    }

    fn execute(&self, command: CommandRequest) -> BoxFuture<'_, Result<CommandResult>> {
        Box::pin(self.commands.run(command))
    }

    fn commands<'a>(&'a self, _cwd: &'a Path, _check: bool) -> BoxFuture<'a, Arc<[SlashCommand]>> {
        let commands = self.current().map(|conversation| conversation.report().commands).unwrap_or_default();
        Box::pin(async move { commands.into() })
    }

    fn options(&self) -> Vec<AgentOption> {
        self.current().map(|conversation| conversation.report().options).unwrap_or_default()
    }

    fn process(&self) -> Option<HostedProcess> {
        self.running().map(|process| self.view(&process))
    }

    fn end_process(&self, cancelled: CancellationToken) -> BoxFuture<'_, Option<HostedProcess>> {
        Box::pin(async move {
            let running = self.running().map(|process| (self.view(&process), process));
            let mut live = self.live.lock().await;
            cancelled.cancelled().await;
            if let Some((_, process)) = &running {
                process.end().await;
            }
            self.end_live(&mut live).await;
            // The id of a process that was just starting is known by now.
            running.map(|(view, process)| HostedProcess { pid: process.processes.command(), ..view })
        })
    }

    fn own_rules(&self, log: &SessionLog) -> Option<String> {
        let agent = registry::allowed(&self.services, &self.name).ok()?;
        let (cwd, mode) = log.state(|state| (state.cwd.clone(), state.mode.known().unwrap_or_default()));
        registry::own_rules(&self.services, &self.name, &agent, &cwd, mode).map(|own| own.source)
    }

    /// Returns true if the session must stay open because the running agent cannot resume it in a
    /// new process.
    fn has_background_work(&self) -> bool {
        self.current().is_some_and(|conversation| !conversation.process().has_ended() && !conversation.can_resume())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.end())
    }
}
