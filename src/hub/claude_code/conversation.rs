//! Claude Code: `claude -p` with JSON lines on standard input and output.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::hooks;
use super::update::ClaudeState;
use crate::config::{McpServer, SecretText};
use crate::content::{Part, StopReason};
use crate::error::Result;
use crate::event::SessionChange;
use crate::hub::conversation::{AgentReport, HostedConversation, OpenInput};
use crate::hub::driver::TurnIo;
use crate::hub::peer::Peer;
use crate::hub::private_file::PrivateFile;
use crate::hub::process::{AgentProcess, lost, unavailable};
use crate::limits;
use crate::options::{OptionValue, Thinking};

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

pub(in crate::hub) const LOGIN: &str = "run claude, then /login; or add ANTHROPIC_API_KEY to env_pass";

/// A session of Claude Code.
pub(super) struct ClaudeConversation {
    pub name: String,
    session: String,
    pub peer: Arc<Peer<ClaudeState>>,
    /// Claude Code asks nuncio before each call.
    has_hooks: bool,
    /// The file of `--settings`.
    _settings: Option<PrivateFile>,
}

/// Starts Claude Code with a new or a known session.
pub(in crate::hub) fn open(opening: OpenInput) -> BoxFuture<'static, Result<Arc<dyn HostedConversation>>> {
    Box::pin(async move {
        let session = opening.session.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
        let mut arguments = vec![if opening.session.is_some() { "--resume" } else { "--session-id" }.into(), session.clone()];
        let mut start = opening.start.clone();
        for directory in &opening.setup.directories {
            arguments.extend(["--add-dir".into(), directory.to_string_lossy().into_owned()]);
        }
        arguments.extend(settings_arguments(&opening.setup.settings));
        let mut file = None;
        if let Some(config) = opening.config.clone() {
            let path = opening.data.join(format!("settings-{}.json", session.replace('/', "_")));
            arguments.extend(["--settings".into(), path.to_string_lossy().into_owned()]);
            file = Some(PrivateFile::write(path, config)?);
        }
        let (mcp, _) = opening.mcp.usable(true);
        if !mcp.is_empty() {
            let (config, secrets) = servers(&mcp);
            arguments.extend(["--mcp-config".into(), config.to_string()]);
            start.command = secrets.into_iter().fold(start.command, |command, (name, value)| command.env(name, value));
        }
        start.command = start.command.arguments(arguments);
        let peer = Peer::start(&start, ClaudeState::default())?;
        let initialize = if opening.setup.has_hooks { json!({ "hooks": hooks::registration() }) } else { json!({}) };
        let initialized = peer.start_request("initialize", initialize).await;
        match initialized {
            Ok(response) => {
                // Earlier versions do not support the request.
                let settings = peer.request("get_settings", json!({}), limits::AGENT_REQUEST).await;
                peer.with_state(|state| state.initialized(&response, &settings.unwrap_or_default()));
                Ok(Arc::new(ClaudeConversation {
                    name: opening.start.name,
                    session,
                    peer,
                    has_hooks: opening.setup.has_hooks,
                    _settings: file,
                }) as Arc<dyn HostedConversation>)
            }
            Err(error) => {
                peer.process().end().await;
                let stderr = peer.process().stderr();
                Err(if stderr.contains("No conversation found") { lost(&opening.start.name, stderr) } else { error })
            }
        }
    })
}

fn settings_arguments(settings: &SessionChange) -> Vec<String> {
    let SessionChange { thinking, system_prompt, system_prompt_append, tools, .. } = settings;
    // Claude Code has no level below `low`.
    let effort = thinking
        .as_ref()
        .and_then(OptionValue::known)
        .map(|level| if level < Thinking::Low { Thinking::Low } else { level }.to_string());
    let values = [
        ("--effort", effort),
        ("--system-prompt", system_prompt.clone()),
        ("--append-system-prompt", system_prompt_append.clone()),
        ("--tools", tools.as_ref().map(|tools| tools.join(","))),
    ];
    values.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten().collect()
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

impl HostedConversation for ClaudeConversation {
    fn session(&self) -> &str {
        &self.session
    }

    fn prompt<'a>(&'a self, parts: &'a [Part], io: &'a mut TurnIo<'_>) -> BoxFuture<'a, Result<StopReason>> {
        Box::pin(self.run(parts, io))
    }

    fn process(&self) -> &AgentProcess {
        self.peer.process()
    }

    fn asks_before_calls(&self) -> bool {
        self.has_hooks
    }

    fn report(&self) -> AgentReport {
        self.peer.with_state(|state| state.report())
    }

    fn set_option<'a>(&'a self, id: &'a str, value: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let method = match id {
                "mode" => "set_permission_mode",
                "model" => "set_model",
                _ => return Err(unavailable(&self.name, format_args!("no option {id}"))),
            };
            self.peer.request(method, json!({ (id): value }), limits::AGENT_REQUEST).await?;
            self.peer.with_state(|state| state.set(id, value));
            Ok(())
        })
    }
}
