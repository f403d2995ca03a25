//! A session in which a hosted agent works: its process, which is restarted after a failure and
//! ended when it is idle.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::conversation::{ExternalTurn, HostedConversation, LiveSetup};
use super::opencode::OpencodeServers;
use super::process_handle::{ProcessHandle, ProcessSlot};
use super::process_record::ProcessRecord;
use super::turn_commands::TurnCommands;
use crate::config::McpServer;
use crate::event::timestamp;
use crate::runtime::{AgentToken, Services};
use crate::session::{ExternalTurnStarter, HostedProcess, SessionSetup};
use crate::task;

/// A hosted agent of one session.
pub(super) struct HostedSession {
    pub services: Arc<Services>,
    pub name: String,
    pub setup: SessionSetup,
    pub opencode: Arc<OpencodeServers>,
    pub live: Arc<tokio::sync::Mutex<Live>>,
    /// The running conversation, for reads that must not wait for a turn.
    current: Mutex<Option<Arc<dyn HostedConversation>>>,
    /// The process of the agent, also while it starts.
    pub process: ProcessSlot,
    /// MCP servers that the client gave.
    pub given: Mutex<BTreeMap<String, McpServer>>,
    /// Commands that the agent runs with nuncio.
    pub commands: TurnCommands,
    /// Number of turns so far.
    pub turns: AtomicU64,
    start_external: ExternalTurnStarter,
    pub this: Weak<HostedSession>,
}

/// The state of the agent's process. Locked during a turn.
#[derive(Default)]
pub(super) struct Live {
    pub conversation: Option<Arc<dyn HostedConversation>>,
    /// The token with which the process uses nuncio's MCP server.
    pub token: Option<AgentToken>,
    pub setup: LiveSetup,
    /// Records the use of the process.
    pub record: Option<ProcessRecord>,
    /// Waits for turns of other clients of the agent.
    watch: Option<AbortOnDropHandle<()>>,
    /// Failed starts since the last successful one.
    pub failures: u32,
    pub not_before: Option<Instant>,
    /// The model that the agent used in place of the session's, which was reported.
    pub other_model: Option<String>,
}

impl Live {
    /// Stops waiting for turns of other clients. The task may hold a connection to the agent.
    pub(super) async fn stop_watch(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.abort();
            // The result of an aborted task is an error.
            let _ = watch.await;
        }
    }
}

impl HostedSession {
    pub(super) fn new(
        services: Arc<Services>,
        opencode: Arc<OpencodeServers>,
        name: String,
        setup: SessionSetup,
        start_external: ExternalTurnStarter,
    ) -> Arc<HostedSession> {
        Arc::new_cyclic(|this| HostedSession {
            services,
            opencode,
            name,
            setup,
            live: Arc::default(),
            current: Mutex::default(),
            process: ProcessSlot::default(),
            given: Mutex::default(),
            commands: TurnCommands::default(),
            turns: AtomicU64::new(0),
            start_external,
            this: this.clone(),
        })
    }

    pub(super) fn current(&self) -> Option<Arc<dyn HostedConversation>> {
        self.current.lock().clone()
    }

    pub(super) fn set_current(&self, conversation: Option<Arc<dyn HostedConversation>>) {
        *self.current.lock() = conversation;
    }

    /// Ends the agent's process, if it runs.
    pub(super) async fn end_live(&self, live: &mut Live) {
        self.set_current(None);
        live.token = None;
        live.stop_watch().await;
        if let Some(conversation) = live.conversation.take() {
            conversation.close().await;
        }
        if let Some(record) = live.record.take() {
            record.end().await;
        }
    }

    /// Returns the process of the agent, unless it has ended.
    pub(super) fn running(&self) -> Option<ProcessHandle> {
        self.process.lock().clone().filter(|process| !process.has_ended())
    }

    /// Describes the process, with what the agent has reported if it is ready.
    pub(super) fn view(&self, process: &ProcessHandle) -> HostedProcess {
        let current = self.current();
        HostedProcess {
            agent: self.name.clone(),
            pid: process.processes.command(),
            cwd: process.cwd.clone(),
            started_at: timestamp(process.started_ms),
            version: current.as_ref().and_then(|conversation| conversation.report().version),
            port: current.and_then(|conversation| conversation.port()),
            sessions: 1,
        }
    }

    /// Waits for a turn that another client of the agent begins, until the next turn.
    pub(super) fn watch(&self, live: &mut Live) {
        let running = live.conversation.clone().filter(|conversation| !conversation.process().has_ended());
        let Some(conversation) = running else { return };
        let start_external = self.start_external.clone();
        live.watch = Some(AbortOnDropHandle::new(task::spawn(async move {
            let started = match conversation.external_turn().await {
                Ok(ExternalTurn { prompt, by }) => start_external(prompt, by),
                Err(error) => Err(error),
            };
            if let Err(error) = started {
                tracing::debug!(%error, "nuncio does not follow turns of other clients");
            }
        })));
    }

    /// Ends the agent's process if no turn runs for `ttl`.
    pub(super) fn end_when_idle(&self, ttl: Duration) {
        let (this, turns) = (self.this.clone(), self.turns.load(Ordering::Relaxed));
        task::spawn(async move {
            tokio::time::sleep(ttl).await;
            let Some(this) = this.upgrade() else { return };
            let mut live = this.live.lock().await;
            // An agent that cannot resume its session would lose the conversation.
            let resumable = live.conversation.as_ref().is_some_and(|conversation| conversation.can_resume());
            if resumable && this.turns.load(Ordering::Relaxed) == turns {
                this.end_live(&mut live).await;
            }
        });
    }

    pub(super) async fn end(&self) {
        let mut live = self.live.lock().await;
        self.end_live(&mut live).await;
    }
}
