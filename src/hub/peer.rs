//! The JSON-RPC 2.0 connection with a hosted agent. Decoding is lenient, because agents differ:
//! unknown methods and fields are skipped, and Codex leaves out `jsonrpc`.

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
use super::process::{AgentProcess, LineHandler, unavailable};
use crate::error::{Error, Result};
use crate::limits;
use crate::process::{Command, ProcessLauncher};
use crate::rpc::message::InvalidMessage;

/// The error code of JSON-RPC for a message that is not JSON.
const PARSE_ERROR: i64 = -32700;

/// A message of an agent that is not a response.
#[derive(Debug)]
pub(super) enum AgentMessage {
    Notification {
        method: String,
        params: Value,
    },
    /// The agent waits for a response.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
}

/// Receives the messages of an agent, also while no turn runs.
pub(super) trait Observer: Send + Sync + 'static {
    /// Handles a notification. Called for each notification, in order, with or without a running
    /// turn.
    fn notified(&self, method: &str, params: &Value);

    /// Returns the response to a request. It is sent only if no turn runs.
    fn idle_request(&self, method: &str) -> Result<Value, Value>;
}

/// The response to a request, or its error object.
pub(super) type Response = Result<Value, Value>;

/// A connection to an agent.
pub(super) struct Peer {
    name: String,
    process: AgentProcess,
    shared: Arc<Shared>,
}

struct Shared {
    next: AtomicU64,
    pending: Mutex<HashMap<u64, oneshot::Sender<Response>>>,
    /// The running turn, which gets the messages.
    turn: Mutex<Option<MessageSender<AgentMessage>>>,
    observer: Arc<dyn Observer>,
    /// Responses to requests outside of a turn.
    refused: mpsc::Sender<Value>,
}

impl Peer {
    /// Starts the agent.
    pub(super) fn start(
        name: &str,
        launcher: &ProcessLauncher,
        command: &Command,
        observer: Arc<dyn Observer>,
    ) -> Result<Arc<Peer>> {
        let (refused, mut responses) = mpsc::channel(limits::AGENT_MESSAGES_QUEUED_MAX);
        let shared =
            Arc::new(Shared { next: AtomicU64::new(1), pending: Mutex::default(), turn: Mutex::default(), observer, refused });
        let process = AgentProcess::start(name, launcher, command, shared.clone())?;
        let peer = Arc::new(Peer { name: name.into(), process, shared });
        let weak = Arc::downgrade(&peer);
        crate::task::spawn(async move {
            while let Some(response) = responses.recv().await {
                let Some(peer) = weak.upgrade() else { return };
                // Fails if the process has ended.
                let _ = peer.send(response).await;
            }
        });
        Ok(peer)
    }

    /// Returns the process of the agent.
    pub(super) fn process(&self) -> &AgentProcess {
        &self.process
    }

    /// Queues further notifications and requests for the caller, until it drops the receiver.
    pub(super) fn attach(&self) -> MessageReceiver<AgentMessage> {
        let (sender, receiver) = message_queue();
        *self.shared.turn.lock() = Some(sender);
        receiver
    }

    /// Sends a request and waits for its result, at most `bound`.
    pub(super) async fn request(&self, method: &str, params: Value, bound: Duration) -> Result<Value> {
        let ended = async { self.process.ended_error(self.process.ended().await) };
        self.request_unless(method, params, bound, ended).await
    }

