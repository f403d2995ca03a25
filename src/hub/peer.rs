//! The connection with a hosted agent: requests, responses and notifications in both directions,
//! each a line of JSON. Decoding is lenient, because agents differ: unknown methods and fields are
//! skipped, and Codex omits `jsonrpc`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::message_queue::{MessageReceiver, MessageSender, message_queue};
use super::process::{AgentProcess, LineHandler, ProgramStart, unavailable};
use super::refusal::AgentRefusal;
use crate::error::{Error, Result};
use crate::limits;
use crate::rpc::message::InvalidMessage;

/// The error code of JSON-RPC for a message that is not JSON.
const PARSE_ERROR: i64 = -32700;

/// A message of either side.
#[derive(Debug)]
pub(super) enum AgentMessage {
    Notification {
        method: String,
        params: Value,
    },
    /// The sender waits for a response.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// The response to the request with this id.
    Response {
        id: Value,
        result: Response,
    },
}

/// The result of a request, or its error object.
pub(super) type Response = Result<Value, Value>;

/// The state of an agent that its notifications change, and the form of its messages.
pub(super) trait PeerState: Send + 'static {
    /// Handles a notification. Called for each notification, in order, with or without a running
    /// turn.
    fn notified(&mut self, method: &str, params: &Value);

    /// Returns the response to a request that arrives while no turn runs.
    fn idle_request(method: &str) -> Response;

    /// Converts a received JSON object. Returns `None` if it is no message.
    fn decode(mut message: Value) -> Option<AgentMessage> {
        let id = message.get_mut("id").map(Value::take);
        let method = message["method"].as_str().map(str::to_owned);
        let params = message["params"].take();
        Some(match (method, id) {
            (Some(method), Some(id)) => AgentMessage::Request { id, method, params },
            (Some(method), None) => AgentMessage::Notification { method, params },
            (None, Some(id)) => {
                let error = message.get_mut("error").map(Value::take);
                AgentMessage::Response { id, result: error.map_or_else(|| Ok(message["result"].take()), Err) }
            }
            (None, None) => return None,
        })
    }

    fn encode(message: AgentMessage) -> Value {
        let mut message = match message {
            AgentMessage::Notification { method, params } => json!({ "method": method, "params": params }),
            AgentMessage::Request { id, method, params } => json!({ "id": id, "method": method, "params": params }),
            AgentMessage::Response { id, result: Ok(result) } => json!({ "id": id, "result": result }),
            AgentMessage::Response { id, result: Err(error) } => json!({ "id": id, "error": error }),
        };
        message["jsonrpc"] = "2.0".into();
        message
    }
}

/// A connection to an agent.
pub(super) struct Peer<S> {
    name: String,
    process: AgentProcess,
    shared: Arc<PeerCore<S>>,
}

struct PeerCore<S> {
    next: AtomicU64,
    pending: Mutex<HashMap<Value, oneshot::Sender<Response>>>,
    /// The inbox of the running turn.
    turn: Mutex<Option<MessageSender<AgentMessage>>>,
    state: Mutex<S>,
    /// Responses to requests outside of a turn.
    refused: mpsc::Sender<Value>,
}

/// A turn that a request started.
pub(super) struct PeerTurn {
    pub stderr_before: String,
    pub inbox: MessageReceiver<AgentMessage>,
    /// The id of the request.
    pub request: Value,
}

impl<S: PeerState> Peer<S> {
    /// Starts the agent.
    pub(super) fn start(program: &ProgramStart, state: S) -> Result<Arc<Peer<S>>> {
        let (refused, mut responses) = mpsc::channel(limits::AGENT_MESSAGES_QUEUED_MAX);
        let (pending, turn, state) = (Mutex::default(), Mutex::default(), Mutex::new(state));
        let shared = Arc::new(PeerCore { next: AtomicU64::new(1), pending, turn, state, refused });
        let process = AgentProcess::start(program, shared.clone())?;
        let peer = Arc::new(Peer { name: program.name.clone(), process, shared });
        let weak = Arc::downgrade(&peer);
        crate::task::spawn(async move {
            while let Some(response) = responses.recv().await {
                let Some(peer) = weak.upgrade() else { return };
                // Fails if the process has ended.
                let _ = peer.process.send(&response).await;
            }
        });
        Ok(peer)
    }

    pub(super) fn process(&self) -> &AgentProcess {
        &self.process
    }

    pub(super) fn with_state<R>(&self, read: impl FnOnce(&mut S) -> R) -> R {
        read(&mut self.shared.state.lock())
    }

    /// Queues further messages for the caller until it drops the receiver, except responses that
    /// [`Peer::request`] awaits.
    pub(super) fn attach(&self) -> MessageReceiver<AgentMessage> {
        let (sender, receiver) = message_queue();
        *self.shared.turn.lock() = Some(sender);
        receiver
    }

    /// Answers the requests in the inbox of a turn that has ended, as if they came after the turn.
    pub(super) async fn detach(&self, inbox: &mut MessageReceiver<AgentMessage>) {
        while let Some(message) = inbox.rest().await {
            if let AgentMessage::Request { id, method, .. } = message {
                self.respond(id, S::idle_request(&method)).await;
            }
        }
    }

    /// Sends a request and waits for its result, at most `bound`.
    pub(super) async fn request(&self, method: &str, params: Value, bound: Duration) -> Result<Value> {
        let ended = async { self.process.ended_error(self.process.ended().await) };
        self.request_unless(method, params, bound, ended).await
    }

