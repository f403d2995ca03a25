//! Completes messages before they are recorded: adds the environment context to the first message
//! of a conversation, the text of a slash command, and resources of MCP servers.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::agent::bundle;
use crate::agent::native_agent::NativeAgent;
use crate::config::most_similar;
use crate::content::{PDF, Part, Role, listed};
use crate::context::commands::{self, SlashCommand};
use crate::context::{environment as facts, notes};
use crate::documents::DocumentKind;
use crate::error::{Error, Kind, Result};
use crate::event::timestamp;
use crate::model::{Media, Model};
use crate::options::Mode;
use crate::process::ProcessLauncher;
use crate::runtime::environment::session_environment::SessionEnvironment;
#[cfg(feature = "mcp")]
use crate::runtime::mcp::prompts;
use crate::session::Turn;
use crate::session::clock::now_ms;
use crate::session::message::IncomingMessage;
use crate::task;
use crate::workspace::one_line;

/// Maximum number of commands that the error about an unknown command names.
const COMMANDS_NAMED_MAX: usize = 20;

/// Maximum number of writable directories that are named to a model.
const DIRECTORIES_NAMED_MAX: usize = 3;

/// Completes a message before it is recorded. `opens` is true for the first message of a
/// conversation. An error rejects the message.
pub(in crate::agent) async fn prepare(agent: &NativeAgent, turn: &Turn, message: &mut IncomingMessage, opens: bool) -> Result<()> {
    let has_media = has_media(message);
    tokio::select! {
        biased;
        prepared = complete(agent, turn, message, opens) => prepared,
        // Reject media that was not checked against the model. A cancelled turn sends no request,
        // so other messages need no additions.
        () = turn.cancel.cancelled(), if has_media => Err(Error::new(Kind::Cancelled, "the turn was cancelled")),
        () = turn.cancel.cancelled() => Ok(()),
    }
}

/// Adds texts of documents, the environment context of the first message, the text of a slash
/// command, and resources of MCP servers. A message that a model wrote, such as the prompt of a
/// subagent, uses no server. Fails if the user's message begins with an unknown command.
async fn complete(agent: &NativeAgent, turn: &Turn, message: &mut IncomingMessage, opens: bool) -> Result<()> {
    if has_media(message) {
        let environment = agent.current_environment(turn).await?;
        let model = agent.current_model(turn, &environment).await?;
        add_texts(&*model, message, &agent.services.launcher).await?;
    }
    let (services, cwd) = (&agent.services, turn.log.state(|state| state.cwd.clone()));
    // A subagent's own instructions say so.
    let is_unattended = agent.parent.is_none() && !message.is_forwarded && !turn.has_responder();
    let unattended = is_unattended.then_some(UNATTENDED);
    if opens {
        let environment = agent.current_environment(turn).await?;
        let mut lines = vec![conditions(&environment, turn)];
        lines.extend(unattended.map(String::from));
        lines.extend(turn.log.state(|state| state.history.tag().line()));
        let today = timestamp(now_ms()).split_once('T').map(|(date, _)| date.to_string()).unwrap_or_default();
        let (cwd, places) = (cwd.clone(), services.places.clone());
        let block = blocking(move || facts::block(&cwd, &today, &places, &lines)).await?;
        message.extra.context.push(Part::text(block));
        message.extra.context.extend(bundle::directory(turn, &environment).await.map(Part::text));
    } else if let Some(line) = unattended {
        message.extra.context.push(Part::note(line));
    }
    if commands::parse(&message.parts).is_some() {
        message.extra.expansion = commands::expand(&services.commands_in(&cwd, true).await?, &message.parts);
    }
    if agent.parent.is_some() || message.by_model || message.role != Role::User {
        return Ok(());
    }
    #[cfg(feature = "mcp")]
    if prompts::may_use_servers(message) {
        let environment = agent.current_environment(turn).await?;
        if agent.mcp.ready().is_empty() {
            agent.update_servers(turn, &environment).await?;
        }
        Box::pin(prompts::complete(&agent.mcp, turn, &environment, message)).await?;
    }
    if commands::parse(&message.parts).is_none() || message.extra.expansion.is_some() {
        return Ok(());
    }
    check_command(&list_commands(agent, &cwd, true).await, message)
}

