//! Runs calls in the process that owns their session: in this process, or in another one, to which
//! the call is forwarded.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::dispatch::call_context::CallContext;
use super::dispatch::call_order::CallPlace;
use super::dispatch::method::{MethodKind, MethodRow, Reply, Scope};
use super::remote::forward::{Call, Outcome, connect, release};
use super::remote::{placement, recover};
use crate::content::StopReason;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::limits;
use crate::local_socket::{PeerConnection, PeerFailure};
use crate::session::is_not_owner;

impl MethodRow {
    /// Runs a call in the process that [`MethodRow::scope`] requires. The call has its place in the
    /// order of the calls to its session when this function returns. A panic is returned as an
    /// error. A cancelled call returns [`Kind::Cancelled`], unless the method handles cancellation
    /// itself.
    pub(crate) fn run(&self, mut cx: CallContext, params: Value) -> impl Future<Output = Result<Reply<Value>>> + Send + use<'_> {
        let id = match self.scope {
            Scope::Here => None,
            // Without an id, decoding the params fails.
            Scope::Owner | Scope::OwnerOrReader | Scope::OwnerIfAny => params["sessionId"].as_str().map(SessionId::from),
        };
        let routed = id.map(|id| {
            let place = cx.app.add_call(&id);
            cx.place = Some(place.clone());
            // A prompt that still looks for an owner is cancelled here.
            if self.kind == MethodKind::Turn {
                place.add_prompt(cx.cancel.clone());
            }
            (id, place)
        });
        async move {
            let Some((id, place)) = routed else { return self.run_here(cx, params).await };
            let cancel = cx.cancel.clone();
            let outcome = self.guarded(&cancel, route(self, cx, &place, id, params)).await;
            place.end();
            outcome
        }
    }
}

/// Finds the owner of the session and runs the call there. Retries while the session changes its
/// owner.
async fn route(row: &MethodRow, mut cx: CallContext, place: &CallPlace, id: SessionId, params: Value) -> Result<Reply<Value>> {
    cx.client.require_role(row.role)?;
    if row.kind == MethodKind::Notification && cx.authorize(&id).await.is_ok() {
        place.cancel_prompts();
    }
    let before = cx.opened(&id).map_or(0, |session| session.log.head());
    let mut searched = Duration::ZERO;
    loop {
        let started = Instant::now();
        let unreachable = match attempt(row, &cx, place, &id, &params).await {
            Ok(Attempt::Done(reply)) => return Ok(*reply),
            Ok(Attempt::NotOwner { .. }) if row.kind == MethodKind::Turn && cx.cancel.is_cancelled() => {
                return Ok(Reply::new(json!({ "stopReason": StopReason::Cancelled })));
            }
            // The turn that the cancel applies to died with its owner. A repeated cancel could
            // apply to a later prompt.
            Ok(Attempt::NotOwner { accepted: true }) if row.kind == MethodKind::Notification => {
                return Ok(Reply::new(Value::Null));
            }
            Ok(Attempt::NotOwner { accepted }) if searched < limits::FORWARD_SEARCH => {
                place.set_refused();
                if accepted {
                    cx.repeated_after = Some(before);
                }
                tokio::time::sleep(limits::FORWARD_PAUSE).await;
                searched += if accepted { limits::FORWARD_PAUSE } else { started.elapsed() };
                continue;
            }
            Ok(Attempt::NotOwner { .. }) => {
                let message = format!("the owner of session {id} did not accept the call");
                Error::new(Kind::SessionBusy, message).hint("retry")
            }
            Err(error) => error,
        };
        return match unreachable.kind {
            Kind::SessionBusy | Kind::Timeout if row.scope == Scope::OwnerOrReader => row.run_here(cx, params).await,
            _ => Err(unreachable),
        };
    }
}

/// The outcome of one attempt to run a call.
enum Attempt {
    Done(Box<Reply<Value>>),
    /// The session changed its owner during the attempt, and the call had no effect.
    NotOwner {
        /// The call waited in an owner.
        accepted: bool,
    },
}