    /// Sends a request of the start and waits for its result. Fails early if the agent asks for a
    /// login instead of answering.
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
        let response = self.begin(method, params).await?;
        tokio::select! {
            biased;
            response = timeout(bound, response) => match response {
                Ok(Ok(response)) => response.map_err(|error| self.refused(method, &error)),
                Ok(Err(_)) => Err(self.closed_error()),
                Err(_) => Err(self.process.late(method, bound)),
            },
            error = failure => Err(error),
        }
    }

    /// Sends a request. The receiver gets the response.
    pub(super) async fn begin(&self, method: &str, params: Value) -> Result<oneshot::Receiver<Response>> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = oneshot::channel();
        self.pending().insert(id, sender);
        let sent = self.send(json!({ "id": id, "method": method, "params": params })).await;
        if let Err(error) = sent {
            self.pending().remove(&id);
            return Err(error);
        }
        Ok(response)
    }

    /// Creates the error for a request whose response cannot arrive any more.
    pub(super) fn closed_error(&self) -> Error {
        self.process.ended_error("the connection has ended".into())
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, method: &str, params: Value) -> Result<()> {
        self.send(json!({ "method": method, "params": params })).await
    }

    /// Responds to a request of the agent.
    pub(super) async fn respond(&self, id: Value, response: Response) -> Result<()> {
        self.send(reply(id, response)).await
    }

    /// Converts an error object of the agent to an error, which contains the object in its details.
    pub(super) fn refused(&self, method: &str, error: &Value) -> Error {
        let message = error["message"].as_str().unwrap_or("an error without a message");
        let details = ["/data/details", "/data/message", "/data"].iter().find_map(|path| error.pointer(path)?.as_str());
        let details =
            details.filter(|details| !message.contains(*details)).map(|details| format!(": {details}")).unwrap_or_default();
        unavailable(&self.name, format_args!("{method}: {message}{details}")).details(json!({ "error": error }))
    }

    async fn send(&self, mut message: Value) -> Result<()> {
        message["jsonrpc"] = "2.0".into();
        self.process.send(&message).await
    }

    fn pending(&self) -> parking_lot::MutexGuard<'_, HashMap<u64, oneshot::Sender<Response>>> {
        self.shared.pending.lock()
    }
}

fn reply(id: Value, response: Response) -> Value {
    match response {
        Ok(result) => json!({ "id": id, "result": result }),
        Err(error) => json!({ "id": id, "error": error }),
    }
}

impl LineHandler for Shared {
    /// Fails the request that the message answers, or answers the request with an error.
    fn unreadable(&self, message: &InvalidMessage) -> bool {
        let id = json!(message.id);
        let error = || json!({ "code": PARSE_ERROR, "message": message.error.message });
        match (message.is_response, id.as_u64()) {
            (true, Some(id)) => {
                let pending = self.pending.lock().remove(&id);
                // Fails if nothing waits for the response any more.
                pending.into_iter().for_each(|pending| _ = pending.send(Err(error())));
                true
            }
            (false, _) if !id.is_null() => {
                // Fails if the agent sends requests without reading the responses.
                let _ = self.refused.try_send(reply(id, Err(error())));
                true
            }
            _ => false,
        }
    }

    fn message(&self, mut message: Value, bytes: usize) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let id = message.get_mut("id").map(Value::take);
            let method = message["method"].as_str().map(str::to_owned);
            let params = message["params"].take();
            match (method, id) {
                (Some(method), Some(id)) => self.request(id, method, params, bytes).await,
                (Some(method), None) => {
                    self.observer.notified(&method, &params);
                    // Fails if no turn runs: only the observer receives the notification.
                    let _ = self.forward(AgentMessage::Notification { method, params }, bytes).await;
                }
                (None, Some(id)) => {
                    let response = match message.get_mut("error") {
                        Some(error) => Err(error.take()),
                        None => Ok(message["result"].take()),
                    };
                    let pending = id.as_u64().and_then(|id| self.pending.lock().remove(&id));
                    if let Some(pending) = pending {
                        // Fails if nothing waits for the response any more.
                        let _ = pending.send(response);
                    }
                }
                (None, None) => {}
            }
        })
    }
}

impl Shared {
    async fn request(&self, id: Value, method: String, params: Value, bytes: usize) {
        let response = self.observer.idle_request(&method);
        if self.forward(AgentMessage::Request { id: id.clone(), method, params }, bytes).await.is_err() {
            // Fails if the agent sends requests without reading the responses.
            let _ = self.refused.try_send(reply(id, response));
        }
    }

    /// Queues a message for the running turn. Fails if no turn runs.
    async fn forward(&self, message: AgentMessage, bytes: usize) -> Result<(), ()> {
        let turn = self.turn.lock().clone();
        turn.ok_or(())?.send(message, bytes).await.map_err(drop)
    }
}