    /// Sends a request during the start and waits for its result. Fails early if the agent asks for
    /// a login instead of answering.
    pub(super) async fn start_request(&self, method: &str, params: Value) -> Result<Value> {
        self.request_unless(method, params, limits::AGENT_START, self.process.start_failure()).await
    }

    /// Sends a request and waits for its result, at most `bound`, or until `failure`.
    async fn request_unless(
        &self,
        method: &str,
        params: Value,
        bound: Duration,
        failure: impl Future<Output = Error>,
    ) -> Result<Value> {
        let (sender, response) = oneshot::channel();
        let id = self.shared.next_id();
        self.shared.pending.lock().insert(id.clone(), sender);
        let response = async {
            self.send(AgentMessage::Request { id: id.clone(), method: method.into(), params }).await?;
            match timeout(bound, response).await {
                Ok(Ok(response)) => response.map_err(|error| self.refused(method, &error)),
                Ok(Err(_)) => Err(self.process.ended_error("the connection has ended".into())),
                Err(_) => Err(self.process.late(method, bound)),
            }
        };
        let result = tokio::select! {
            biased;
            response = response => response,
            error = failure => Err(error),
        };
        self.shared.pending.lock().remove(&id);
        result
    }

    /// Sends a request whose response is queued for the running turn, after the messages before it.
    /// Returns the id of the request.
    pub(super) async fn begin(&self, method: &str, params: Value) -> Result<Value> {
        let id = self.shared.next_id();
        self.send(AgentMessage::Request { id: id.clone(), method: method.into(), params }).await?;
        Ok(id)
    }

    /// Starts a turn with a request, whose response is queued like that of [`Peer::begin`].
    pub(super) async fn begin_turn(&self, method: &str, params: Value) -> Result<PeerTurn> {
        let (stderr_before, inbox) = (self.process.stderr(), self.attach());
        Ok(PeerTurn { stderr_before, inbox, request: self.begin(method, params).await? })
    }

    pub(super) async fn notify(&self, method: &str, params: Value) -> Result<()> {
        self.send(AgentMessage::Notification { method: method.into(), params }).await
    }

    /// Responds to a request of the agent, unless its process has ended.
    pub(super) async fn respond(&self, id: Value, result: Response) {
        let _ = self.send(AgentMessage::Response { id, result }).await;
    }

    /// Converts an error object of the agent to an error, which contains the object of a JSON-RPC
    /// error in its details, and an [`AgentRefusal`] as its source.
    pub(super) fn refused(&self, method: &str, error: &Value) -> Error {
        let message = error["message"].as_str().unwrap_or("an error without a message");
        let details = ["/data/details", "/data/message", "/data"].iter().find_map(|path| error.pointer(path)?.as_str());
        let details =
            details.filter(|details| !message.contains(*details)).map(|details| format!(": {details}")).unwrap_or_default();
        let refused = unavailable(&self.name, format_args!("{method}: {message}{details}")).details(json!({ "error": error }));
        refused.source(AgentRefusal::Code(error["code"].as_i64()))
    }

    async fn send(&self, message: AgentMessage) -> Result<()> {
        self.process.send(&S::encode(message)).await
    }
}

impl<S: PeerState> LineHandler for PeerCore<S> {
    /// Fails the request that the message answers, or answers the request with an error.
    fn unreadable<'a>(&'a self, message: &'a InvalidMessage) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let id = json!(message.id);
            let result = Err(json!({ "code": PARSE_ERROR, "message": message.error.message }));
            match message.is_response {
                _ if id.is_null() => return false,
                true => self.received(AgentMessage::Response { id, result }, 0).await,
                false => self.refuse(id, result),
            }
            true
        })
    }

    fn message(&self, message: Value, bytes: usize) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(message) = S::decode(message) {
                self.received(message, bytes).await;
            }
        })
    }
}

impl<S: PeerState> PeerCore<S> {
    fn next_id(&self) -> Value {
        self.next.fetch_add(1, Ordering::Relaxed).into()
    }

    /// Queues a response that is sent without waiting. Fails if the agent sends requests without
    /// reading the responses.
    fn refuse(&self, id: Value, result: Response) {
        let _ = self.refused.try_send(S::encode(AgentMessage::Response { id, result }));
    }

    async fn received(&self, message: AgentMessage, bytes: usize) {
        match message {
            AgentMessage::Notification { ref method, ref params } => {
                self.state.lock().notified(method, params);
                // Without a turn, only the state is updated.
                let _ = self.forward(message, bytes).await;
            }
            AgentMessage::Request { ref id, ref method, .. } => {
                let (id, response) = (id.clone(), S::idle_request(method));
                if self.forward(message, bytes).await.is_err() {
                    self.refuse(id, response);
                }
            }
            AgentMessage::Response { id, result } => {
                let pending = self.pending.lock().remove(&id);
                // Both fail if the caller no longer waits for the response.
                match pending {
                    Some(pending) => _ = pending.send(result),
                    None => _ = self.forward(AgentMessage::Response { id, result }, bytes).await,
                }
            }
        }
    }

    /// Queues a message for the running turn. Fails if no turn runs.
    async fn forward(&self, message: AgentMessage, bytes: usize) -> Result<(), ()> {
        let turn = self.turn.lock().clone();
        turn.ok_or(())?.send(message, bytes).await.map_err(drop)
    }
}
