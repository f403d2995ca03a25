//! The resources of a session's MCP servers, for the completion in a client's composer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::api::dispatch::route::Route;
use crate::api::views::view::SessionParams;
use crate::error::Result;
use crate::session::McpResource;

/// Resources of MCP servers.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ResourceList {
    pub resources: Vec<McpResource>,
}

pub(crate) struct ListResources;

impl Method for ListResources {
    type Params = SessionParams;
    type Result = ResourceList;
    const NAME: &'static str = "_nuncio/resource/list";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01"}"#;
    const ROUTES: &'static [Route] = &[Route::get("/v1/sessions/{sessionId}/resources")];
    const ROLE: ClientRole = ClientRole::Observer;
    const SCOPE: Scope = Scope::OwnerIfAny;
    const DOC: &'static str = "Lists the resources of the session's MCP servers that are ready. `@SERVER:URI` in a message attaches one. No server is \
         started: the list is empty before the first turn in a process.";

    async fn call(cx: CallContext, params: SessionParams) -> Result<Reply<ResourceList>> {
        let id = params.session_id;
        let resources = match cx.opened(&id) {
            Some(session) => {
                cx.check_access(&session)?;
                // Later calls do not wait for the servers.
                cx.decided();
                session.agent().resources().await
            }
            None => cx.authorize(&id).await.map(|_| Vec::new())?,
        };
        Ok(Reply::new(ResourceList { resources }))
    }
}
