//! `session/fork`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::session::CreatedSession;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::directories::{directories, directory};
use crate::api::dispatch::flatten::MetaFields;
use crate::api::dispatch::method::{FollowChange, Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::views::mcp_servers::mcp_servers;
use crate::api::views::options::SessionOptions;
use crate::api::views::system_prompt::SystemPromptChange;
use crate::error::Result;
use crate::event::SessionChange;
use crate::id::SessionId;
use crate::protocol::acp;

/// ACP's ForkSessionRequest. Without `cwd` the new session uses the parent's.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ForkParams {
    pub session_id: SessionId,
    pub cwd: Option<PathBuf>,
    /// Additional directories of the new session; none when it is missing.
    pub additional_directories: Option<Vec<PathBuf>>,
    pub mcp_servers: Option<Vec<acp::McpServer>>,
    #[schemars(with = "Option<acp::SystemPrompt>")]
    pub system_prompt: Option<Value>,
    pub title: Option<String>,
}

impl ForkParams {
    /// Forks a session with its directory.
    pub(crate) fn new(session_id: SessionId) -> ForkParams {
        let (cwd, additional_directories, mcp_servers, system_prompt, title) = (None, None, None, None, None);
        ForkParams { session_id, cwd, additional_directories, mcp_servers, system_prompt, title }
    }
}

pub(crate) struct ForkSession;

impl Method for ForkSession {
    type Params = ForkParams;
    type Result = CreatedSession;
    const NAME: &'static str = "session/fork";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/sessions/{sessionId}/fork").status(201)];
    const DOC: &'static str =
        "Creates a session with the history of another one, up to the end of its last turn. `_meta.nuncio`: title.";
    const META: MetaFields = MetaFields { params: &["title"], refuses_others: true, ..MetaFields::NONE };

    async fn call(cx: CallContext, params: ForkParams) -> Result<Reply<CreatedSession>> {
        cx.client.authorized()?;
        let servers = mcp_servers(&cx, params.mcp_servers)?;
        let sessions = cx.authorize(&params.session_id).await?;
        let cwd = params.cwd.map(|cwd| directory(&cx, "cwd", &cwd)).transpose()?;
        let additional = directories(&cx, params.additional_directories)?;
        let prompt = SystemPromptChange::read(params.system_prompt)?;
        let change = SessionChange {
            title: params.title,
            cwd,
            additional_directories: Some(additional),
            system_prompt: prompt.replace,
            system_prompt_append: prompt.append,
            ..SessionChange::default()
        };
        let session = sessions.fork(&params.session_id, change).await?;
        session.set_mcp_servers(servers);
        let session_id = session.log.id.clone();
        let forked = CreatedSession { options: SessionOptions::of(&session, &cx).await, session_id: session_id.clone() };
        Ok(Reply::new(forked).follow(FollowChange::After(session_id, session.log.head())))
    }
}
