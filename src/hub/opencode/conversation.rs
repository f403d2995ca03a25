//! Agents of the kind `opencode`: sessions in an OpenCode server.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::catalog::Catalog;
use super::server::{OpencodeServer, ServerLease, ServerStart};
use super::tree::SessionTree;
use crate::config::{AGENT_SESSION_VARIABLE, AgentScope, McpServer, SESSION_VARIABLE};
use crate::content::{Part, StopReason};
use crate::error::{Error, Result};
use crate::hub::attach;
use crate::hub::conversation::{AgentReport, ExternalTurn, HostedConversation, OpenInput};
use crate::hub::driver::TurnIo;
use crate::hub::private_file::PrivateFile;
use crate::hub::process::{AgentProcess, lost, unavailable};

/// A session in an OpenCode server.
pub(super) struct OpencodeConversation {
    pub name: String,
    pub session: String,
    lease: ServerLease,
    /// True if other sessions may use the server.
    shared: bool,
    version: Option<String>,
    unused_servers: Vec<String>,
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
    /// Tokens of the context window of the last model.
    pub window: u64,
    /// The session and the sessions of its subagents so far.
    pub sessions: SessionTree,
}

/// The environment variables with the id of the session, for a server with one session.
const OF_SESSION: [&str; 2] = [SESSION_VARIABLE, AGENT_SESSION_VARIABLE];

/// The permissions whose actions are not `ask`. OpenCode asks about everything else, and nuncio
/// decides. Questions with answers to choose from are not supported.
const NOT_ASKED: [(&str, &str); 12] = [
    ("glob", "allow"),
    ("grep", "allow"),
    ("list", "allow"),
    ("lsp", "allow"),
    ("plan_enter", "deny"),
    ("plan_exit", "deny"),
    ("question", "deny"),
    ("skill", "allow"),
    ("task", "allow"),
    ("todoread", "allow"),
    ("todowrite", "allow"),
    ("codesearch", "allow"),
];

/// Starts a server or uses the running one, and creates or resumes the session.
pub(in crate::hub) fn open(opening: OpenInput) -> BoxFuture<'static, Result<Arc<dyn HostedConversation>>> {
    Box::pin(async move {
        let key = |what: &str| format!("{}\n{what}", opening.name);
        let workspace = (opening.settings.scope == AgentScope::Workspace).then(|| key(&opening.cwd.to_string_lossy()));
        let known = workspace.clone().or_else(|| opening.session.as_deref().map(key));
        let start = ServerStart { name: &opening.name, launcher: &opening.launcher, command: command(&opening), web: &opening.web };
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
                    name: opening.name,
                    session,
                    lease,
                    shared: workspace.is_some(),
                    version,
                    unused_servers,
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
    let mut command = opening.command.clone();
    if opening.settings.scope == AgentScope::Workspace {
        command.env_set.retain(|(name, _)| !OF_SESSION.iter().any(|of_session| name == of_session));
        command.env_removed.extend(OF_SESSION.map(Into::into));
    }
    let mut permission = json!({ "*": "ask" });
    for (name, action) in NOT_ASKED {
        permission[name] = action.into();
    }
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
    let (session, last) = match &opening.session {
        Some(session) => {
            let found = server.get(&format!("/session/{session}"), &[]).await;
            found.map_err(|error| match &error.details {
                Some(details) if details["status"] == 404 => lost(&opening.name, error.message),
                _ => error,
            })?;
            let messages = server.get(&format!("/session/{session}/message"), &[("limit", "1")]).await?;
            let last = messages.as_array().into_iter().flatten().filter_map(|message| message["info"]["id"].as_str()).max();
            (session.clone(), last.unwrap_or_default().to_owned())
        }
        None => {
            let rule = |(permission, action): (&str, &str)| json!({ "permission": permission, "pattern": "*", "action": action });
            let rules: Vec<Value> = std::iter::once(("*", "ask")).chain(NOT_ASKED).map(rule).collect();
            let created = server.post("/session", &json!({ "permission": rules })).await?;
            let id = created["id"].as_str().map(String::from);
            (id.ok_or_else(|| unavailable(&opening.name, "the new session has no id"))?, String::new())
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

    /// Reads or changes the state.
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
        let OpencodeState { agent, model, window, .. } = self.with_state(|state| state.clone());
        AgentReport {
            version: self.version.clone(),
            commands: self.catalog.commands.clone(),
            options: self.catalog.options(agent.as_deref(), model.as_deref()),
            context_window: window,
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
