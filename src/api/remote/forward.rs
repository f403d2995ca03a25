//! Runs calls in the process that owns their session: in this process, or in another one, to which
//! the call is forwarded. The owner checks the rights of the caller again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::forwarded::{
    ANSWERED, CALL, CANCEL, CallNumber, ForwardedCall, ForwardedReply, RELEASE, Release, SHOWN, STARTED, ShownEvents,
};
use super::{placement, recover};
use crate::api::dispatch::call_context::{CallContext, TurnStart};
use crate::api::dispatch::call_order::CallPlace;
use crate::api::dispatch::method::{FollowChange, MethodKind, MethodRow, Reply, Scope};
use crate::error::{Error, Kind, Result};
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::local_socket::{PeerConnection, PeerFailure};
use crate::protocol::acp;
use crate::rpc::message::error_from;
use crate::session::{Session, Sessions, is_closed_before_call, is_not_owner};
use crate::task;

/// How long the owner of an idle session may take to end its agent and to release it.
const FORWARD_RELEASE: Duration = Duration::from_secs(5);

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

/// Forwards a call to the session's owner. Returns `None` if no other process owns the session.
pub(in crate::api) async fn call_owner(
    row: &MethodRow,
    cx: &CallContext,
    session: &Session,
    params: &Value,
) -> Result<Option<Reply<Value>>> {
    let sessions = cx.app.sessions().await?;
    // The known connection may lead to an earlier owner: then the second attempt finds the owner.
    for _ in 0..2 {
        let Some(connection) = connect(sessions, session).await? else { return Ok(None) };
        let call = Call { row, cx, session, connection };
        match call.exchange(params).await {
            Outcome::Reply(reply) => return call.finish(*reply).await.map(Some),
            Outcome::NotOwner { .. } => {}
            Outcome::Failed(failure) => return Err(call.failed(failure)),
        }
    }
    Ok(None)
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
                return Ok(Reply::new(json!({ "stopReason": acp::StopReason::Cancelled })));
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
        earlier_messages_arrived(row, cx, None).await;
        match row.run_here(cx.clone(), params.clone()).await {
            Err(error) if is_not_owner(&error) || is_closed_before_call(&error) => Ok(Attempt::NOT_OWNER),
            outcome => outcome.map(Attempt::done),
        }
    };
    // The method checks the access.
    if cx.opened(id).is_some_and(|session| session.is_owned()) {
        return run_here().await;
    }
    // The method returns the error of an unknown session, after it has checked its other params.
    let Ok(sessions) = cx.authorize(id).await else { return run_here().await };
    let session = match (sessions.opened(id), row.scope) {
        (Some(session), _) if session.is_owned() => return run_here().await,
        (Some(session), _) if session.has_owner_connection() => session,
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
            session.set_owner_connection(None);
            return if sessions.get(id).await?.is_owned() { run_here().await } else { Ok(Attempt::NOT_OWNER) };
        }
        if cx.client.needs_own_process {
            let message = format!("session {id} is in use in another process, to which the flags of this command do not apply");
            return Err(Error::new(Kind::SessionBusy, message).hint("retry when its turn has ended, or omit the flags"));
        }
    }
    earlier_messages_arrived(row, cx, Some(&connection)).await;
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
async fn earlier_messages_arrived(row: &MethodRow, cx: &CallContext, connection: Option<&Arc<PeerConnection>>) {
    let Some(place) = cx.place.as_ref().filter(|_| row.adds_message) else { return };
    tokio::select! {
        () = place.earlier_messages_arrived(connection) => {}
        () = cx.cancel.cancelled() => {}
    }
}

/// Connects to the owner of the session. Returns `None` if no process owns the session, or if the
/// owner no longer listens.
async fn connect(sessions: &Sessions, session: &Session) -> Result<Option<Arc<PeerConnection>>> {
    if let Some(connection) = session.owner_connection() {
        return Ok(Some(connection));
    }
    let Some(owner) = sessions.other_owner(&session.log.id).await? else { return Ok(None) };
    match sessions.peers().connect(&owner) {
        Ok(connection) => {
            session.set_owner_connection(Some(connection.clone()));
            Ok(Some(connection))
        }
        Err(error) if error.kind == Kind::NotFound => Ok(None),
        Err(error) => {
            let hint = error.hint.clone().unwrap_or_else(|| "prompt it once that process closes it or ends".into());
            let message = format!("session {} cannot be reached: {}", session.log.id, error.message);
            Err(Error::new(error.kind, message).hint(hint).details(json!({ "ownerPid": owner.pid })))
        }
    }
}

/// Asks the owner to release an idle session. Returns whether it did.
async fn release(connection: &PeerConnection, id: &SessionId) -> bool {
    let asked = connection.request(RELEASE, Release { session: id.clone() });
    matches!(tokio::time::timeout(FORWARD_RELEASE, asked).await, Ok(Ok(Value::Bool(true))))
}

/// A call on its way to the owner of its session.
struct Call<'a> {
    row: &'a MethodRow,
    cx: &'a CallContext,
    /// The session, open for reading in this process.
    session: &'a Session,
    connection: Arc<PeerConnection>,
}

enum Outcome {
    Reply(Box<Reply<Value>>),
    NotOwner { accepted: bool },
    Failed(PeerFailure),
}

