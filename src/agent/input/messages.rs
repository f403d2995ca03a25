//! Completes the user's messages before they are recorded: adds the facts that the first message of
//! a conversation carries, and the text of a slash command.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::agent::services::Services;
use crate::config::most_similar;
use crate::content::{PDF, Part, listed};
use crate::context::commands::{self, SlashCommand};
use crate::context::environment;
use crate::context::prompt_files::PromptDirs;
use crate::documents;
use crate::error::{Error, Result};
use crate::event::timestamp;
use crate::limits;
use crate::model::{Media, Model};
use crate::session::message::{IncomingMessage, QueuedMessage};
use crate::session::{Agent, Turn, now_ms};
use crate::task;

/// Completes `message`. `opens` is true for the first message of a conversation.
pub(in crate::agent) async fn complete(
    services: &Arc<Services>,
    turn: &Turn,
    message: &mut IncomingMessage,
    opens: bool,
) -> Result<()> {
    let cwd = turn.log.state(|state| state.cwd.clone());
    if opens {
        let today = timestamp(now_ms()).split_once('T').map(|(date, _)| date.to_string()).unwrap_or_default();
        let (cwd, places) = (cwd.clone(), services.places.clone());
        let block = blocking(move || environment::block(&cwd, &today, &places)).await?;
        message.extra.context.push(Part::text(block));
    }
    if commands::parse(&message.parts).is_some() {
        message.extra.expansion = commands::expand(&list(services, &cwd, true).await?, &message.parts);
    }
    Ok(())
}

/// Returns an error if the user's message begins with a command that is not in `known`. The name of
/// an entry of the root directory, such as `/tmp`, is a path.
pub(in crate::agent) fn check_command(known: &[SlashCommand], message: &IncomingMessage) -> Result<()> {
    let unknown = commands::unknown(known, &message.parts).filter(|name| !Path::new("/").join(name).exists());
    let Some(name) = unknown else { return Ok(()) };
    let names: Vec<&str> = known.iter().map(|command| &*command.name).collect();
    let nearest = most_similar(name, &names).map(|nearest| format!("did you mean `/{nearest}`?"));
    let listed = || format!("the commands are /{}", listed(&names, limits::COMMANDS_NAMED_MAX).replace(", ", ", /"));
    let hint = format!("{}; to send it as text, begin with a space", nearest.unwrap_or_else(listed));
    Err(Error::invalid_params(format!("unknown command /{name}")).hint(hint))
}

/// Adds the queued steering messages to the turn, between two model requests. Returns whether there
/// were any.
pub(in crate::agent) async fn take_steered(agent: &dyn Agent, turn: &Turn) -> Result<bool> {
    let steered = turn.steered();
    let any = !steered.is_empty();
    for QueuedMessage { mut message, .. } in steered {
        match agent.prepare(turn, &mut message, false).await {
            Ok(()) => drop(turn.commit(message.completed()).await?),
            Err(error) => turn.reject(message, error).await,
        }
    }
    Ok(any)
}

/// Returns whether a message has parts that only some models read.
pub(in crate::agent) fn has_media(message: &IncomingMessage) -> bool {
    message.parts.iter().any(|part| !Media::default().reads(part))
}

/// Adds the text of documents that `model` does not read. Returns an error for parts that the model
/// cannot read and that have no text.
pub(in crate::agent) async fn add_texts(model: &dyn Model, message: &mut IncomingMessage) -> Result<()> {
    let media = model.media();
    for part in message.parts.iter_mut().filter(|part| !media.reads(part)) {
        let unread = |what: &str, ability: &str| {
            let hint = format!("choose a model that reads it, or set abilities = [\"{ability}\", …] of the model in [models]");
            Error::invalid_params(format!("{} cannot read {what}", model.id())).hint(hint)
        };
        match part {
            Part::Document { mime_type, data, text, name } if mime_type == PDF => {
                let bytes = STANDARD.decode(&*data).map_err(|_| Error::invalid_params("a document is not base64"))?;
                let extracted = documents::extract(PDF, bytes).await;
                let name = name.as_deref().unwrap_or("document");
                *text = Some(extracted.map_err(|why| unread(&format!("the PDF document {name:?}, and {why}"), "pdf"))?);
            }
            Part::Document { mime_type, .. } => return Err(unread(&format!("{mime_type} documents"), "pdf")),
            _ => return Err(unread("audio", "audio")),
        }
    }
    Ok(())
}

/// Returns the slash commands of a session in `cwd`. Unless `check` is set, changes of files since
/// the last check are not noticed.
pub(in crate::agent) async fn list(services: &Arc<Services>, cwd: &Path, check: bool) -> Result<Arc<[SlashCommand]>> {
    if let Some(known) = services.commands.known(cwd, check) {
        return Ok(known);
    }
    let (services, cwd) = (services.clone(), cwd.to_path_buf());
    blocking(move || services.commands.read(&services.prompt_dirs(&cwd))).await
}

impl Services {
    /// Returns the directories in which the files of slash commands and skills are searched.
    pub(in crate::agent) fn prompt_dirs<'a>(&'a self, cwd: &'a Path) -> PromptDirs<'a> {
        PromptDirs { cwd, places: &self.places }
    }

    /// Returns the directories of the user's skills, which tools may read.
    pub(in crate::agent) fn skill_dirs(&self, cwd: &Path) -> Vec<PathBuf> {
        self.prompt_dirs(cwd).user_skills()
    }
}

async fn blocking<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    task::blocking("reading files", read).await
}
