//! Methods: the trait that a method implements, and the rows of the method table.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::OnceLock;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::call_context::CallContext;
use super::client::ClientRole;
use super::event_stream::EventStream;
use super::params;
use super::route::Route;
use super::schemas::standalone;
use crate::error::{Error, Kind, Result};
use crate::id::{Seq, SessionId};
use crate::session::turn::panic_message;

/// How a method is called and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// Returns one result. A cancelled call is dropped and returns [`Kind::Cancelled`].
    Call,
    /// Has no response.
    Notification,
    /// Starts a turn and returns when the turn ends. The method itself watches `cx.cancel` and
    /// returns the result of a cancelled call. Over REST, the response can also be the started turn
    /// or its events.
    Turn,
    /// Opens a stream of events, which the transport sends after the response.
    Stream,
}

/// The process in which a method runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The process that received the call.
    Here,
    /// The process that owns the session `sessionId`. If no process owns the session, the process
    /// that received the call takes it.
    Owner,
    /// Like [`Scope::Owner`], but if the owner cannot be reached, the method runs in the process
    /// that received the call, which has opened the session for reading.
    OwnerOrReader,
    /// Like [`Scope::Owner`], but if no process owns the session, the method runs in the process
    /// that received the call, which does not take the session.
    OwnerIfAny,
}

/// Fields that are in `_meta.nuncio` in ACP.
#[derive(Clone, Copy, Debug)]
pub struct MetaFields {
    /// Fields of the params.
    pub params: &'static [&'static str],
    /// Fields of the result, or of the objects in its list.
    pub result: &'static [&'static str],
    /// True if other fields of the params are refused; else they are ignored.
    pub refuses_others: bool,
}

impl MetaFields {
    pub(crate) const NONE: MetaFields = MetaFields { params: &[], result: &[], refuses_others: false };
}

/// A method of the API. Each method is a unit struct that implements this trait. Related methods
/// share a file.
pub(crate) trait Method: 'static {
    type Params: DeserializeOwned + JsonSchema + Send;
    type Result: Serialize + JsonSchema;
    const NAME: &'static str;
    /// Documentation: what the method does.
    const DOC: &'static str;
    /// The REST routes. Empty for a method that REST does not serve.
    const ROUTES: &'static [Route] = &[];
    /// The minimum role that a caller needs.
    const ROLE: ClientRole = ClientRole::Controller;
    const KIND: MethodKind = MethodKind::Call;
    const SCOPE: Scope = Scope::Here;
    /// True if the call adds the message [`CallContext::message_id`] to the session. If the owner
    /// of the session dies during the call, the call is repeated only if the message was not
    /// recorded.
    const ADDS_MESSAGE: bool = false;
    /// Example params as JSON, for the documentation.
    const EXAMPLE: &'static str = "{}";
    /// The fields that ACP does not define.
    const META: MetaFields = MetaFields::NONE;

    /// Handles a call. If it belongs to a session ([`Method::SCOPE`]), the next call to the session
    /// starts when it has ended, or before that when it calls [`CallContext::decided`].
    fn call(cx: CallContext, params: Self::Params) -> impl Future<Output = Result<Reply<Self::Result>>> + Send;
}

/// The result of a method that returns nothing.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NoResult {}

/// A result, and its position among the events of a session that the caller follows.
pub struct Reply<T> {
    /// The result. An error that must be sent after certain events is returned here, not as the
    /// error of [`Method::call`].
    pub result: Result<T>,
    /// All events of the session up to this seq are sent before the response.
    pub after: Option<(SessionId, Seq)>,
    /// Changes how the caller follows a session.
    pub follow: Option<FollowChange>,
    /// The event stream that a method of kind [`MethodKind::Stream`] opened.
    pub stream: Option<Box<EventStream>>,
}

/// How the caller receives the further events of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FollowChange {
    /// The whole history is sent before the response, live events after it.
    Replayed(SessionId),
    /// Events after this seq are sent, starting after the response.
    After(SessionId, Seq),
    /// Like [`FollowChange::After`], unless the caller already follows the session.
    AfterIfNew(SessionId, Seq),
    /// The caller stops following the session.
    No(SessionId),
}

impl<T> Reply<T> {
    /// Creates a successful reply.
    pub(crate) fn new(result: T) -> Reply<T> {
        Reply::from_result(Ok(result))
    }

    /// Creates a reply that may be sent before or after any event.
    pub(crate) fn from_result(result: Result<T>) -> Reply<T> {
        Reply { result, after: None, follow: None, stream: None }
    }

    /// Sends all events of `session` up to `seq` before the response.
    pub(crate) fn after(mut self, session: SessionId, seq: Seq) -> Reply<T> {
        self.after = Some((session, seq));
        self
    }

