//! A method as a type, and as a row that every door can read.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Cx, Role};
use crate::error::{Error, Kind, Result};
use crate::id::{Seq, SessionId};
use crate::session::turn::panic_message;

/// Where REST serves a method: `path` with `{field}`s of its params.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub verb: &'static str,
    pub path: &'static str,
    /// Status of an answer without error.
    pub status: u16,
    /// The body may be a form with a file, and the answer is a file's bytes, unless JSON is asked for.
    pub takes_file: bool,
    pub gives_file: bool,
}

impl Route {
    const fn new(verb: &'static str, path: &'static str) -> Route {
        Route { verb, path, status: 200, takes_file: false, gives_file: false }
    }

    pub const fn get(path: &'static str) -> Route {
        Route::new("GET", path)
    }

    pub const fn post(path: &'static str) -> Route {
        Route::new("POST", path)
    }

    pub const fn put(path: &'static str) -> Route {
        Route::new("PUT", path)
    }

    pub const fn delete(path: &'static str) -> Route {
        Route::new("DELETE", path)
    }

    pub const fn status(self, status: u16) -> Route {
        Route { status, ..self }
    }

    pub const fn takes_file(self) -> Route {
        Route { takes_file: true, ..self }
    }

    pub const fn gives_file(self) -> Route {
        Route { gives_file: true, ..self }
    }
}

/// One method: unit structs implement it, a file for each group of them.
pub trait Method: 'static {
    type Params: DeserializeOwned + JsonSchema + Send;
    type Result: Serialize + JsonSchema;
    const NAME: &'static str;
    /// What it does, in a sentence.
    const DOC: &'static str;
    /// None: not over REST.
    const ROUTE: Option<Route> = None;
    /// The least that a caller must be.
    const ROLE: Role = Role::Controller;
    /// A notification has no answer.
    const NOTIFICATION: bool = false;
    /// It watches `cx.cancel` by itself and answers in its own way; others are dropped and answered `cancelled`.
    const ENDS_ITSELF: bool = false;

    /// Params as JSON, for those who read the documentation.
    const EXAMPLE: &'static str = "{}";

    /// Fills in what clients leave out although the protocol's types want it.
    fn complete(_params: &mut Map<String, Value>) {}

    /// Turns what REST takes into what the protocol takes.
    fn from_rest(_cx: &Cx, _params: &mut Map<String, Value>) {}

    /// Says in the schemas of its params and its result where REST has them otherwise.
    fn rest_schema(_params: &mut Schema, _result: &mut Schema) {}

    /// What comes before the first `.await` happens in the order of the messages.
    fn call(cx: Cx, params: Self::Params) -> impl Future<Output = Result<Reply<Self::Result>>> + Send;
}

/// An answer, and its place among the events of a session that the caller follows.
#[derive(Debug)]
pub struct Reply<T> {
    /// An error is here, and not in place of the reply, when it too comes after what happened.
    pub result: Result<T>,
    /// All events up to this one are shown before the answer.
    pub after: Option<(SessionId, Seq)>,
    pub follow: Option<Follow>,
}

/// From where the caller follows a session from now on.
#[derive(Clone, Debug)]
pub enum Follow {
    /// Its whole history is shown before the answer.
    Replayed(SessionId),
    /// Only what comes after `seq`, and after the answer.
    After(SessionId, Seq),
    /// The same, where it is not followed yet.
    AfterIfNew(SessionId, Seq),
    /// Not any more.
    No(SessionId),
}

impl<T> Reply<T> {
    pub fn new(result: T) -> Reply<T> {
        Reply::of(Ok(result))
    }

    pub fn of(result: Result<T>) -> Reply<T> {
        Reply { result, after: None, follow: None }
    }

    pub fn after(mut self, session: SessionId, seq: Seq) -> Reply<T> {
        self.after = Some((session, seq));
        self
    }

    pub fn follow(mut self, follow: Follow) -> Reply<T> {
        self.follow = Some(follow);
        self
    }
}

