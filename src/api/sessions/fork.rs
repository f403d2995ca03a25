//! `session/fork`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::session::{CreatedSession, SessionPlace, read_place};
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::directories::{directories, directory};
use crate::api::dispatch::method::{FollowChange, MetaFields, Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::dispatch::system_prompt::SystemPromptChange;
use crate::api::views::mcp_servers::mcp_servers;
use crate::api::views::options::SessionOptions;
use crate::error::Result;
use crate::event::SessionChange;
use crate::id::SessionId;

/// A session to copy, and the place of its copy.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkParams {
    pub session_id: SessionId,
    #[serde(flatten, deserialize_with = "read_place")]
    pub place: SessionPlace,
    pub title: Option<String>,
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
        let servers = mcp_servers(&cx, params.place.mcp_servers)?;
        let sessions = cx.authorize(&params.session_id).await?;
        let cwd = params.place.cwd.map(|cwd| directory(&cx, "cwd", &cwd)).transpose()?;
        let additional = directories(&cx, params.place.additional_directories)?;
        let prompt = SystemPromptChange::read(params.place.system_prompt)?;
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
