//! Claude Code: `claude -p` with JSON lines on standard input and output.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};

use super::peer::{ClaudePeer, NO_TURN, failure, success};
use super::update::{self, ClaudeTurn};
use crate::config::{McpServer, SecretText};
use crate::content::{PDF, Part, StopReason};
use crate::error::{Error, Kind, Result};
use crate::hub::conversation::{AgentReport, HostedConversation, Opening};
use crate::hub::events::TurnEvents;
use crate::hub::open_requests::OpenRequests;
use crate::hub::permission::Choice;
use crate::hub::private_file::PrivateFile;
use crate::hub::process::{AgentProcess, lost, unavailable};
use crate::limits;

/// The arguments after those of the settings. Hooks and MCP servers of the repository do not run.
pub(in crate::hub) const ARGUMENTS: [&str; 12] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
    "--setting-sources",
    "user",
    "--strict-mcp-config",
];

/// How to log in to Claude Code.
pub(in crate::hub) const LOGIN: &str = "run claude, then /login; or add ANTHROPIC_API_KEY to env_pass";

/// A session of Claude Code.
struct ClaudeConversation {
    name: String,
    session: String,
    peer: Arc<ClaudePeer>,
    /// The file of `--settings`.
    _settings: Option<PrivateFile>,
}

/// Starts Claude Code with a new or a known session.
pub(in crate::hub) fn open(opening: Opening) -> BoxFuture<'static, Result<Arc<dyn HostedConversation>>> {
    Box::pin(async move {
        let session = opening.session.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let mut arguments = vec![if opening.session.is_some() { "--resume" } else { "--session-id" }.into(), session.clone()];
        let mut command = opening.command.clone();
        for directory in &opening.directories {
            arguments.extend(["--add-dir".into(), directory.to_string_lossy().into_owned()]);
        }
        let mut file = None;
        if let Some(config) = opening.config {
            let path = opening.data.join(format!("settings-{}.json", session.replace('/', "_")));
            arguments.extend(["--settings".into(), path.to_string_lossy().into_owned()]);
            file = Some(PrivateFile::write(path, config)?);
        }
        let (mcp, _) = opening.mcp.usable(true);
        if !mcp.is_empty() {
            let (config, secrets) = servers(&mcp);
            arguments.extend(["--mcp-config".into(), config.to_string()]);
            command = secrets.into_iter().fold(command, |command, (name, value)| command.env(name, value));
        }
        let peer = ClaudePeer::start(&opening.name, &opening.launcher, &command.arguments(arguments))?;
        let initialized = peer.start_request(json!({ "subtype": "initialize" })).await;
        match initialized {
            Ok(response) => {
                // Earlier versions do not know the request.
                let settings = peer.request(json!({ "subtype": "get_settings" }), limits::AGENT_REQUEST).await;
                peer.with(|state| state.initialized(&response, &settings.unwrap_or_default()));
                Ok(Arc::new(ClaudeConversation { name: opening.name, session, peer, _settings: file })
                    as Arc<dyn HostedConversation>)
            }
            Err(error) => {
                peer.process().end().await;
                let stderr = peer.process().stderr();
                Err(if stderr.contains("No conversation found") { lost(&opening.name, stderr) } else { error })
            }
        }
    })
}

/// Returns the value of `--mcp-config`, and the environment variables that it names. The value
/// contains no secrets, because other users can read the arguments of a process.
fn servers(servers: &BTreeMap<String, McpServer>) -> (Value, Vec<(String, String)>) {
    let mut secrets = Vec::new();
    let mut hidden = |values: &BTreeMap<String, SecretText>| -> Map<String, Value> {
        let hide = |(name, value): (&String, &SecretText)| {
            let variable = format!("NUNCIO_MCP_{}", secrets.len());
            secrets.push((variable.clone(), value.plain().to_owned()));
            (name.clone(), format!("${{{variable}}}").into())
        };
        values.iter().map(hide).collect()
    };
    let mut entries = Map::new();
    for (name, server) in servers {
        let entry = match (&server.url, server.command.split_first()) {
            (Some(url), _) => json!({ "type": "http", "url": url, "headers": hidden(&server.headers) }),
            (None, Some((program, args))) => {
                json!({ "type": "stdio", "command": program, "args": args, "env": hidden(&server.env) })
            }
            (None, None) => continue,
        };
        entries.insert(name.clone(), entry);
    }
    (json!({ "mcpServers": entries }), secrets)
}

impl ClaudeConversation {
    /// Converts a prompt to the content of a message. Fails if Claude Code does not accept a part.
    fn content(&self, parts: &[Part]) -> Result<Vec<Value>> {
        let source = |mime_type: &str, data: &str| json!({ "type": "base64", "media_type": mime_type, "data": data });
        let block = |part: &Part| match part {
            Part::Image { mime_type, data } => Ok(json!({ "type": "image", "source": source(mime_type, data) })),
            Part::Document { mime_type, data, .. } if mime_type == PDF => {
                Ok(json!({ "type": "document", "source": source(mime_type, data) }))
            }
            Part::Audio { .. } => Err(Error::invalid_params(format!("prompt: the agent {} does not accept audio", self.name))),
            part => Ok(json!({ "type": "text", "text": part.as_text() })),
        };
        parts.iter().map(block).collect()
    }

