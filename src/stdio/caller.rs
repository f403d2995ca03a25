//! Requests of ours to the client: sent through its one outbox, answered once, taken back by whoever does not wait any more.

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

#[derive(Clone)]
pub struct Caller {
    client: Arc<Client>,
    peer: Arc<Peer>,
    /// Weak: the outbox has those who have this.
    outbox: mpsc::WeakSender<Out>,
    running: TaskTracker,
}

impl Caller {
    pub fn new(client: Arc<Client>, peer: Arc<Peer>, outbox: mpsc::WeakSender<Out>, running: TaskTracker) -> Caller {
        Caller { client, peer, outbox, running }
    }

    /// What the client said that it can do.
    pub fn capabilities(&self) -> acp::ClientCapabilities {
        self.client.capabilities()
    }

    /// Asks the client, once it was shown what was committed up to `after`. None: it is gone. Dropped before the answer, it takes the request back.
    pub async fn call(
        &self,
        method: &str,
        params: impl Serialize,
        after: Option<(SessionId, Seq)>,
    ) -> Option<Result<Value, Value>> {
        let (answer, answered) = oneshot::channel();
        let id = self.peer.ask(Box::new(move |result| drop(answer.send(result))));
        let mut waiting = Waiting { caller: self, id: Some(id) };
        let mut line = Vec::new();
        frame::request(waiting.id.as_ref()?, method, params, &mut line);
        if !self.send(line, after) {
            return None;
        }
        let result = answered.await.ok();
        waiting.id = None;
        result
    }

    /// Asks, and lets nobody wait for the answer.
    pub fn tell(&self, method: &str, params: impl Serialize) {
        let id = self.peer.ask(Box::new(|_| {}));
        let mut line = Vec::new();
        frame::request(&id, method, params, &mut line);
        self.send(line, None);
        // Without a runtime all comes to its end anyway.
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

    /// False: nobody writes to the client any more.
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

/// A request that waits for its answer.
struct Waiting<'c> {
    caller: &'c Caller,
    id: Option<Id>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take().filter(|id| self.caller.peer.withdraw(id)) else { return };
        let mut line = Vec::new();
        frame::notification("$/cancel_request", json!({ "requestId": id }), &mut line);
        self.caller.send(line, None);
    }
}
