//! `session/fork`. ACP's types require `cwd`, which clients may omit here.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::directories::{directories, directory};
use crate::api::dispatch::method::{FollowChange, Method, Reply};
use crate::api::dispatch::params::decode_meta;
use crate::api::dispatch::route::Route;
use crate::api::views::mcp_servers::mcp_servers;
use crate::api::views::options::{config_options, modes};
use crate::api::views::system_prompt::SystemPromptChange;
use crate::error::Result;
use crate::event::SessionChange;
use crate::id::SessionId;
use crate::protocol::acp;

/// ACP's ForkSessionRequest. Without `cwd` the new session uses the parent's.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ForkParams {
    session_id: SessionId,
    cwd: Option<PathBuf>,
    /// Additional directories of the new session; none when it is missing.
    additional_directories: Option<Vec<PathBuf>>,
    mcp_servers: Option<Vec<acp::McpServer>>,
    system_prompt: Option<acp::SystemPrompt>,
    #[serde(rename = "_meta")]
    meta: Option<acp::Meta>,
}

/// The fields of `_meta.nuncio` in `session/fork`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkMeta {
    title: Option<String>,
}

/// ACP's ForkSessionResponse.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkResult {
    session_id: SessionId,
    modes: acp::SessionModeState,
    config_options: Vec<acp::SessionConfigOption>,
}

pub(crate) struct ForkSession;

impl Method for ForkSession {
    type Params = ForkParams;
    type Result = ForkResult;
    const NAME: &'static str = "session/fork";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/fork").status(201)];
    const DOC: &'static str =
        "Creates a session with the history of another one, up to the end of its last turn. `_meta.nuncio`: title.";

    async fn call(cx: CallContext, params: ForkParams) -> Result<Reply<ForkResult>> {
        cx.client.authorized()?;
        let meta: ForkMeta = decode_meta(params.meta.as_ref())?;
        let servers = mcp_servers(&cx, params.mcp_servers.unwrap_or_default())?;
        let sessions = cx.authorize(&params.session_id).await?;
        let cwd = params.cwd.map(|cwd| directory(&cx, "cwd", &cwd)).transpose()?;
        let additional = directories(&cx, &params.additional_directories.unwrap_or_default())?;
        let prompt = SystemPromptChange::read(params.system_prompt, params.meta.as_ref())?;
        let change = SessionChange {
            title: meta.title,
            cwd,
            additional_directories: Some(additional),
            system_prompt: prompt.replace,
            system_prompt_append: prompt.append,
            ..SessionChange::default()
        };
        let session = sessions.fork(&params.session_id, change).await?;
        session.set_mcp_servers(servers);
        let id = session.log.id.clone();
        let forked = ForkResult {
            session_id: id.clone(),
            modes: session.log.state(modes),
            config_options: config_options(&cx.app, &cx.client, &session).await,
        };
        Ok(Reply::new(forked).follow(FollowChange::After(id, session.log.head())))
    }
}
