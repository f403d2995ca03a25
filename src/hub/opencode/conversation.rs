//! Agents of the kind `opencode`: sessions in an OpenCode server.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::calls::permission_actions;
use super::catalog::Catalog;
use super::tree::SessionTree;
use crate::config::{AGENT_SESSION_VARIABLE, AgentScope, McpServer, SESSION_VARIABLE};
use crate::content::{Part, StopReason};
use crate::error::{Error, Result};
use crate::hub::attach;
use crate::hub::conversation::{AgentReport, COMPACT, ExternalTurn, HostedConversation, OpenInput, compact_command};
use crate::hub::driver::TurnIo;
use crate::hub::opencode_server::{OpencodeServer, ServerLease, about_session};
use crate::hub::private_file::PrivateFile;
use crate::hub::process::{AgentProcess, ProgramStart, unavailable};

/// A session in an OpenCode server.
pub(super) struct OpencodeConversation {
    pub name: String,
    pub session: String,
    lease: ServerLease,
    /// True if other sessions may use the server.
    shared: bool,
    version: Option<String>,
    unused_servers: Vec<String>,
    /// Added to the system prompt.
    pub added_prompt: Option<String>,
    pub catalog: Catalog,
    state: Mutex<OpencodeState>,
    /// Lets the user's terminal client attach.
    _attach: Option<PrivateFile>,
}

/// The state that turns and options change.
#[derive(Clone, Default)]
pub(super) struct OpencodeState {
    /// The OpenCode agent that receives the prompts; `None`: the default agent.
    pub agent: Option<String>,
    /// `PROVIDER/MODEL` of the prompts; `None`: the default model.
    pub model: Option<String>,
    /// The id of the last message that is recorded. Ids of later messages are greater.
    pub last: String,
    /// `PROVIDER/MODEL` of the last request; empty before the first.
    pub last_model: String,
    /// The session and the sessions of its subagents so far.
    pub sessions: SessionTree,
}

/// The environment variables with the id of the session, for a server with one session.
const OF_SESSION: [&str; 2] = [SESSION_VARIABLE, AGENT_SESSION_VARIABLE];

/// Starts a server or uses the running one, and creates or resumes the session.
pub(in crate::hub) fn open(opening: OpenInput) -> BoxFuture<'static, Result<Arc<dyn HostedConversation>>> {
    Box::pin(async move {
        let key = |what: &str| format!("{}\n{what}", opening.start.name);
        let workspace = (opening.settings.scope == AgentScope::Workspace).then(|| key(&opening.setup.cwd.to_string_lossy()));
        let known = workspace.clone().or_else(|| opening.session.as_deref().map(key));
        let start = ProgramStart { command: command(&opening), ..opening.start.clone() };
        let lease = opening.opencode.lease(known.as_deref(), start).await?;
        let unused_servers = add_servers(&opening, &lease.server).await;
        match begin(&opening, &lease.server).await {
            Ok((session, last, version)) => {
                if workspace.is_none() {
                    opening.opencode.remember(key(&session), &lease);
                }
                let attach = attach::write(&opening.data, &session, &lease.server.address(), lease.server.password());
                let attach = attach.inspect_err(|error| tracing::warn!(%error, "no terminal client can attach")).ok();
                let catalog = Catalog::read(&lease.server).await;
                let sessions = SessionTree::new(&session);
                Ok(Arc::new(OpencodeConversation {
                    name: opening.start.name,
                    session,
                    lease,
                    shared: workspace.is_some(),
                    version,
                    unused_servers,
                    added_prompt: opening.setup.settings.system_prompt_append,
                    catalog,
                    state: Mutex::new(OpencodeState { last, sessions, ..OpencodeState::default() }),
                    _attach: attach,
                }) as Arc<dyn HostedConversation>)
            }
            Err(error) => {
                lease.release().await;
                Err(error)
            }
        }
    })
}

/// Returns the command that starts a server, with the environment variables that nuncio sets.
fn command(opening: &OpenInput) -> crate::process::Command {
    let mut command = opening.start.command.clone();
    if opening.settings.scope == AgentScope::Workspace {
        command.env_set.retain(|(name, _)| !OF_SESSION.iter().any(|of_session| name == of_session));
        command.env_removed.extend(OF_SESSION.map(Into::into));
    }
    let actions = permission_actions(opening.setup.has_hooks);
    let permission: Value = actions.map(|(name, action)| (name.to_owned(), Value::from(action))).collect();
    for name in ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"] {
        if !command.env_set.iter().any(|(set, _)| set == name) {
            command = command.env(name, "1");
        }
    }
    // Overrides the project's opencode.json, also for subagents.
    command.env("OPENCODE_PERMISSION", permission.to_string())
}