impl Attempt {
    const NOT_OWNER: Attempt = Attempt::NotOwner { accepted: false };

    fn done(reply: Reply<Value>) -> Attempt {
        Attempt::Done(Box::new(reply))
    }
}

/// Runs the call once.
async fn attempt(row: &MethodRow, cx: &CallContext, place: &CallPlace, id: &SessionId, params: &Value) -> Result<Attempt> {
    place.is_next().await;
    let run_here = async || {
        if !earlier_messages_arrived(row, cx, None).await {
            return Ok(Attempt::NOT_OWNER);
        }
        match row.run_here(cx.clone(), params.clone()).await {
            Err(error) if is_not_owner(&error) => Ok(Attempt::NOT_OWNER),
            outcome => outcome.map(Attempt::done),
        }
    };
    // The method checks the access.
    if cx.app.sessions_now().is_some_and(|sessions| sessions.owned(id).is_some()) {
        return run_here().await;
    }
    // The method returns the error of an unknown session, after it has checked its other params.
    let Ok(sessions) = cx.authorize(id).await else { return run_here().await };
    let session = match (sessions.opened(id), row.scope) {
        (Some(session), _) if session.is_owned() || session.others.owner_connection().is_some() => session,
        (_, Scope::OwnerIfAny) => match sessions.other_owner(id).await? {
            None => return run_here().await,
            Some(_) => sessions.open_read_only(id).await?,
        },
        _ => {
            // Invalid params are refused before the session is opened.
            row.check(params.clone())?;
            match placement::place(sessions, id).await {
                Err(error) if row.adds_message => return Err(error),
                // Calls that add no message also work in a process without the directory.
                _ => {}
            }
            sessions.get(id).await?
        }
    };
    if session.is_owned() {
        return run_here().await;
    }
    let Some(connection) = connect(sessions, &session).await? else { return Ok(Attempt::NOT_OWNER) };
    if row.kind == MethodKind::Turn && cx.client.prefers_ownership() {
        if release(&connection, id).await {
            session.others.set_owner_connection(None);
            return if sessions.take(id).await?.is_some() { run_here().await } else { Ok(Attempt::NOT_OWNER) };
        }
        if cx.client.needs_own_process {
            let message = format!("session {id} is in use in another process, to which the flags of this command do not apply");
            return Err(Error::new(Kind::SessionBusy, message).hint("retry when its turn has ended, or omit the flags"));
        }
    }
    if !earlier_messages_arrived(row, cx, Some(&connection)).await {
        return Ok(Attempt::NOT_OWNER);
    }
    let before = session.log.head();
    let call = Call { row, cx, session: &session, connection };
    match call.exchange(params).await {
        Outcome::Reply(reply) => call.finish(*reply).await.map(Attempt::done),
        Outcome::NotOwner { accepted } => Ok(Attempt::NotOwner { accepted }),
        Outcome::Failed(PeerFailure::Closed) if call.connection.refusal().is_none() => {
            let called = &call.connection.address;
            let recovered = if row.adds_message { recover::outcome(cx, row, id, called, before).await? } else { None };
            Ok(recovered.map_or(Attempt::NotOwner { accepted: true }, Attempt::done))
        }
        Outcome::Failed(failure) => Err(call.failed(failure)),
    }
}

/// Waits until the earlier messages of this process have arrived, except on `connection`: an owner
/// that ends refuses messages in any order. Returns at once for a call that adds no message.
/// Returns false if the call was cancelled before: then it must not add its message, which would
/// overtake the earlier ones.
async fn earlier_messages_arrived(row: &MethodRow, cx: &CallContext, connection: Option<&Arc<PeerConnection>>) -> bool {
    let Some(place) = cx.place.as_ref().filter(|_| row.adds_message) else { return true };
    tokio::select! {
        biased;
        () = place.earlier_messages_arrived(connection) => true,
        () = cx.cancel.cancelled() => false,
    }
}
