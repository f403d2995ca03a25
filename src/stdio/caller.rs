//! Requests to the client, sent through its outbox. A request that is dropped before its response
//! arrives is cancelled.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::outbox::Out;
use super::queue;
use crate::api::Client;
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::protocol::acp;
use crate::rpc::message::{Id, frame};
use crate::rpc::peer::Peer;

/// Sends requests to the client of a connection.
#[derive(Clone)]
pub struct Caller {
    client: Arc<Client>,
    peer: Arc<Peer>,
    /// Weak, because the outbox holds sessions that hold this caller.
    outbox: mpsc::WeakSender<Out>,
    running: TaskTracker,
}

impl Caller {
    pub fn new(client: Arc<Client>, peer: Arc<Peer>, outbox: mpsc::WeakSender<Out>, running: TaskTracker) -> Caller {
        Caller { client, peer, outbox, running }
    }

    /// The capabilities that the client announced.
    pub fn capabilities(&self) -> acp::ClientCapabilities {
        self.client.capabilities()
    }

    /// Sends a request after all events of the session up to `after`, and waits for the response.
    /// Returns None if the client is gone. Dropping the future cancels the request.
    pub async fn call(
        &self,
        method: &str,
        params: impl Serialize,
        after: Option<(SessionId, Seq)>,
    ) -> Option<Result<Value, Value>> {
        let (answer, answered) = oneshot::channel();
        let id = self.peer.ask(Box::new(move |result| drop(answer.send(result))));
        let mut pending = PendingRequest { caller: self, id: Some(id) };
        let mut line = Vec::new();
        frame::request(pending.id.as_ref()?, method, params, &mut line);
        if !self.send(line, after) {
            return None;
        }
        let result = answered.await.ok();
        pending.id = None;
        result
    }

    /// Sends a request and ignores the response.
    pub fn send_request(&self, method: &str, params: impl Serialize) {
        let id = self.peer.ask(Box::new(|_| {}));
        let mut line = Vec::new();
        frame::request(&id, method, params, &mut line);
        self.send(line, None);
        // Without a runtime the process is ending and the entry needs no cleanup.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let peer = self.peer.clone();
            runtime.spawn(async move {
                tokio::time::sleep(limits::CLIENT_TERMINAL).await;
                peer.withdraw(&id);
            });
        }
    }

    /// The client's id in events.
    pub fn client_id(&self) -> &str {
        &self.client.id
    }

    /// Queues a message. Returns false if the outbox has ended.
    fn send(&self, frame: Vec<u8>, after: Option<(SessionId, Seq)>) -> bool {
        match self.outbox.upgrade() {
            Some(outbox) => {
                queue(&outbox, &self.running, Out { frame, after, follow: None, answered: None });
                true
            }
            None => false,
        }
    }
}

/// A request without a response so far. Dropping it cancels the request.
struct PendingRequest<'c> {
    caller: &'c Caller,
    id: Option<Id>,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take().filter(|id| self.caller.peer.withdraw(id)) else { return };
        let mut line = Vec::new();
        frame::notification("$/cancel_request", json!({ "requestId": id }), &mut line);
        self.caller.send(line, None);
    }
}
