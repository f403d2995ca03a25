//! Handles the requests of another process.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::calls::{CallEpochs, RunningCalls};
use crate::api::{
    self, AGENTS, ANSWERED, App, CALL, CANCEL, CallContext, CallNumber, ForwardedCall, ForwardedReply, MethodKind, ProcessQuery,
    RELEASE, Release, SHOWN, STARTED, Scope, ShownEvents, TAKE, TurnStart,
};
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::limits;
use crate::local_socket::{HELLO, Hello, PROTOCOL_VERSION, common_version};
use crate::rpc::{Connection, Handler};
use crate::session::{OwnedSession, REGISTER, REGISTERED, Register, is_not_owner};

/// Handles the requests of one connection.
pub(super) struct PeerHandler {
    app: Arc<App>,
    connection: Connection<()>,
    /// True once the other process introduced itself.
    greeted: AtomicBool,
    /// Cancelled when the other process is refused.
    refused: CancellationToken,
    calls: Arc<RunningCalls>,
    epochs: Arc<CallEpochs>,
}

impl PeerHandler {
    pub(crate) fn new(app: Arc<App>, connection: Connection<()>) -> PeerHandler {
        let (greeted, refused) = (AtomicBool::new(false), CancellationToken::new());
        PeerHandler { app, connection, greeted, refused, calls: Arc::default(), epochs: Arc::default() }
    }

    /// Resolves when the connection must end: the other process was refused, or did not introduce
    /// itself in time.
    pub(crate) async fn refused(&self) {
        let in_time = tokio::time::timeout(limits::PEER_HELLO, self.refused.cancelled()).await.is_ok();
        if !in_time && !self.greeted.load(Ordering::Acquire) {
            self.refuse("it did not introduce itself");
        }
        self.refused.cancelled().await;
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.refused.is_cancelled()
    }

    /// Makes the connection end.
    fn refuse(&self, reason: &str) {
        tracing::warn!(reason, "the connection of another process was refused");
        self.refused.cancel();
    }

    fn hello(&self, params: Value) -> Result<Value> {
        let hello: Hello = decode(params).inspect_err(|error: &Error| self.refuse(&error.message))?;
        let own = self.app.sessions_now().map_or(PROTOCOL_VERSION, |sessions| sessions.peers().version());
        if common_version(own, hello.version) != Some(hello.version) {
            let message = format!(
                "process {} uses version {own} of the local protocol, process {} version {}",
                std::process::id(),
                hello.pid,
                hello.version
            );
            self.refuse(&message);
            return Err(Error::new(Kind::Unsupported, message).hint("use the same version of nuncio in both processes"));
        }
        self.greeted.store(true, Ordering::Release);
        Ok(json!({ "pid": std::process::id() }))
    }

    /// Returns the session if this process owns it and does not shut it down.
    fn owned(&self, id: &SessionId) -> Option<OwnedSession> {
        // A process that shuts down releases the session in a moment.
        self.app.sessions_now()?.owned(id).filter(|session| !session.is_shutting_down())
    }

