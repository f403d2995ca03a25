//! Commands of hosted agents.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::session::{CommandRequest, CommandResult};

/// A command line to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExecuteParams {
    session_id: SessionId,
    /// A command line for bash.
    #[schemars(length(min = 1))]
    command: String,
    /// Milliseconds after which the command is ended.
    timeout_ms: Option<u64>,
}

pub(crate) struct ExecuteCommand;

impl Method for ExecuteCommand {
    type Params = ExecuteParams;
    type Result = CommandResult;
    const NAME: &'static str = "_nuncio/session/execute";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "command": "make test"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/execute")];
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str = "Runs a command in the session's directory for its hosted agent, as a call of the tool `bash` in the running turn: the \
         rules, the mode, the permission requests and the sandbox of the session apply. Without a running turn of a hosted \
         agent: `invalid_params`.";

    async fn call(cx: CallContext, params: ExecuteParams) -> Result<Reply<CommandResult>> {
        cx.client.authorized()?;
        let ExecuteParams { session_id, command, timeout_ms } = params;
        if command.trim().is_empty() {
            return Err(Error::invalid_params("command: is empty"));
        }
        let session = cx.owned(&session_id).await?;
        cx.decided();
        session.execute(CommandRequest { command, timeout_ms }).await.map(Reply::new)
    }
}
