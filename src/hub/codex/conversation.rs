//! Codex: its app server, which speaks JSON-RPC without the field `jsonrpc` on standard input and
//! output (`codex app-server generate-json-schema` prints the messages of a version).

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::options::{CodexOptions, EXTERNAL};
use super::own_rules::ASKING;
use super::update::CodexItems;
use crate::config::{McpServer, SecretText};
use crate::content::{Part, StopReason};
use crate::error::{Error, Result};
use crate::hub::conversation::{AgentReport, HostedConversation, OpenInput, compact_command};
use crate::hub::driver::TurnIo;
use crate::hub::peer::{Peer, PeerState, Response};
use crate::hub::process::{AgentProcess, lost, not_logged_in, unavailable};
use crate::hub::project_config::untrusted_projects;
use crate::hub::refusal::AgentRefusal;
use crate::limits;

pub(in crate::hub) const LOGIN: &str = "run codex login";

/// A thread of a Codex process.
pub(super) struct CodexConversation {
    pub name: String,
    pub thread: String,
    pub peer: Arc<Peer<CodexState>>,
    version: Option<String>,
    /// The account, if Codex reports one.
    login: Option<String>,
    /// `sandboxPolicy` of turns in the mode `default`.
    pub sandbox: Value,
    /// `approvalPolicy` of turns in the mode `default`.
    pub approval: Value,
}

/// The parts of the state that notifications and options change.
#[derive(Default)]
pub(super) struct CodexState {
    pub options: CodexOptions,
    context_window: u64,
    pub items: CodexItems,
}

impl PeerState for CodexState {
    fn notified(&mut self, method: &str, params: &Value) {
        match method {
            "thread/tokenUsage/updated" => {
                if let Some(window) = params["tokenUsage"]["modelContextWindow"].as_u64() {
                    self.context_window = window;
                }
            }
            "thread/settings/updated" => {
                let settings = &params["threadSettings"];
                self.options.report(&settings["model"], &settings["effort"]);
            }
            _ => {}
        }
    }

    fn idle_request(method: &str) -> Response {
        refusal(method)
    }
}

/// Returns the response that denies a request of Codex.
pub(super) fn refusal(method: &str) -> Response {
    match method {
        "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => Ok(json!({ "decision": "cancel" })),
        "item/permissions/requestApproval" => Ok(json!({ "permissions": {} })),
        "item/tool/requestUserInput" => Ok(json!({ "answers": {} })),
        "mcpServer/elicitation/request" => Ok(json!({ "action": "decline" })),
        _ => Err(json!({ "code": -32601, "message": format!("{method} is not supported") })),
    }
}

/// Starts Codex, and creates or resumes its thread.
pub(in crate::hub) fn open(opening: OpenInput) -> BoxFuture<'static, Result<Arc<dyn HostedConversation>>> {
    Box::pin(async move {
        let peer = Peer::start(&opening.start, CodexState::default())?;
        match start(&opening, &peer).await {
            Ok(conversation) => Ok(Arc::new(conversation) as Arc<dyn HostedConversation>),
            Err(error) => {
                peer.process().end().await;
                Err(error)
            }
        }
    })
}

/// Initializes the connection and the thread.
async fn start(opening: &OpenInput, peer: &Arc<Peer<CodexState>>) -> Result<CodexConversation> {
    let initialize = json!({
        "clientInfo": { "name": "nuncio", "title": "nuncio", "version": env!("CARGO_PKG_VERSION") },
    });
    let initialized = peer.start_request("initialize", initialize).await?;
    peer.notify("initialized", json!({})).await?;
    let mut config = config(opening)?;
    let asking = ASKING.map(|(key, _, ours)| config.remove(key).unwrap_or_else(|| ours.into()));
    let mut params = json!({
        "cwd": opening.setup.cwd,
        "sandbox": config.remove("sandbox_mode").unwrap_or_else(|| "read-only".into()),
        "config": config,
    });
    for ((_, field, _), value) in ASKING.iter().zip(&asking) {
        params[*field] = value.clone();
    }
    let prompts = &opening.setup.settings;
    for (field, prompt) in [("baseInstructions", &prompts.system_prompt), ("developerInstructions", &prompts.system_prompt_append)]
    {
        if let Some(prompt) = prompt {
            params[field] = prompt.as_str().into();
        }
    }
    let method = match &opening.session {
        None => "thread/start",
        Some(thread) => {
            params["threadId"] = thread.as_str().into();
            // Skip the turns: nuncio's log already contains them.
            params["excludeTurns"] = true.into();
            "thread/resume"
        }
    };
    let opened = peer.start_request(method, params).await;
    let mut response = opened.map_err(|error| match &opening.session {
        Some(_) if AgentRefusal::of(&error).is_some() => lost(&opening.start.name, error.message),
        _ => error,
    })?;
    let thread = response["thread"]["id"].as_str().map(str::to_owned);
    let thread = thread.ok_or_else(|| unavailable(&opening.start.name, format_args!("the response to {method} has no thread")))?;
    check_asking(&opening.start.name, &asking, &response)?;
    let login = login(&opening.start.name, peer, &response).await?;
    // Ignore a failure: the agent works without the options.
    let models = peer.request("model/list", json!({}), limits::AGENT_REQUEST).await.unwrap_or_default();
    peer.with_state(|state| state.options.opened(&response, &models));
    let mut sandbox = response["sandbox"].take();
    if opening.start.command.sandbox.is_some() {
        // The sandbox of Codex cannot start inside that of nuncio.
        sandbox = json!({ "type": EXTERNAL, "networkAccess": "enabled" });
    }
    if sandbox["type"] == "workspaceWrite"
        && let Some(roots) = sandbox["writableRoots"].as_array_mut()
    {
        roots.extend(opening.setup.directories.iter().map(|directory| json!(directory)));
    }
    // As in `nuncio/0.169.0 (Debian 12.0.0; x86_64)`.
    let agent = initialized["userAgent"].as_str().unwrap_or_default();
    let version = agent.split_whitespace().next().and_then(|agent| agent.split_once('/'));
    Ok(CodexConversation {
        name: opening.start.name.clone(),
        thread,
        peer: peer.clone(),
        version: version.map(|(_, version)| version.to_owned()),
        login,
        sandbox,
        approval: response["approvalPolicy"].take(),
    })
}

