//! The outcome of a call whose session's owner died during the call.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::dispatch::call_context::{CallContext, TurnStart};
use crate::api::dispatch::method::{MethodKind, MethodRow, Reply};
use crate::api::dispatch::prompt_result::turn_end;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, QueuedMessage};
use crate::id::{Seq, SessionId, TurnId};
use crate::limits;
use crate::local_socket::PeerAddress;
use crate::session::Session;

/// Finds out what became of the message that the call adds to the session. `called` is the process
/// that was the owner, and `before` a seq that precedes the call. Returns `None` if the message is
/// not in the session, and never will be: then the call can be repeated.
pub(in crate::api) async fn outcome(
    cx: &CallContext,
    row: &MethodRow,
    id: &SessionId,
    called: &PeerAddress,
    before: Seq,
) -> Result<Option<Reply<Value>>> {
    let sessions = cx.app.sessions().await?;
    let deadline = Instant::now() + if sessions.store().has_nodes() { limits::NODE_TAKEOVER } else { limits::FORWARD_SEARCH };
    let (session, turn) = loop {
        // A process that takes the session ends the turn that the dead owner left open, and stops
        // the owner from writing if it is alive. The lock of a dead owner is released shortly after
        // its connections end, the claim of a dead node when its lease ends.
        let session = sessions.get(id).await?;
        let taken = session.is_owned() || sessions.other_owner(id).await?.is_some_and(|owner| owner != *called);
        session.catch_up(Seq::MAX).await?;
        match find(cx, &session, before).await? {
            Some(turn) => {
                cx.decided();
                break (session, turn);
            }
            None if taken => return Ok(None),
            None if Instant::now() >= deadline => {
                let message = format!("the owner of session {id} ended the connection during the call");
                return Err(Error::new(Kind::Cancelled, message).hint("the session's events show the outcome"));
            }
            None => tokio::time::sleep(limits::FORWARD_PAUSE).await,
        }
    };
    if row.kind != MethodKind::Turn {
        let mut result = json!({ "messageId": cx.message_id });
        turn.inspect(|turn| result["turnId"] = json!(turn));
        return Ok(Some(Reply::new(result)));
    }
    let Some(turn) = turn else {
        return Err(Error::new(Kind::Cancelled, format!("the message is queued in session {id}, whose owner ended")));
    };
    cx.report_started(TurnStart { session: id.clone(), turn: turn.clone(), after: before });
    let (response, seq) = tokio::time::timeout(limits::FORWARD_ANSWER, end(&session, &turn, before))
        .await
        .unwrap_or_else(|_| Err(Error::new(Kind::Timeout, format!("turn {turn} has no end yet"))))?;
    Ok(Some(Reply::from_result(response).after(id.clone(), seq)))
}

/// Searches the message of the call after `before`. Returns its turn, which a queued message does
/// not have, or `None` if the message is not in the session.
async fn find(cx: &CallContext, session: &Session, before: Seq) -> Result<Option<Option<TurnId>>> {
    let mut follow = session.log.follow(before);
    let mut found = None;
    while follow.cursor() < session.log.head() {
        for event in follow.read().await? {
            match &event.body {
                Body::MessageCompleted { message_id, .. } | Body::MessageQueued(QueuedMessage { message_id, .. })
                    if *message_id == cx.message_id =>
                {
                    found = Some(event.turn_id.clone());
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// Waits for the end of the turn, and ends it if no process owns the session. Returns the response
/// to its prompt, and the seq of its last event.
async fn end(session: &Session, turn: &TurnId, before: Seq) -> Result<(Result<Value>, Seq)> {
    let mut follow = session.log.follow(before);
    loop {
        for event in follow.read().await? {
            if let Some(end) = turn_end(&event).filter(|_| event.turn_id.as_ref() == Some(turn)) {
                return Ok((end.map(|result| json!(result)), event.seq));
            }
        }
        // The lock of a dead owner is released shortly after its connections end.
        if tokio::time::timeout(limits::FORWARD_PAUSE, follow.moved()).await.is_err() {
            match session.own().await {
                Err(error) if error.kind == Kind::SessionBusy => session.catch_up(Seq::MAX).await?,
                owned => drop(owned?),
            }
        }
    }
}
