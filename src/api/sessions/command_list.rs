//! The slash commands of a session, for the completion in a client's composer.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::directories::{Place, place};
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::context::commands::SlashCommand;
use crate::error::Result;
use crate::id::SessionId;

/// Selects whose commands are listed.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListCommandsParams {
    pub session_id: Option<SessionId>,
    /// The directory in which a session will be created, in place of `sessionId`.
    pub cwd: Option<PathBuf>,
}

/// A slash command. A prompt `/name input` runs it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Command")]
pub(crate) struct CommandView {
    /// The name without the slash.
    pub name: String,
    pub description: String,
    /// Describes the input that may follow the name; missing for a command without input.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl CommandView {
    fn from_command(command: &SlashCommand) -> CommandView {
        let hint = Some(command.hint.to_string()).filter(|hint| !hint.is_empty());
        CommandView { name: command.name.to_string(), description: command.description.to_string(), hint }
    }
}

/// Slash commands, in alphabetical order. Prompts of MCP servers follow.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CommandList {
    pub commands: Vec<CommandView>,
}

impl CommandList {
    fn new(commands: &[SlashCommand]) -> CommandList {
        CommandList { commands: commands.iter().map(CommandView::from_command).collect() }
    }
}

pub(crate) struct ListCommands;

impl Method for ListCommands {
    type Params = ListCommandsParams;
    type Result = CommandList;
    const NAME: &'static str = "_nuncio/command/list";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/commands")];
    const ROLE: ClientRole = ClientRole::Observer;
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str = "Lists the slash commands that a prompt of the session, or of a new session in `cwd`, can begin with: those of nuncio, of files and skills, and of \
         MCP servers, or those that a hosted agent has reported. Commands of MCP servers and hosted agents are listed once these run.";

    async fn call(cx: CallContext, params: ListCommandsParams) -> Result<Reply<CommandList>> {
        cx.decided();
        let id = match place(&cx, params.session_id, params.cwd)? {
            Place::Session(id) => id,
            Place::Directory(cwd) => return Ok(Reply::new(CommandList::new(&cx.app.services.commands_in(&cwd, true).await?))),
        };
        let session = match cx.opened(&id) {
            Some(session) => {
                cx.check_access(&session)?;
                session
            }
            None => cx.open_read_only(&id).await?,
        };
        Ok(Reply::new(CommandList::new(&session.commands(true).await)))
    }
}
