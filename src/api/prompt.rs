//! Turns: a prompt that waits for its stop, and the cancel that makes it stop.

use std::sync::Arc;

use super::Cx;
use super::method::{Method, Reply};
use super::session::session_id;
use crate::content::Part;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::protocol::{acp, content};
use crate::session::Session;

pub struct Prompt;

impl Method for Prompt {
    type Params = acp::PromptRequest;
    type Result = acp::PromptResponse;
    const NAME: &'static str = "session/prompt";
    const DOC: &'static str =
        "Starts a turn and answers when it stops (ACP prompt turn); a session that is busy answers session_busy.";
    const ENDS_ITSELF: bool = true;

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<Self::Result>> {
        cx.client.authorized()?;
        let (prompt, client) = (parts(params.prompt)?, cx.client.clone());
        let id = session_id(&params.session_id);
        let start = |session: &Arc<Session>| {
            let before = session.log.head();
            let turn = session.start_turn(prompt, &client.id)?;
            client.show(session, before);
            Ok::<_, Error>(turn)
        };
        // No `.await` before the claim where the session is open: a cancel that follows meets this turn.
        let mut turn = match opened(&cx, &id) {
            Some(session) => start(&session)?,
            None => cx.nuncio.sessions().await?.with(&id, start).await??,
        };
        let end = tokio::select! {
            biased;
            end = turn.end() => end,
            () = cx.cancel.cancelled() => {
                turn.cancel();
                turn.end().await
            }
        };
        let response = acp::PromptResponse::new(content::stop_reason(end.result?));
        Ok(Reply::new(response).after(id, end.seq))
    }
}

fn opened(cx: &Cx, id: &SessionId) -> Option<Arc<Session>> {
    cx.nuncio.sessions_now().and_then(|sessions| sessions.opened(id))
}

fn parts(blocks: Vec<acp::ContentBlock>) -> Result<Vec<Part>> {
    if blocks.is_empty() {
        return Err(Error::invalid_params("prompt: is empty"));
    }
    let part =
        |(index, block)| content::part(block).map_err(|problem| Error::invalid_params(format!("prompt[{index}]: {problem}")));
    blocks.into_iter().enumerate().map(part).collect()
}

pub struct Cancel;

impl Method for Cancel {
    type Params = acp::CancelNotification;
    type Result = ();
    const NAME: &'static str = "session/cancel";
    const DOC: &'static str = "Cancels the running turn; nothing happens to a session that is idle.";
    const NOTIFICATION: bool = true;

    async fn call(cx: Cx, params: Self::Params) -> Result<Reply<()>> {
        let id = session_id(&params.session_id);
        match opened(&cx, &id) {
            Some(session) => session.cancel(),
            // One that is just being opened may have been prompted before this.
            None => cx.nuncio.sessions().await?.if_opening(&id, |session| session.cancel()).await,
        }
        Ok(Reply::new(()))
    }
}
