//! Agents that speak the Agent Client Protocol on standard input and output.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::update::AcpState;
use crate::config::{McpServer, SecretText};
use crate::content::{Part, StopReason};
use crate::error::{Error, Kind, Result};
use crate::event::SessionChange;
use crate::hub::conversation::{AgentReport, HostedConversation, OpenInput};
use crate::hub::driver::TurnIo;
use crate::hub::peer::{Peer, PeerState, Response};
use crate::hub::process::{AgentProcess, lost, unavailable};
use crate::hub::project_config;
use crate::hub::refusal::AgentRefusal;
use crate::limits;

/// The error code of ACP for an agent that needs a login.
const AUTH_REQUIRED: i64 = -32000;

/// A session in an ACP agent.
pub(super) struct AcpConversation {
    pub name: String,
    pub session: String,
    pub peer: Arc<Peer<AcpState>>,
    /// `promptCapabilities` of the agent.
    pub accepts: Value,
    /// True if another process of the agent can load the session.
    resumable: bool,
    /// Names of MCP servers that the agent does not support.
    unused_servers: Vec<String>,
    /// `authMethods` of the agent.
    pub login_methods: Value,
}

impl PeerState for AcpState {
    fn notified(&mut self, method: &str, params: &Value) {
        let own = self.session.as_ref().is_none_or(|session| params["sessionId"] == session.as_str());
        if method == "session/update" && own {
            self.handle(&params["update"]);
        }
    }

    fn idle_request(method: &str) -> Response {
        match method {
            "session/request_permission" => Ok(json!({ "outcome": { "outcome": "cancelled" } })),
            _ => Err(json!({ "code": -32601, "message": format!("{method} is not supported") })),
        }
    }
}

/// Starts an agent, and creates or resumes its session.
pub(in crate::hub) fn open(opening: OpenInput) -> BoxFuture<'static, Result<Arc<dyn HostedConversation>>> {
    Box::pin(async move {
        let peer = Peer::start(&opening.start, AcpState::new(opening.cost))?;
        match start(&opening, &peer).await {
            Ok(conversation) => Ok(Arc::new(conversation) as Arc<dyn HostedConversation>),
            Err(error) => {
                peer.process().end().await;
                Err(error)
            }
        }
    })
}

/// Initializes the connection and the session.
async fn start(opening: &OpenInput, peer: &Arc<Peer<AcpState>>) -> Result<AcpConversation> {
    let initialize = json!({
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
            "session": { "configOptions": { "boolean": {} } },
        },
        "clientInfo": { "name": "nuncio", "title": "nuncio", "version": env!("CARGO_PKG_VERSION") },
    });
    let mut initialized = peer.start_request("initialize", initialize).await?;
    if initialized["protocolVersion"] != 1 {
        let version = &initialized["protocolVersion"];
        return Err(unavailable(&opening.start.name, format_args!("it speaks version {version} of ACP, nuncio speaks version 1")));
    }
    project_config::check_identity(opening, &initialized["agentInfo"])?;
    let capabilities = initialized["agentCapabilities"].take();
    let (servers, unused_servers) = opening.mcp.usable(capabilities["mcpCapabilities"]["http"] == true);
    let servers: Vec<Value> = servers.iter().filter_map(server).collect();
    let mut params =
        json!({ "cwd": opening.setup.cwd, "mcpServers": servers, "_meta": { "claudeCode": { "options": claude_options() } } });
    if let Some(prompt) = system_prompt(&opening.setup.settings) {
        params["_meta"]["systemPrompt"] = prompt;
    }
    if !opening.setup.directories.is_empty() {
        params["additionalDirectories"] = json!(opening.setup.directories);
    }
    let resumes = &capabilities["sessionCapabilities"]["resume"];
    let resume = match (resumes.is_null() || resumes == &Value::Bool(false), capabilities["loadSession"] == true) {
        (false, _) => Some("session/resume"),
        // Updates before the response repeat the history and are skipped: the log contains it.
        (true, true) => Some("session/load"),
        (true, false) => None,
    };
    let method = match &opening.session {
        None => "session/new",
        Some(session) => {
            params["sessionId"] = session.as_str().into();
            resume.ok_or_else(|| lost(&opening.start.name, "it cannot load sessions"))?
        }
    };
    peer.with_state(|state| state.session.clone_from(&opening.session));
    let response = match (peer.start_request(method, params).await, &opening.session) {
        (Ok(response), _) => response,
        (Err(error), Some(_)) if AgentRefusal::of(&error).is_some() && !is_login_error(&error) => {
            return Err(lost(&opening.start.name, error.message));
        }
        (Err(error), _) => return Err(needs_login(peer.process(), error, &initialized["authMethods"], "").await),
    };
    let session = match &opening.session {
        Some(session) => session.clone(),
        None => {
            let id = response["sessionId"].as_str().map(str::to_owned);
            id.ok_or_else(|| unavailable(&opening.start.name, "the response to session/new has no sessionId"))?
        }
    };
    peer.with_state(|state| {
        state.session = Some(session.clone());
        state.opened(&initialized, &response);
    });
    Ok(AcpConversation {
        name: opening.start.name.clone(),
        session,
        peer: peer.clone(),
        accepts: capabilities["promptCapabilities"].clone(),
        resumable: resume.is_some(),
        unused_servers,
        login_methods: initialized["authMethods"].take(),
    })
}