    /// Sets how the caller receives the further events of a session.
    pub(crate) fn follow(mut self, follow: FollowChange) -> Reply<T> {
        self.follow = Some(follow);
        self
    }

    /// Sends the events of `stream` after the response.
    pub(crate) fn stream(mut self, stream: EventStream) -> Reply<T> {
        self.stream = Some(Box::new(stream));
        self
    }
}

/// The types of the params and the result of a method.
pub struct MethodTypes {
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub result: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the params, once it is needed.
    checked: OnceLock<Schema>,
}

impl MethodTypes {
    pub(crate) const fn new<P: JsonSchema, R: JsonSchema>() -> MethodTypes {
        MethodTypes { params: P::json_schema, result: R::json_schema, checked: OnceLock::new() }
    }

    /// Checks the types in params.
    pub(crate) fn check(&self, params: &Value) -> Result<()> {
        params::check_types(self.checked.get_or_init(|| standalone(self.params)), "", params)
    }

    /// Returns standalone schemas of the params and the result.
    pub fn standalone(&self) -> (Schema, Schema) {
        (standalone(self.params), standalone(self.result))
    }
}

/// A row of the method table. The fields mirror [`Method`].
pub struct MethodRow {
    pub name: &'static str,
    pub doc: &'static str,
    pub routes: &'static [Route],
    pub role: ClientRole,
    pub kind: MethodKind,
    pub scope: Scope,
    pub adds_message: bool,
    pub example: &'static str,
    pub meta: MetaFields,
    pub types: MethodTypes,
    /// Decodes params without running the method.
    decode: fn(Value) -> Result<()>,
    pub call: fn(CallContext, Value) -> BoxFuture<'static, Result<Reply<Value>>>,
}

impl MethodRow {
    pub(crate) const fn new<M: Method>() -> MethodRow {
        MethodRow {
            name: M::NAME,
            doc: M::DOC,
            routes: M::ROUTES,
            role: M::ROLE,
            kind: M::KIND,
            scope: M::SCOPE,
            adds_message: M::ADDS_MESSAGE,
            example: M::EXAMPLE,
            meta: M::META,
            types: MethodTypes::new::<M::Params, M::Result>(),
            decode: |params| decode::<M>(params).map(drop),
            call: erased::<M>,
        }
    }

    /// Runs a call in this process, as [`MethodRow::guarded`] does.
    pub(crate) async fn run_here(&self, cx: CallContext, params: Value) -> Result<Reply<Value>> {
        let cancel = cx.cancel.clone();
        let call = async {
            cx.client.require_role(self.role)?;
            self.types.check(&params)?;
            (self.call)(cx, params).await
        };
        self.guarded(&cancel, call).await
    }

    /// Checks params without running the method.
    pub(in crate::api) fn check(&self, params: Value) -> Result<()> {
        self.types.check(&params)?;
        (self.decode)(params)
    }

    /// Awaits a call of this method. A panic is returned as an error. A cancelled call returns
    /// [`Kind::Cancelled`], unless the method handles cancellation itself.
    pub(in crate::api) async fn guarded<T>(&self, cancel: &CancellationToken, call: impl Future<Output = Result<T>>) -> Result<T> {
        let called = AssertUnwindSafe(call).catch_unwind();
        let result = match self.kind {
            MethodKind::Turn | MethodKind::Notification => called.await,
            MethodKind::Call | MethodKind::Stream => tokio::select! {
                biased;
                result = called => result,
                () = cancel.cancelled() => return Err(Error::new(Kind::Cancelled, "the request was cancelled")),
            },
        };
        result.unwrap_or_else(|panic| {
            tracing::error!(method = self.name, panic = panic_message(&*panic), "a method panicked");
            Err(Error::internal(format!("{} panicked: {}", self.name, panic_message(&*panic))))
        })
    }

    /// Returns whether the call creates something, so that `Idempotency-Key` applies.
    pub(crate) fn creates(&self) -> bool {
        self.role > ClientRole::Observer
            && self.kind != MethodKind::Notification
            && self.routes.iter().any(|route| route.verb == "POST")
    }
}

/// Decodes the params, calls the method and encodes its result.
fn erased<M: Method>(cx: CallContext, params: Value) -> BoxFuture<'static, Result<Reply<Value>>> {
    Box::pin(async move {
        let Reply { result, after, follow, stream } = M::call(cx, decode::<M>(params)?).await?;
        let encode = |result| serde_json::to_value(result).map_err(|error| Error::internal(format!("{}: {error}", M::NAME)));
        Ok(Reply { result: result.and_then(encode), after, follow, stream })
    })
}

/// Decodes params, which must be an object or null. An error names the invalid field.
fn decode<M: Method>(params: Value) -> Result<M::Params> {
    params::deserialize("", Value::Object(params::object(params)?))
}