impl Call<'_> {
    /// Sends the call and waits for the reply.
    async fn exchange(&self, params: &Value) -> Outcome {
        let mut notifications = self.connection.new_call();
        let call = ForwardedCall {
            call: notifications.call,
            session: self.session.log.id.clone(),
            method: self.row.name.into(),
            params: params.clone(),
            client: self.cx.client.describe(),
            answers: self.cx.client.shows() || self.session.broker.has_responders(),
            reports_start: self.cx.turn_started.is_some(),
            message_id: self.cx.message_id.clone(),
            repeated_after: self.cx.repeated_after,
        };
        let mut answered = pin!(self.connection.request(CALL, call));
        match &self.cx.place {
            Some(place) if self.row.adds_message => place.set_sent(self.connection.clone()),
            _ => self.cx.decided(),
        }
        self.report_answered(notifications.call);
        // A call may run for any time while the owner responds; a turn ends soon after the client
        // has cancelled it.
        let mut hangs = pin!(self.connection.hangs());
        let is_turn = self.row.kind == MethodKind::Turn;
        let mut deadline = None;
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answered => break answer,
                (method, params) = notifications.next() => self.notified(&method, params).await,
                () = self.cx.cancel.cancelled(), if is_turn && deadline.is_none() => {
                    self.connection.notify(CANCEL, CallNumber { call: notifications.call });
                    deadline = Some(Instant::now() + limits::FORWARD_ANSWER);
                }
                () = task::passed(deadline) => {
                    self.connection.responds().await;
                    return Outcome::Failed(PeerFailure::Refused(self.timed_out()));
                }
                () = &mut hangs, if !is_turn => return Outcome::Failed(PeerFailure::Refused(self.timed_out())),
            }
        };
        while let Some((method, params)) = notifications.arrived() {
            self.notified(&method, params).await;
        }
        let reply = match answer.map(serde_json::from_value::<ForwardedReply>) {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => return Outcome::Failed(PeerFailure::Refused(Error::internal(format!("invalid reply: {error}")))),
            Err(failure) => {
                self.session.set_owner_connection(None);
                return Outcome::Failed(failure);
            }
        };
        match reply {
            ForwardedReply::NotOwner { accepted } => {
                self.session.set_owner_connection(None);
                Outcome::NotOwner { accepted }
            }
            ForwardedReply::Reply { result, error, after, follow } => {
                let result = error.map_or(Ok(result), |error| Err(error_from(&error)));
                Outcome::Reply(Box::new(Reply { result, after, follow, stream: None }))
            }
        }
    }

    /// Handles a notification of the owner about this call.
    async fn notified(&self, method: &str, params: Value) {
        match method {
            SHOWN => {
                if let Ok(ShownEvents { after, .. }) = serde_json::from_value(params) {
                    self.cx.client.show(self.session, after);
                }
            }
            STARTED => {
                if let Ok(started) = serde_json::from_value::<TurnStart>(params) {
                    self.catch_up(started.after).await;
                    self.cx.report_started(started);
                }
            }
            _ => tracing::debug!(method, "unknown notification of another process"),
        }
    }

    /// Tells the owner when the client's response is written: the session's next turn starts after
    /// that.
    fn report_answered(&self, call: u64) {
        if self.row.kind != MethodKind::Turn || self.cx.client.local.is_none() {
            return;
        }
        let (answered, connection) = (self.cx.answered.clone(), self.connection.clone());
        task::spawn(async move {
            answered.cancelled().await;
            connection.notify(ANSWERED, CallNumber { call });
        });
    }

    /// Makes the events that the reply follows visible here, before the reply is returned.
    async fn finish(&self, mut reply: Reply<Value>) -> Result<Reply<Value>> {
        self.catch_up(reply.after.as_ref().filter(|_| reply.follow.is_none()).map_or(Seq::MAX, |(_, seq)| *seq)).await;
        let sessions = self.cx.app.sessions().await?;
        match &reply.follow {
            None => {}
            Some(FollowChange::No(id)) => {
                // The client sees all events of the session before it stops following.
                reply.after = Some((id.clone(), self.session.log.head()));
                sessions.forget(id).await;
            }
            // The owner knows that the client answers permission requests before the client can
            // start a turn that asks.
            Some(_) if self.cx.client.shows() => sessions.register_for(self.session, limits::RESPONDER_WAIT).await,
            Some(_) => {}
        }
        Ok(reply)
    }

    async fn catch_up(&self, until: Seq) {
        if let Err(error) = self.session.catch_up(until).await {
            tracing::warn!(session = %self.session.log.id, %error, "reading a session of another process failed");
        }
    }

    fn timed_out(&self) -> Error {
        let message = format!("the owner of session {} does not respond", self.session.log.id);
        Error::new(Kind::Timeout, message).hint("the call may still take effect")
    }

    /// Converts the failure of a call to an error: the owner refused the connection or the call, or
    /// it ended during the call, so that the effect of the call is unknown.
    fn failed(&self, failure: PeerFailure) -> Error {
        match (failure, self.connection.refusal()) {
            // A call that was sent with the greeting is handled once the process continues.
            (_, Some(refusal)) if refusal.kind == Kind::Timeout => self.timed_out(),
            (_, Some(refusal)) => Error { kind: Kind::SessionBusy, ..refusal.clone() },
            (PeerFailure::Refused(error), None) => error,
            (PeerFailure::Closed, None) => {
                let message = format!("the owner of session {} ended during the call", self.session.log.id);
                Error::new(Kind::Cancelled, message).hint("retry")
            }
        }
    }
}
