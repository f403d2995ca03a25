//! `session/set_title`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::method::{Method, Reply, Scope};
use crate::error::{Error, Result};
use crate::event::{Body, SessionChange};
use crate::id::SessionId;

/// Maximum length of a title that a client sets, in characters. A longer title is truncated.
const SET_TITLE_CHARS_MAX: usize = 500;

/// The title of a session.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SetTitleParams {
    pub session_id: SessionId,
    pub title: String,
}

/// The stored title.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredTitle {
    title: String,
}

pub(crate) struct SetTitle;

impl Method for SetTitle {
    type Params = SetTitleParams;
    type Result = StoredTitle;
    const NAME: &'static str = "session/set_title";
    const EXAMPLE: &'static str = r#"{"sessionId": "sess_01", "title": "Parser"}"#;
    const SCOPE: Scope = Scope::Owner;
    const DOC: &'static str =
        "Sets the title of a session, also while a turn runs. Returns the stored title: one line without surrounding spaces.";

    async fn call(cx: CallContext, params: SetTitleParams) -> Result<Reply<StoredTitle>> {
        let line = params.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title: String = line.chars().take(SET_TITLE_CHARS_MAX).collect();
        if title.is_empty() {
            return Err(Error::invalid_params("title: must not be empty"));
        }
        let session = cx.owned(&params.session_id).await?;
        let change = SessionChange { title: Some(title.clone()), ..SessionChange::default() };
        let seq = session.change(Body::SessionUpdated { change }).await?;
        Ok(Reply::new(StoredTitle { title }).after(session.log.id.clone(), seq))
    }
}
