//! The slash commands of a session, for the completion in a client's composer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::api::views::view::SessionParams;
use crate::context::commands::SlashCommand;
use crate::error::Result;

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

pub(crate) struct ListCommands;

impl Method for ListCommands {
    type Params = SessionParams;
    type Result = CommandList;
    const NAME: &'static str = "_nuncio/command/list";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/commands")];
    const ROLE: ClientRole = ClientRole::Observer;
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str = "Lists the slash commands that a prompt of the session can begin with: those of nuncio, of files and skills, and of \
         MCP servers, or those that a hosted agent has reported. Commands of MCP servers and hosted agents are listed once these run.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<CommandList>> {
        cx.decided();
        let session = match cx.opened(&params.session_id) {
            Some(session) => {
                cx.check_access(&session)?;
                session
            }
            None => cx.open_read_only(&params.session_id).await?,
        };
        let commands = session.commands(true).await;
        Ok(Reply::new(CommandList { commands: commands.iter().map(CommandView::from_command).collect() }))
    }
}
