//! Forwards a call to the process that owns its session. The owner checks the rights of the caller
//! again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::forwarded::{
    ANSWERED, CALL, CANCEL, CallNumber, ForwardedCall, ForwardedReply, RELEASE, Release, SHOWN, STARTED, ShownEvents,
};
use crate::api::dispatch::call_context::{CallContext, TurnStart};
use crate::api::dispatch::method::{FollowChange, MethodKind, MethodRow, Reply};
use crate::error::{Error, Kind, Result};
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::local_socket::{PeerConnection, PeerFailure};
use crate::rpc::message::error_from;
use crate::session::{Session, Sessions};
use crate::task;

/// How long the owner of an idle session may take to end its agent and to release it.
const FORWARD_RELEASE: Duration = Duration::from_secs(5);

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

/// Connects to the owner of the session. Returns `None` if no process owns the session, or if the
/// owner no longer listens.
pub(in crate::api) async fn connect(sessions: &Sessions, session: &Session) -> Result<Option<Arc<PeerConnection>>> {
    if let Some(connection) = session.others.owner_connection() {
        return Ok(Some(connection));
    }
    let Some(owner) = sessions.other_owner(&session.log.id).await? else { return Ok(None) };
    match sessions.peers().connect(&owner) {
        Ok(connection) => {
            session.others.set_owner_connection(Some(connection.clone()));
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
pub(in crate::api) async fn release(connection: &PeerConnection, id: &SessionId) -> bool {
    let asked = connection.request(RELEASE, Release { session: id.clone() });
    matches!(tokio::time::timeout(FORWARD_RELEASE, asked).await, Ok(Ok(Value::Bool(true))))
}

/// A call on its way to the owner of its session.
pub(in crate::api) struct Call<'a> {
    pub row: &'a MethodRow,
    pub cx: &'a CallContext,
    /// The session, open for reading in this process.
    pub session: &'a Session,
    pub connection: Arc<PeerConnection>,
}

/// The end of a call to the owner of its session.
pub(in crate::api) enum Outcome {
    Reply(Box<Reply<Value>>),
    NotOwner { accepted: bool },
    Failed(PeerFailure),
}

impl Call<'_> {
    /// Sends the call and waits for the reply.
    pub(in crate::api) async fn exchange(&self, params: &Value) -> Outcome {
        let mut notifications = self.connection.new_call();
        let mut params = params.clone();
        // Calls have the form of ACP between processes.
        self.row.nest_params(&mut params);
        let epoch = self.cx.place.as_ref().filter(|_| self.row.adds_message).map(|place| place.epoch());
        let call = ForwardedCall {
            call: notifications.call,
            session: self.session.log.id.clone(),
            method: self.row.name.into(),
            params,
            client: self.cx.client.clone(),
            answers: self.cx.client.shows() || self.session.broker.has_responders(),
            reports_start: self.cx.turn_started.is_some(),
            message_id: self.cx.message_id.clone(),
            repeated_after: self.cx.repeated_after,
            epoch,
        };
        let mut answered = pin!(self.connection.request(CALL, call));
        match self.cx.place.as_ref().zip(epoch) {
            Some((place, epoch)) => place.set_sent(self.connection.clone(), epoch),
            None => self.cx.decided(),
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
                self.session.others.set_owner_connection(None);
                return Outcome::Failed(failure);
            }
        };
        match reply {
            ForwardedReply::NotOwner { accepted } => {
                self.session.others.set_owner_connection(None);
                Outcome::NotOwner { accepted }
            }
            ForwardedReply::Reply { result, error, after, follow } => {
                let mut result = error.map_or(Ok(result), |error| Err(error_from(&error)));
                result.iter_mut().for_each(|result| self.row.flatten_result(result));
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
    pub(in crate::api) async fn finish(&self, mut reply: Reply<Value>) -> Result<Reply<Value>> {
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
    pub(in crate::api) fn failed(&self, failure: PeerFailure) -> Error {
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
