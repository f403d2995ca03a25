//! The command of an agent's own terminal client: it continues the last session of the directory
//! and reports its status to a running server of nuncio.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use super::process::unavailable;
use super::registry;
use crate::config::{AgentKind, HostedAgent};
use crate::error::{Error, Result};
use crate::process::Command;
use crate::runtime::Services;
use crate::web::Destination;
use crate::workspace::{create_private_dir, read_small_text, replace_private};

/// How long a server may take to accept the first hook request of a terminal client.
const HOOK_ACCEPTED: Duration = Duration::from_secs(1);
/// Seconds that a terminal client waits for the response to a hook request.
const HOOK_TIMEOUT_S: u64 = 5;

/// The hooks of Claude Code that change its status. It calls no HTTP hook at its start.
const HOOKS: [&str; 11] = [
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "PermissionDenied",
    "Elicitation",
    "ElicitationResult",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

/// The arguments of Claude Code that choose a session, or start none.
const SESSION_FLAGS: [&str; 11] = [
    "-c",
    "--continue",
    "-r",
    "--resume",
    "--session-id",
    "--fork-session",
    "--from-pr",
    "--teleport",
    "--remote",
    "-p",
    "--print",
];

/// Commands of Claude Code that start no session.
const CLAUDE_COMMANDS: [&str; 12] = [
    "agents",
    "auth",
    "auto-mode",
    "config",
    "doctor",
    "install",
    "mcp",
    "migrate-installer",
    "plugin",
    "setup-token",
    "update",
    "upgrade",
];

/// The environment variable with the token of the hooks.
const HOOK_TOKEN: &str = "NUNCIO_HOOK_TOKEN";

/// Characters of a path that are invalid in a header or have a meaning in settings.
const HEADER: &AsciiSet = &CONTROLS.add(b'%').add(b'$');

/// A nuncio server that accepts the hooks of terminal clients.
pub(crate) struct HookServer {
    pub url: String,
    pub token: String,
}

/// Returns the command of an agent's terminal client with the arguments of the user. Arguments that
/// choose a session take precedence over the last session.
pub(crate) async fn terminal_command(
    services: &Services,
    name: &str,
    cwd: &Path,
    arguments: Vec<OsString>,
    server: Option<HookServer>,
) -> Result<Command> {
    let agent = registry::allowed(services, name)?;
    registry::check_trust(services, name, cwd)?;
    if registry::program_is_missing(services, &agent) {
        return Err(unavailable(name, "its program was not found").hint(format!("run: nuncio agents check {name}")));
    }
    let command = registry::program(services, name, &agent, cwd)?;
    if agent.kind == AgentKind::ClaudeCode {
        return claude_command(services, name, &agent, command, arguments, server).await;
    }
    let continues = if arguments.is_empty() { agent.kind.protocol().continues } else { &[] };
    Ok(command.arguments(continues).arguments(arguments))
}

async fn claude_command(
    services: &Services,
    name: &str,
    agent: &HostedAgent,
    command: Command,
    arguments: Vec<OsString>,
    server: Option<HookServer>,
) -> Result<Command> {
    let is = |argument: &OsString, flags: &[&str]| {
        let text = argument.to_string_lossy();
        flags.iter().any(|flag| text == *flag || text.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
    };
    if arguments.first().is_some_and(|first| is(first, &CLAUDE_COMMANDS)) {
        return Ok(command.arguments(arguments));
    }
    let cwd = command.cwd.clone();
    let mut own: Vec<String> = Vec::new();
    let mut session = None;
    if !arguments.iter().any(|argument| is(argument, &SESSION_FLAGS)) {
        let (flag, id) = choose_session(services, name, &cwd)?;
        own.extend([flag.to_owned(), id.clone()]);
        session = Some(id);
    }
    let header = percent_encode(cwd.as_os_str().as_bytes(), HEADER).to_string();
    let accepts = match &server {
        Some(server) => accepts_hooks(services, server, &header, session.as_deref()).await,
        None => false,
    };
    let mut settings = match registry::config(services, name, agent)? {
        Some(config) => serde_json::from_str(&config).map_err(|error| unavailable(name, format_args!("config: {error}")))?,
        None => Map::new(),
    };
    let mut command = command.env("NUNCIO_WORKSPACE", cwd);
    if let Some(server) = server.filter(|_| accepts) {
        add_hooks(&mut settings, &server.url, &header);
        command = command.env(HOOK_TOKEN, server.token);
    }
    if !settings.is_empty() && !arguments.iter().any(|argument| is(argument, &["--settings"])) {
        // Other users can read the arguments of a process. The next start in the directory replaces
        // the file.
        let file = file_of(services, name, &command.cwd).with_extension("json");
        replace(&file, &Value::Object(settings).to_string())?;
        own.extend(["--settings".to_owned(), file.to_string_lossy().into_owned()]);
    }
    Ok(command.arguments(own).arguments(arguments))
}

/// Reports the start of the agent to the server. Returns whether the server accepts its hooks: with
/// hooks that fail, the agent would show an error for each call.
async fn accepts_hooks(services: &Services, server: &HookServer, header: &str, session: Option<&str>) -> bool {
    let Ok(client) = services.models.clients.client(Destination::HostedAgent) else { return false };
    let body = json!({ "hook_event_name": "SessionStart", "session_id": session });
    let request = client
        .post(format!("{}/hook", server.url.trim_end_matches('/')))
        .header("x-workspace-path", header)
        .header("content-type", "application/json")
        .bearer_auth(&server.token)
        .body(body.to_string());
    let answered = tokio::time::timeout(HOOK_ACCEPTED, request.send()).await;
    answered.is_ok_and(|answer| answer.is_ok_and(|answer| answer.status().is_success()))
}

/// Adds the hooks to the settings of Claude Code, after the hooks that are in them.
fn add_hooks(settings: &mut Map<String, Value>, url: &str, workspace: &str) {
    let hook = json!({ "hooks": [{
        "type": "http",
        "url": format!("{}/hook", url.trim_end_matches('/')),
        "timeout": HOOK_TIMEOUT_S,
        "headers": { "X-Workspace-Path": workspace, "Authorization": format!("Bearer ${{{HOOK_TOKEN}}}") },
        "allowedEnvVars": [HOOK_TOKEN],
    }] });
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    for event in HOOKS {
        match hooks[event].as_array_mut() {
            Some(known) => known.push(hook.clone()),
            None => hooks[event] = json!([hook]),
        }
    }
}

/// Returns the flag and the id of the session to work in: the last session of this command in the
/// directory if it has a conversation, else a new one, whose id is recorded.
fn choose_session(services: &Services, name: &str, cwd: &Path) -> Result<(&'static str, String)> {
    let file = file_of(services, name, cwd);
    let known = read_small_text(&file).ok().filter(|id| uuid::Uuid::try_parse(id).is_ok());
    if let Some(id) = known.filter(|id| has_conversation(&transcripts(services), id)) {
        return Ok(("--resume", id));
    }
    let id = uuid::Uuid::new_v4().to_string();
    replace(&file, &id)?;
    Ok(("--session-id", id))
}

/// Returns the path of the file with the id of a directory's last session. A file with the same
/// name and the extension `.json` contains the settings with which the agent was started there.
fn file_of(services: &Services, name: &str, cwd: &Path) -> PathBuf {
    let key: String = digest(&SHA256, cwd.as_os_str().as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    registry::data(services, name).join("terminals").join(key)
}

fn replace(file: &Path, content: &str) -> Result<()> {
    create_private_dir(file.parent().unwrap_or(file))?;
    let written = replace_private(file, content.as_bytes());
    written.map_err(|error| Error::io(format_args!("writing {}", file.display()), error))
}

/// Returns the directory of Claude Code's transcripts: `PROJECT/SESSION.jsonl`.
fn transcripts(services: &Services) -> PathBuf {
    let own = services.environment.get("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let base = own.or_else(|| Some(services.places.home.as_ref()?.join(".claude")));
    base.unwrap_or_default().join("projects")
}

/// Returns whether a session has a transcript. Claude Code writes it with the first prompt, and
/// refuses to resume a session without one.
fn has_conversation(projects: &Path, id: &str) -> bool {
    let directories = std::fs::read_dir(projects).into_iter().flatten().flatten();
    directories.map(|project| project.path().join(id).with_extension("jsonl")).any(|transcript| transcript.is_file())
}