    /// Runs a forwarded call, which has its place in the order of calls when this returns.
    fn call(&self, params: Value, cancel: CancellationToken) -> Result<BoxFuture<'static, Result<Value>>> {
        let call: ForwardedCall = decode(params)?;
        let unknown = || Error::new(Kind::Unsupported, format!("method {} is not forwarded", call.method));
        let row = api::method(&call.method).filter(|row| row.kind != MethodKind::Stream).ok_or_else(unknown)?;
        let owned = self.owned(&call.session);
        let generation = owned.as_ref().map(|session| session.generation());
        let in_order = call.epoch.is_none_or(|epoch| self.epochs.accepts(&call.session, epoch, generation));
        let Some(session) = owned.filter(|_| in_order) else {
            return Ok(Box::pin(async { encode(ForwardedReply::NotOwner { accepted: false }) }));
        };
        if row.scope != Scope::Here && call.params["sessionId"].as_str() != Some(call.session.as_str()) {
            return Err(Error::invalid_params("params.sessionId: is not the session of the call"));
        }
        let mut params = api::object(call.params)?;
        row.flatten_params(&mut params)?;
        // A turn of an HTTP client continues when the connection ends.
        let cancel = if call.client.local.is_some() { cancel.child_token() } else { CancellationToken::new() };
        let (client, connection, number, answers) = (call.client, self.connection.clone(), call.call, call.answers);
        client.on_show(Box::new(move |session, after| {
            if answers {
                session.respond_until_idle();
            }
            let _ = connection.notify(SHOWN, ShownEvents { call: number, after });
        }));
        let waits = row.kind == MethodKind::Turn && client.local.is_some();
        let (sender, started) = oneshot::channel();
        let cx = CallContext {
            message_id: call.message_id,
            forwarded: true,
            repeated_after: call.repeated_after,
            generation: call.epoch.and(generation),
            turn_started: call.reports_start.then(|| Arc::new(Mutex::new(Some(sender)))),
            place: (row.scope != Scope::Here).then(|| self.app.add_call(&call.session)),
            ..CallContext::new(self.app.clone(), client, cancel.clone())
        };
        self.calls.begin(number, cancel, cx.answered.clone());
        // Only a turn of a local client waits until its response is written.
        let finish = (!waits).then(|| self.calls.finishing(number));
        let (connection, epochs) = (self.connection.clone(), self.epochs.clone());
        Ok(Box::pin(async move {
            let _finish = finish;
            let open = session;
            let place = cx.place.clone();
            let work = async {
                if let Some(place) = &place {
                    place.is_next().await;
                }
                let mut reply = row.run_here(cx, Value::Object(params)).await.inspect_err(|error| {
                    // Before the place of the call is free for the next one.
                    if let Some(epoch) = call.epoch.filter(|_| is_not_owner(error)) {
                        epochs.refuse(&open.log.id, epoch);
                    }
                })?;
                reply.result.iter_mut().for_each(|result| row.nest_result(result));
                Ok(reply)
            };
            match reporting_start(work, started, &connection, number).await {
                Err(error) if is_not_owner(&error) => encode(ForwardedReply::NotOwner { accepted: true }),
                outcome => encode(ForwardedReply::new(outcome)),
            }
        }))
    }

    /// Counts a client of the other process as able to answer the session's permission requests,
    /// until the request is cancelled or this process no longer owns the session.
    fn register(&self, params: Value, cancel: CancellationToken) -> Result<BoxFuture<'static, Result<Value>>> {
        let client: Register = decode(params)?;
        let session = self.owned(&client.session).ok_or_else(|| not_owned(&client.session))?;
        let responder = session.broker.register_responder(client.responder());
        let _ = self.connection.notify(REGISTERED, CallNumber { call: client.call });
        Ok(Box::pin(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = session.closed() => {}
                () = session.released() => {}
            }
            drop(responder);
            Ok(Value::Null)
        }))
    }

    fn release(&self, params: Value) -> Result<BoxFuture<'static, Result<Value>>> {
        let Release { session: id } = decode(params)?;
        let (app, session) = (self.app.clone(), self.owned(&id).ok_or_else(|| not_owned(&id))?);
        Ok(Box::pin(async move { Ok(app.sessions().await?.release_idle(&session).await.into()) }))
    }

    fn take(&self, params: Value) -> Result<BoxFuture<'static, Result<Value>>> {
        let (app, params) = (self.app.clone(), decode(params)?);
        Ok(Box::pin(async move { api::take(&app, params).await.map(Value::Bool) }))
    }

    fn agents(&self, params: Value) -> Result<BoxFuture<'static, Result<Value>>> {
        let (app, query) = (self.app.clone(), decode::<ProcessQuery>(params)?);
        Ok(Box::pin(async move { encode(query.run(&app).await?) }))
    }
}

impl Handler<()> for PeerHandler {
    fn request(
        &self,
        method: String,
        params: Value,
        cancel: CancellationToken,
    ) -> impl Future<Output = (Result<Value>, ())> + Send + 'static {
        let handled: Result<BoxFuture<'static, Result<Value>>> = match &*method {
            HELLO => self.hello(params).map(|greeting| Box::pin(async { Ok(greeting) }) as BoxFuture<'static, _>),
            _ if !self.greeted.load(Ordering::Acquire) => {
                self.refuse("its first request was not hello");
                Err(Error::new(Kind::Unauthenticated, "the first request must be hello"))
            }
            CALL => self.call(params, cancel),
            REGISTER => self.register(params, cancel),
            RELEASE => self.release(params),
            TAKE => self.take(params),
            AGENTS => self.agents(params),
            _ => Err(Error::new(Kind::Unsupported, format!("unknown method {method}"))),
        };
        async move {
            let result = match handled {
                Ok(handled) => handled.await,
                Err(error) => Err(error),
            };
            (result, ())
        }
    }

    fn notification(&self, method: String, params: Value, _cancel: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
        match (&*method, decode::<CallNumber>(params)) {
            (CANCEL, Ok(CallNumber { call })) => self.calls.cancel(call),
            (ANSWERED, Ok(CallNumber { call })) => self.calls.finish(call),
            _ => tracing::debug!(method, "unknown notification of another process"),
        }
        std::future::ready(())
    }

    fn invalid(&self, error: &Error) {
        self.refuse(&error.message);
    }
}

/// Waits for the end of a call. Reports the turn that it starts to the other process.
async fn reporting_start<T>(
    work: impl Future<Output = T>,
    mut started: oneshot::Receiver<TurnStart>,
    connection: &Connection<()>,
    number: u64,
) -> T {
    let mut work = pin!(work);
    let outcome = tokio::select! {
        biased;
        turn = &mut started => {
            turn.into_iter().for_each(|turn| report_started(connection, number, &turn));
            return work.await;
        }
        outcome = &mut work => outcome,
    };
    started.try_recv().into_iter().for_each(|turn| report_started(connection, number, &turn));
    outcome
}

fn report_started(connection: &Connection<()>, call: u64, turn: &TurnStart) {
    let mut params = json!(turn);
    params["call"] = call.into();
    let _ = connection.notify(STARTED, params);
}

fn not_owned(id: &SessionId) -> Error {
    Error::not_found(format!("session {id} is not owned by this process"))
}

fn decode<T: DeserializeOwned>(params: Value) -> Result<T> {
    serde_json::from_value(params).map_err(|error| Error::invalid_params(error.to_string()))
}

fn encode(value: impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(|error| Error::internal(error.to_string()))
}