/// Adds the MCP servers. Returns the names of those that OpenCode does not use.
async fn add_servers(opening: &OpenInput, server: &OpencodeServer) -> Vec<String> {
    let mut unused = Vec::new();
    for (name, mcp) in opening.mcp.usable(true).0 {
        let added = server.post("/mcp", &json!({ "name": name, "config": mcp_config(&mcp, opening.settings.scope) })).await;
        if let Err(error) = added {
            tracing::warn!(server = name, %error, "OpenCode does not use an MCP server");
            unused.push(name);
        }
    }
    unused
}

/// Creates or resumes the session. Returns its id, the id of its last message and the server's
/// version.
async fn begin(opening: &OpenInput, server: &OpencodeServer) -> Result<(String, String, Option<String>)> {
    let rule = |(permission, action): (&str, &str)| json!({ "permission": permission, "pattern": "*", "action": action });
    let rules = json!({ "permission": permission_actions(opening.setup.has_hooks).map(rule).collect::<Vec<_>>() });
    let (session, last) = match &opening.session {
        Some(session) => {
            server.get(&format!("/session/{session}"), &[]).await.map_err(|error| about_session(&opening.start.name, error))?;
            let messages = server.get(&format!("/session/{session}/message"), &[("limit", "1")]).await?;
            let last = messages.as_array().into_iter().flatten().filter_map(|message| message["info"]["id"].as_str()).max();
            (session.clone(), last.unwrap_or_default().to_owned())
        }
        None => {
            let created = server.post("/session", &rules).await?;
            let id = created["id"].as_str().map(String::from);
            (id.ok_or_else(|| unavailable(&opening.start.name, "the new session has no id"))?, String::new())
        }
    };
    let version = server.get("/global/health", &[]).await?["version"].as_str().map(String::from);
    Ok((session, last, version))
}

/// Converts an MCP server to its OpenCode form.
fn mcp_config(server: &McpServer, scope: AgentScope) -> Value {
    let mut env = server.env.clone();
    if scope == AgentScope::Workspace {
        env.retain(|name, _| !OF_SESSION.contains(&name.as_str()));
    }
    let texts = |values: &std::collections::BTreeMap<String, crate::config::SecretText>| -> Value {
        values.iter().map(|(name, value)| (name.clone(), Value::from(value.plain()))).collect()
    };
    match &server.url {
        Some(url) => json!({ "type": "remote", "url": url, "headers": texts(&server.headers), "enabled": true }),
        None => json!({ "type": "local", "command": server.command, "environment": texts(&env), "enabled": true }),
    }
}

impl OpencodeConversation {
    pub(super) fn server(&self) -> &Arc<OpencodeServer> {
        &self.lease.server
    }

    pub(super) fn with_state<R>(&self, read: impl FnOnce(&mut OpencodeState) -> R) -> R {
        read(&mut self.state.lock())
    }
}

impl HostedConversation for OpencodeConversation {
    fn session(&self) -> &str {
        &self.session
    }

    fn prompt<'a>(&'a self, parts: &'a [Part], io: &'a mut TurnIo<'_>) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(self.run(Some(parts), io))
    }

    fn external_turn(&self) -> BoxFuture<'_, Result<ExternalTurn>> {
        Box::pin(self.wait_for_external_turn())
    }

    fn follow<'a>(&'a self, io: &'a mut TurnIo<'_>) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(self.run(None, io))
    }

    fn process(&self) -> &AgentProcess {
        self.server().process()
    }

    fn report(&self) -> AgentReport {
        let OpencodeState { agent, model, last_model, .. } = self.with_state(|state| state.clone());
        let mut commands = self.catalog.commands.clone();
        if !commands.iter().any(|command| command.name == COMPACT) {
            commands.push(compact_command());
        }
        AgentReport {
            version: self.version.clone(),
            commands,
            options: self.catalog.options(agent.as_deref(), model.as_deref()),
            context_window: self.catalog.windows.get(&last_model).copied().unwrap_or(0),
            ..AgentReport::default()
        }
    }

    fn set_option<'a>(&'a self, id: &'a str, value: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let value = Some(value.to_owned());
            match id {
                "mode" => self.with_state(|state| state.agent = value),
                "model" => self.with_state(|state| state.model = value),
                _ => return Err(Error::invalid_params(format!("agent {}: no option {id}", self.name))),
            }
            Ok(())
        })
    }

    fn unused_servers(&self) -> Vec<String> {
        self.unused_servers.clone()
    }

    fn port(&self) -> Option<u16> {
        Some(self.server().port())
    }

    fn is_disposable(&self) -> bool {
        !self.shared
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.lease.release())
    }
}