/// A row of the table.
pub struct Entry {
    pub name: &'static str,
    pub doc: &'static str,
    pub route: Option<Route>,
    pub role: Role,
    pub notification: bool,
    pub ends_itself: bool,
    pub from_rest: fn(&Cx, &mut Map<String, Value>),
    pub complete: fn(&mut Map<String, Value>),
    pub rest_schema: fn(&mut Schema, &mut Schema),
    pub example: &'static str,
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub result: fn(&mut SchemaGenerator) -> Schema,
    pub call: fn(Cx, Value) -> BoxFuture<'static, Result<Reply<Value>>>,
}

impl Entry {
    pub const fn of<M: Method>() -> Entry {
        Entry {
            name: M::NAME,
            doc: M::DOC,
            route: M::ROUTE,
            role: M::ROLE,
            notification: M::NOTIFICATION,
            ends_itself: M::ENDS_ITSELF,
            from_rest: M::from_rest,
            complete: M::complete,
            rest_schema: M::rest_schema,
            example: M::EXAMPLE,
            params: M::Params::json_schema,
            result: M::Result::json_schema,
            call: erased::<M>,
        }
    }

    /// Makes the call. A panic is an error of this call, a cancel ends it.
    pub async fn run(&self, cx: Cx, params: Value) -> Result<Reply<Value>> {
        let cancel = cx.cancel.clone();
        let called = AssertUnwindSafe(async { (self.call)(cx, params).await }).catch_unwind();
        let result = if self.ends_itself || self.notification {
            called.await
        } else {
            tokio::select! {
                biased;
                result = called => result,
                () = cancel.cancelled() => return Err(Error::new(Kind::Cancelled, "the request was cancelled")),
            }
        };
        result.unwrap_or_else(|panic| {
            tracing::error!(method = self.name, panic = panic_message(&*panic), "a method panicked");
            Err(Error::internal(format!("{} broke: {}", self.name, panic_message(&*panic))))
        })
    }

    /// Whether something comes into the world by it: then a repeat may be told from a second wish.
    pub fn creates(&self) -> bool {
        self.role > Role::Observer && !self.notification && self.route.is_some_and(|route| route.verb == "POST")
    }

    /// The schemas of its params and its result, each whole.
    pub fn schemas(&self) -> (Schema, Schema) {
        (whole(self.params), whole(self.result))
    }

    /// The same as REST has them.
    pub fn rest_schemas(&self) -> (Schema, Schema) {
        let (mut params, mut result) = self.schemas();
        (self.rest_schema)(&mut params, &mut result);
        (params, result)
    }
}

fn whole(schema: fn(&mut SchemaGenerator) -> Schema) -> Schema {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut schema = schema(&mut generator);
    let definitions = generator.take_definitions(true);
    if !definitions.is_empty() {
        schema.insert("$defs".into(), Value::Object(definitions));
    }
    schema
}

fn erased<M: Method>(cx: Cx, params: Value) -> BoxFuture<'static, Result<Reply<Value>>> {
    Box::pin(async move {
        cx.client.must_be(M::ROLE)?;
        let Reply { result, after, follow } = M::call(cx, decode::<M>(params)?).await?;
        let encode = |result| serde_json::to_value(result).map_err(|error| Error::internal(format!("{}: {error}", M::NAME)));
        Ok(Reply { result: result.and_then(encode), after, follow })
    })
}

/// Params are an object; the error names the field that is wrong.
fn decode<M: Method>(params: Value) -> Result<M::Params> {
    let mut object = match params {
        Value::Object(object) => object,
        Value::Null => Map::new(),
        _ => return Err(Error::invalid_params("params: must be an object")),
    };
    M::complete(&mut object);
    if let Some(place) = numbered(&object) {
        return Err(Error::invalid_params(format!("{place}.type: must be a string")));
    }
    serde_path_to_error::deserialize(Value::Object(object)).map_err(|error| {
        let path = error.path().to_string();
        let problem = error.into_inner().to_string();
        Error::invalid_params(if path == "." { problem } else { format!("{path}: {problem}") })
    })
}

/// The first thing of a list whose `type` is a number: serde would take it for the variant at that place.
fn numbered(params: &Map<String, Value>) -> Option<String> {
    let lists = params.iter().filter_map(|(name, value)| Some((name, value.as_array()?)));
    let mut things = lists.flat_map(|(name, list)| list.iter().enumerate().map(move |(index, thing)| (name, index, thing)));
    things.find(|(_, _, thing)| thing["type"].is_number()).map(|(name, index, _)| format!("{name}[{index}]"))
}
