//! Hosted agents, which work in nuncio's sessions: each runs as a child process, and its messages,
//! tool calls and permission requests become events of the session.

mod abilities;
mod acp;
mod attach;
mod call;
mod check;
mod claude_code;
mod codex;
mod conversation;
mod driver;
mod events;
mod hosted;
mod hosted_session;
mod hosted_turn;
mod known;
mod mcp_servers;
mod message_queue;
mod open_requests;
mod opencode;
pub(super) mod opencode_server;
mod options;
mod own_rules;
mod peer;
mod permission;
mod private_file;
mod process;
mod process_handle;
mod process_record;
mod process_sandbox;
mod project_config;
pub(crate) mod project_files;
mod protocols;
mod raw_output;
mod refusal;
mod registry;
mod reported_version;
mod session_settings;
mod start;
mod status_report;
mod stderr_tail;
mod terminal_command;
mod terminal_sessions;
mod transcript_end;
mod turn_commands;
mod turn_environment;
mod turn_review;
mod turn_size;

use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use check::{AgentCheck, check};
use hosted_session::HostedSession;
pub(crate) use known::{KNOWN, KnownAgent};
use opencode::OpencodeServers;
pub(crate) use registry::{attach_command, check_name, find};
pub(crate) use status_report::{StatusReport, TerminalReport};
pub(crate) use terminal_command::{HookServer, terminal_command};
pub(crate) use terminal_sessions::workspace_of_header;
pub use terminal_sessions::{TERMINAL_KEPT, TERMINAL_SILENT, TerminalHook, TerminalSession, TerminalSessions};

use crate::agent::NativeAgents;
use crate::config::worktrees_in;
use crate::error::Result;
use crate::runtime::Services;
use crate::session::{Agent, AgentInfo, AgentSetting, Agents, ExternalTurnStarter, SessionSetup};
use crate::workspace::real_path;

/// The agents of this process: nuncio's own, and the hosted agents of the settings.
pub(crate) struct Hub {
    native: NativeAgents,
    services: Arc<Services>,
    opencode: Arc<OpencodeServers>,
}

impl Hub {
    pub(crate) fn new(services: Arc<Services>) -> Hub {
        Hub { native: NativeAgents(services.clone()), services, opencode: Arc::default() }
    }
}

impl Agents for Hub {
    fn list(&self) -> Vec<AgentInfo> {
        let mut agents = self.native.list();
        agents.extend(registry::list(&self.services));
        agents
    }

    fn open(&self, setup: SessionSetup, start_external: ExternalTurnStarter) -> Arc<dyn Agent> {
        match setup.agent.clone() {
            Some(name) => HostedSession::new(self.services.clone(), self.opencode.clone(), name, setup, start_external),
            None => self.native.open(setup, start_external),
        }
    }

    fn directories(&self) -> Vec<PathBuf> {
        let services = &self.services;
        let more = services.overrides.roots.iter().chain(&services.user.settings.allowed_paths).cloned();
        let all = std::iter::once(services.models.cwd.clone()).chain(more).chain([worktrees_in(&services.places.data)]);
        all.map(|directory| real_path(&directory)).collect()
    }

    fn check(&self, setup: &SessionSetup, settings: &[AgentSetting]) -> Result<()> {
        self.native.check(setup, settings)?;
        let Some(name) = &setup.agent else { return Ok(()) };
        let agent = registry::allowed(&self.services, name)?;
        registry::check_trust(&self.services, name, &setup.cwd)?;
        abilities::check_hooks(name, &agent, &self.services.settings(&setup.cwd)?)?;
        abilities::check(name, &agent, settings)?;
        abilities::check(name, &agent, &session_settings::set_by_flags(&self.services.overrides, name))
    }
}