/// Fails if Codex does not use one of nuncio's values of [`ASKING`]: requirements of an
/// administrator can replace it. `given` has the values for the thread.
fn check_asking(name: &str, given: &[Value], thread: &Value) -> Result<()> {
    for ((key, field, ours), given) in ASKING.iter().zip(given) {
        if let Some(used) = thread.get(*field).filter(|used| used != ours && given == ours) {
            let why = format_args!("it uses {field} {used}, not {ours}, and would not ask nuncio");
            return Err(unavailable(name, why).hint(format!("to allow it, set \"{key}\": {used} in config of [agents.{name}]")));
        }
    }
    Ok(())
}

/// Returns the account of Codex, if it reports one. Fails if the model provider of the thread needs
/// a login and Codex has no account: it would retry each request for a minute.
async fn login(name: &str, peer: &Peer<CodexState>, thread: &Value) -> Result<Option<String>> {
    // Earlier versions do not support the request.
    let read = peer.request("account/read", json!({}), limits::AGENT_REQUEST).await.unwrap_or_default();
    let account = &read["account"];
    // Only OpenAI's own provider uses the account; the setting `config` can name another one.
    let is_needed =
        read["requiresOpenaiAuth"] == true && thread["modelProvider"].as_str().is_none_or(|provider| provider == "openai");
    match (account["email"].as_str(), account["type"].as_str()) {
        (None, None) if is_needed => Err(not_logged_in(name, "not logged in").hint(LOGIN)),
        (None, None) => Ok(None),
        (Some(email), _) => {
            Ok(Some(account["planType"].as_str().map_or_else(|| email.to_owned(), |plan| format!("{email} ({plan})"))))
        }
        (None, Some("apiKey")) => Ok(Some("API key".into())),
        (None, Some(kind)) => Ok(Some(kind.to_owned())),
    }
}

/// Creates the configuration of the thread: the setting `config`, the untrusted projects and the
/// MCP servers.
fn config(opening: &OpenInput) -> Result<Map<String, Value>> {
    let mut config = match &opening.config {
        Some(text) => {
            serde_json::from_str(text).map_err(|error| unavailable(&opening.start.name, format_args!("config: {error}")))?
        }
        None => Map::new(),
    };
    config.entry("projects").or_insert_with(|| untrusted_projects(&opening.setup.cwd));
    let plain = |values: &BTreeMap<String, SecretText>| -> Map<String, Value> {
        values.iter().map(|(name, value)| (name.clone(), value.plain().into())).collect()
    };
    let server = |server: &McpServer| match (&server.url, server.command.split_first()) {
        (Some(url), _) => Some(json!({ "url": url, "http_headers": plain(&server.headers) })),
        (None, Some((program, args))) => Some(json!({ "command": program, "args": args, "env": plain(&server.env) })),
        (None, None) => None,
    };
    let (servers, _) = opening.mcp.usable(true);
    let servers = servers.iter().filter_map(|(name, given)| Some((name.clone(), server(given)?)));
    let servers: Map<String, Value> = servers.collect();
    if !servers.is_empty() {
        match config.get_mut("mcp_servers").and_then(Value::as_object_mut) {
            Some(known) => known.extend(servers),
            None => _ = config.insert("mcp_servers".into(), servers.into()),
        }
    }
    Ok(config)
}

impl HostedConversation for CodexConversation {
    fn session(&self) -> &str {
        &self.thread
    }

    fn prompt<'a>(&'a self, parts: &'a [Part], io: &'a mut TurnIo<'_>) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(self.run(parts, io))
    }

    fn process(&self) -> &AgentProcess {
        self.peer.process()
    }

    fn report(&self) -> AgentReport {
        let (options, context_window) = self.peer.with_state(|state| (state.options.list(), state.context_window));
        AgentReport {
            version: self.version.clone(),
            login: self.login.clone(),
            commands: vec![compact_command()],
            options,
            context_window,
            ..AgentReport::default()
        }
    }

    fn set_option<'a>(&'a self, id: &'a str, value: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.peer.with_state(|state| state.options.set(id, value)) {
                true => Ok(()),
                false => Err(Error::invalid_params(format!("agent {}: no option {id} with the value {value}", self.name))),
            }
        })
    }
}