/// A line for sessions without a client that could answer.
pub(crate) const UNATTENDED: &str = "No one can answer: decide yourself.";

/// Describes the mode and the sandbox of commands in one line.
fn conditions(environment: &SessionEnvironment, turn: &Turn) -> String {
    let (mode, _) = turn.permissions(environment.loaded.settings.permissions.default);
    let mut line = notes::mode_line(mode);
    if let Some(sandbox) = environment.sandbox(mode).filter(|_| mode != Mode::Plan) {
        let named = sandbox.writable.iter().map(|path| one_line(path.display().to_string()));
        let mut named: Vec<String> = named.chain(["$TMPDIR".into()]).collect();
        if named.len() > DIRECTORIES_NAMED_MAX {
            named.splice(1..named.len() - 1, ["other directories".into()]);
        }
        let network = if sandbox.network { "" } else { ", without network" };
        line += &format!(" Commands write only below {}{network}.", named.join(", "));
    }
    line
}

/// Returns an error if the user's message begins with a command that is not in `known`. The name of
/// an entry of the root directory, such as `/tmp`, is a path.
fn check_command(known: &[SlashCommand], message: &IncomingMessage) -> Result<()> {
    let unknown = commands::unknown(known, &message.parts).filter(|name| !Path::new("/").join(name).exists());
    let Some(name) = unknown else { return Ok(()) };
    let names: Vec<&str> = known.iter().map(|command| &*command.name).collect();
    let nearest = most_similar(name, &names).map(|nearest| format!("did you mean `/{nearest}`?"));
    let listed = || format!("the commands are /{}", listed(&names, COMMANDS_NAMED_MAX).replace(", ", ", /"));
    let hint = format!("{}; to send it as text, begin with a space", nearest.unwrap_or_else(listed));
    Err(Error::invalid_params(format!("unknown command /{name}")).hint(hint))
}

/// Returns whether a message has parts that only some models read.
fn has_media(message: &IncomingMessage) -> bool {
    message.parts.iter().any(|part| !Media::default().reads(part))
}

/// Adds the text of documents that `model` does not read. Returns an error for parts that the model
/// cannot read and that have no text.
async fn add_texts(model: &dyn Model, message: &mut IncomingMessage, launcher: &ProcessLauncher) -> Result<()> {
    let media = model.media();
    for part in message.parts.iter_mut().filter(|part| !media.reads(part)) {
        let unread = |what: &str, ability: &str| {
            let hint = format!("choose a model that reads it, or set abilities = [\"{ability}\", …] of the model in [models]");
            Error::invalid_params(format!("{} cannot read {what}", model.id())).hint(hint)
        };
        match part {
            Part::Document { mime_type, data, text, name } if mime_type == PDF => {
                let bytes = STANDARD.decode(&*data).map_err(|_| Error::invalid_params("a document is not base64"))?;
                let extracted = launcher.read_document(DocumentKind::Pdf, &bytes).await;
                let name = name.as_deref().unwrap_or("document");
                *text = Some(extracted.map_err(|why| unread(&format!("the PDF document {name:?}, and {why}"), "pdf"))?);
            }
            Part::Document { mime_type, .. } => return Err(unread(&format!("{mime_type} documents"), "pdf")),
            _ => return Err(unread("audio", "audio")),
        }
    }
    Ok(())
}

/// Returns the slash commands of a session in `cwd`, including prompts of its MCP servers. Unless
/// `check` is set, ignores changes of files since the last check.
pub(in crate::agent) async fn list_commands(agent: &NativeAgent, cwd: &Path, check: bool) -> Arc<[SlashCommand]> {
    let commands = agent.services.commands_in(cwd, check).await.unwrap_or_default();
    #[cfg(feature = "mcp")]
    let commands = match prompts::commands(&agent.mcp) {
        prompts if prompts.is_empty() => commands,
        prompts => commands.iter().cloned().chain(prompts).collect(),
    };
    commands
}

async fn blocking<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    task::blocking("reading files", read).await
}