/// Returns options for claude-agent-acp; other agents ignore them. With these options, it does not
/// run hooks and MCP servers that the repository names, like Claude Code with its arguments in
/// `claude_code.rs`.
fn claude_options() -> Value {
    json!({ "settingSources": ["user"], "strictMcpConfig": true })
}

/// Returns the system prompt of a session as claude-agent-acp reads it.
fn system_prompt(settings: &SessionChange) -> Option<Value> {
    match (&settings.system_prompt, &settings.system_prompt_append) {
        (Some(prompt), None) => Some(prompt.as_str().into()),
        (Some(prompt), Some(added)) => Some(format!("{prompt}\n\n{added}").into()),
        (None, Some(added)) => Some(json!({ "append": added })),
        (None, None) => None,
    }
}

fn is_login_error(error: &Error) -> bool {
    AgentRefusal::of(error) == Some(AgentRefusal::Code(Some(AUTH_REQUIRED)))
}

/// Adds instructions for the login to an error that requires one: the line that the agent wrote
/// after the text `before` to its standard error, which may follow the error, and its login
/// methods.
pub(super) async fn needs_login(process: &AgentProcess, mut error: Error, methods: &Value, before: &str) -> Error {
    if !is_login_error(&error) {
        return error;
    }
    if let Ok(line) = timeout(limits::AGENT_STDERR, process.login_request(before)).await {
        error.message += &format!(": {line}");
    }
    let names: Vec<&str> = methods.as_array().into_iter().flatten().filter_map(|method| method["name"].as_str()).collect();
    let known = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    Error { kind: Kind::Unauthenticated, ..error }.hint(format!("log in with the agent's own program{known}"))
}

/// Converts an MCP server to its ACP form. Returns `None` for a server without a URL and a command.
fn server((name, server): (&String, &McpServer)) -> Option<Value> {
    let pairs = |values: &BTreeMap<String, SecretText>| -> Vec<Value> {
        values.iter().map(|(name, value)| json!({ "name": name, "value": value.plain() })).collect()
    };
    match (&server.url, server.command.split_first()) {
        (Some(url), _) => Some(json!({ "type": "http", "name": name, "url": url, "headers": pairs(&server.headers) })),
        (None, Some((program, args))) => Some(json!({ "name": name, "command": program, "args": args, "env": pairs(&server.env) })),
        (None, None) => None,
    }
}

impl HostedConversation for AcpConversation {
    fn session(&self) -> &str {
        &self.session
    }

    fn prompt<'a>(&'a self, parts: &'a [Part], io: &'a mut TurnIo<'_>) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(self.run(parts, io))
    }

    fn process(&self) -> &AgentProcess {
        self.peer.process()
    }

    fn report(&self) -> AgentReport {
        self.peer.with_state(|state| state.report())
    }

    fn set_option<'a>(&'a self, id: &'a str, value: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let unknown = || Error::invalid_params(format!("agent {}: no option {id}", self.name));
            let (method, mut params) = self.peer.with_state(|state| state.setter(id, value)).ok_or_else(unknown)?;
            params["sessionId"] = self.session.as_str().into();
            // Some agents report the value only in a notification before the response.
            let before = self.peer.with_state(|state| state.set_current(id, value));
            let response = self.peer.request(method, params, limits::AGENT_REQUEST).await;
            match &response {
                Ok(response) => self.peer.with_state(|state| state.set_config_options(&response["configOptions"])),
                Err(_) => _ = self.peer.with_state(|state| state.set_current(id, &before)),
            }
            response.map(drop)
        })
    }

    fn unused_servers(&self) -> Vec<String> {
        self.unused_servers.clone()
    }

    fn can_resume(&self) -> bool {
        self.resumable
    }
}