    async fn run(&self, parts: &[Part], events: &mut TurnEvents<'_>, requests: &mut OpenRequests<'_>) -> Result<StopReason> {
        let cancel = events.turn().cancel.clone();
        let mut incoming = self.peer.attach();
        let message = json!({ "role": "user", "content": self.content(parts)? });
        self.peer.send(&json!({ "type": "user", "message": message })).await?;
        let mut turn = ClaudeTurn::new(&self.name);
        let mut interrupted = false;
        let mut deadline: Option<Instant> = None;
        let result = loop {
            // The open permission requests end as cancelled, and are answered first.
            if deadline.is_some() && requests.is_empty() && !interrupted {
                interrupted = true;
                // The end of the turn is the response that matters.
                drop(self.peer.begin(json!({ "subtype": "interrupt" })).await?);
            }
            tokio::select! {
                biased;
                (token, choice) = requests.next() => self.answer(&token, &choice).await,
                () = cancel.cancelled(), if deadline.is_none() => deadline = Some(Instant::now() + limits::AGENT_CANCEL),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.peer.process().end().await;
                    return Ok(StopReason::Cancelled);
                }
                Some(message) = incoming.recv() => {
                    if message["type"] == "result" && !is_of_background_task(&message) {
                        break message;
                    }
                    self.receive(message, &mut turn, requests, events).await;
                }
                why = self.peer.process().ended() => return Err(self.peer.process().ended_error(why)),
            }
        };
        for (token, choice) in requests.end().await {
            self.answer(&token, &choice).await;
        }
        // Later messages find no turn.
        incoming.close();
        while let Some(message) = incoming.recv().await {
            if message["type"] == "control_request" {
                self.respond(failure(&message["request_id"], NO_TURN)).await;
            }
        }
        let cost = self.peer.with(|state| state.spent(&result));
        turn.end(&result, cost, events).await;
        if deadline.is_some() {
            return Ok(StopReason::Cancelled);
        }
        self.outcome(&result, events.active)
    }

    /// Records a message, and starts to decide about a request.
    async fn receive(&self, message: Value, turn: &mut ClaudeTurn, requests: &mut OpenRequests<'_>, events: &mut TurnEvents<'_>) {
        let id = &message["request_id"];
        match message["type"].as_str() {
            Some("control_request") => {
                let request = &message["request"];
                let token = json!({ "id": id, "request": request });
                match update::permission_request(request, events).await {
                    Ok(request) => requests.ask(&token, request),
                    Err(Some(denial)) => self.respond(success(id, denial)).await,
                    Err(None) => self.respond(failure(id, "not supported")).await,
                }
            }
            Some("control_cancel_request") => requests.withdraw(|token| token["id"] == *id),
            _ => turn.record(&message, events).await,
        }
    }

    /// Answers a permission request.
    async fn answer(&self, token: &Value, choice: &Choice) {
        let response = update::answer(&token["request"], choice);
        self.respond(success(&token["id"], response)).await;
    }

    async fn respond(&self, response: Value) {
        // Fails if the process has ended, which ends the turn.
        let _ = self.peer.send(&response).await;
    }

    /// Returns how a turn ended that nuncio did not cancel. `subtype` may be `success` for a failed
    /// turn.
    fn outcome(&self, result: &Value, active: bool) -> Result<StopReason> {
        let reason = result["terminal_reason"].as_str().unwrap_or_default();
        let failed = |why: &str| Error::new(Kind::ModelError, format!("agent {}: {why}", self.name));
        if reason.starts_with("aborted") {
            // nuncio sent no cancel: the user refused a call.
            return Ok(StopReason::Refusal);
        }
        if reason == "max_turns" || result["subtype"] == "error_max_turns" {
            return Ok(StopReason::MaxTurnRequests);
        }
        if result["is_error"] == true {
            let errors = result["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let errors = errors.collect::<Vec<_>>().join("; ");
            let why = result["result"].as_str().filter(|text| !text.is_empty()).unwrap_or(&errors);
            let error = failed(if why.is_empty() { "its turn failed" } else { why });
            return Err(match result["api_error_status"] == 401 || why.contains("/login") {
                true => Error { kind: Kind::Unauthenticated, ..error }.hint(LOGIN),
                false => error,
            });
        }
        match result["stop_reason"].as_str() {
            Some("max_tokens") => Ok(StopReason::MaxTokens),
            Some("refusal") => Ok(StopReason::Refusal),
            _ if active => Ok(StopReason::EndTurn),
            _ => Err(failed("it ended the turn without an answer")),
        }
    }
}

/// Returns whether a result ends a turn that Claude Code began without a prompt.
fn is_of_background_task(result: &Value) -> bool {
    result["origin"]["kind"] == "task-notification"
}

impl HostedConversation for ClaudeConversation {
    fn session(&self) -> &str {
        &self.session
    }

    fn prompt<'a>(
        &'a self,
        parts: &'a [Part],
        events: &'a mut TurnEvents<'_>,
        requests: &'a mut OpenRequests<'_>,
    ) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(self.run(parts, events, requests))
    }

    fn process(&self) -> &AgentProcess {
        self.peer.process()
    }

    fn report(&self) -> AgentReport {
        self.peer.with(|state| state.report())
    }

    fn set_option<'a>(&'a self, id: &'a str, value: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let request = match id {
                "mode" => json!({ "subtype": "set_permission_mode", "mode": value }),
                "model" => json!({ "subtype": "set_model", "model": value }),
                _ => return Err(unavailable(&self.name, format_args!("no option {id}"))),
            };
            self.peer.request(request, limits::AGENT_REQUEST).await?;
            self.peer.with(|state| state.set(id, value));
            Ok(())
        })
    }
}
