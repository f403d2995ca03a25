//! The connection with Claude Code: JSON lines, in which both sides send control requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::update::ClaudeState;
use crate::error::{Error, Result};
use crate::hub::message_queue::{MessageReceiver, MessageSender, message_queue};
use crate::hub::process::{AgentProcess, LineHandler, unavailable};
use crate::limits;
use crate::process::{Command, ProcessLauncher};

/// The error for a request outside of a turn.
pub(super) const NO_TURN: &str = "no turn runs";

/// The `response` of a control response.
type ControlResponse = Value;

/// A connection to Claude Code.
pub(super) struct ClaudePeer {
    name: String,
    process: AgentProcess,
    shared: Arc<Shared>,
    next: AtomicU64,
}

struct Shared {
    pending: Mutex<HashMap<String, oneshot::Sender<ControlResponse>>>,
    /// The running turn, which gets the messages.
    turn: Mutex<Option<MessageSender<Value>>>,
    state: Mutex<ClaudeState>,
    /// Responses to requests outside of a turn.
    refused: mpsc::Sender<Value>,
}

impl ClaudePeer {
    pub(super) fn start(name: &str, launcher: &ProcessLauncher, command: &Command) -> Result<Arc<ClaudePeer>> {
        let (refused, mut responses) = mpsc::channel(limits::AGENT_MESSAGES_QUEUED_MAX);
        let shared = Arc::new(Shared { pending: Mutex::default(), turn: Mutex::default(), state: Mutex::default(), refused });
        let process = AgentProcess::start(name, launcher, command, shared.clone())?;
        let peer = Arc::new(ClaudePeer { name: name.into(), process, shared, next: AtomicU64::new(1) });
        let weak = Arc::downgrade(&peer);
        crate::task::spawn(async move {
            while let Some(response) = responses.recv().await {
                let Some(peer) = weak.upgrade() else { return };
                // Fails if the process has ended.
                let _ = peer.send(&response).await;
            }
        });
        Ok(peer)
    }

    pub(super) fn process(&self) -> &AgentProcess {
        &self.process
    }

    /// Reads or changes the state that messages change.
    pub(super) fn with<R>(&self, read: impl FnOnce(&mut ClaudeState) -> R) -> R {
        read(&mut self.shared.state.lock())
    }

    /// Queues further messages, except control responses, for the caller until it drops the
    /// receiver.
    pub(super) fn attach(&self) -> MessageReceiver<Value> {
        let (sender, receiver) = message_queue();
        *self.shared.turn.lock() = Some(sender);
        receiver
    }

    /// Sends a control request and waits for its response, at most `bound`.
    pub(super) async fn request(&self, request: Value, bound: Duration) -> Result<Value> {
        let ended = async { self.process.ended_error(self.process.ended().await) };
        self.request_unless(request, bound, ended).await
    }

    /// Sends the first control request and waits for its response. Fails early if Claude Code asks
    /// for a login instead of answering.
    pub(super) async fn start_request(&self, request: Value) -> Result<Value> {
        self.request_unless(request, limits::AGENT_START, self.process.start_failure()).await
    }

    /// Sends a control request and waits for its response, at most `bound`, or until `failure`.
    async fn request_unless(&self, request: Value, bound: Duration, failure: impl Future<Output = Error>) -> Result<Value> {
        let what = request["subtype"].as_str().unwrap_or_default().to_owned();
        let response = self.begin(request).await?;
        let response = tokio::select! {
            biased;
            response = timeout(bound, response) => response,
            error = failure => return Err(error),
        };
        match response {
            Ok(Ok(mut response)) if response["subtype"] == "success" => Ok(response["response"].take()),
            Ok(Ok(response)) => {
                let error = response["error"].as_str().unwrap_or("an error without a message");
                Err(unavailable(&self.name, format_args!("{what}: {error}")))
            }
            Ok(Err(_)) => Err(self.process.ended_error("the connection has ended".into())),
            Err(_) => Err(self.process.late(&what, bound)),
        }
    }

    /// Sends a control request. The receiver gets the response.
    pub(super) async fn begin(&self, request: Value) -> Result<oneshot::Receiver<ControlResponse>> {
        let id = format!("nuncio-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, response) = oneshot::channel();
        self.shared.pending().insert(id.clone(), sender);
        let sent = self.send(&json!({ "type": "control_request", "request_id": id, "request": request })).await;
        if let Err(error) = sent {
            self.shared.pending().remove(&id);
            return Err(error);
        }
        Ok(response)
    }

    pub(super) async fn send(&self, message: &Value) -> Result<()> {
        self.process.send(message).await
    }
}

/// Creates the response to a control request of Claude Code.
pub(super) fn success(id: &Value, response: Value) -> Value {
    let response = json!({ "subtype": "success", "request_id": id, "response": response });
    json!({ "type": "control_response", "response": response })
}

/// Creates the error response to a control request that nuncio cannot serve.
pub(super) fn failure(id: &Value, error: &str) -> Value {
    let response = json!({ "subtype": "error", "request_id": id, "error": error });
    json!({ "type": "control_response", "response": response })
}

impl Shared {
    fn pending(&self) -> parking_lot::MutexGuard<'_, HashMap<String, oneshot::Sender<ControlResponse>>> {
        self.pending.lock()
    }

    /// Queues a message for the running turn. Returns whether a turn runs.
    async fn forward(&self, message: Value, bytes: usize) -> bool {
        let turn = self.turn.lock().clone();
        match turn {
            Some(turn) => turn.send(message, bytes).await.is_ok(),
            None => false,
        }
    }
}

impl LineHandler for Shared {
    fn message(&self, mut message: Value, bytes: usize) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match message["type"].as_str() {
                Some("control_response") => {
                    let response = message["response"].take();
                    let pending = self.pending().remove(response["request_id"].as_str().unwrap_or_default());
                    if let Some(pending) = pending {
                        // Fails if nothing waits for the response any more.
                        let _ = pending.send(response);
                    }
                }
                Some("control_request") => {
                    let id = message["request_id"].clone();
                    if !self.forward(message, bytes).await {
                        // Fails if the agent sends requests without reading the responses.
                        let _ = self.refused.try_send(failure(&id, NO_TURN));
                    }
                }
                Some(_) => {
                    self.state.lock().on(&message);
                    // Without a turn, the state has all that matters.
                    let _ = self.forward(message, bytes).await;
                }
                None => {}
            }
        })
    }
}
