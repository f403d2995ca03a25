//! The order of the calls of this process to a session. A call takes its place when its message is
//! read, and keeps it until it has its effect: until its turn or its entry of the queue is decided,
//! until it was sent to the owner of the session, or until it has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::local_socket::PeerConnection;

/// The calls of this process to one session.
pub(in crate::api) struct SessionCalls {
    /// The counter from which sessions take their epochs. See [`CallOrder::epoch`].
    epochs: Arc<AtomicU64>,
    order: watch::Sender<CallOrder>,
    /// The numbers of the prompts, and the tokens that cancel them.
    prompts: Mutex<Vec<(u64, CancellationToken)>>,
}

#[derive(Default)]
struct CallOrder {
    /// The number of the last call.
    last: u64,
    /// Numbers of the calls that are not decided.
    undecided: BTreeSet<u64>,
    /// Rises when an owner has refused a call. An owner accepts the messages of one epoch only
    /// while it owns the session without a pause, so none of them overtakes one that it refused.
    epoch: u64,
    /// The calls whose message was sent to an owner that has not answered, by their numbers: their
    /// connections and epochs. An owner that ends refuses them.
    sent: BTreeMap<u64, (Arc<PeerConnection>, u64)>,
}

impl SessionCalls {
    /// Creates an order without calls. All sessions of the process take their epochs from the
    /// counter `epochs`.
    pub(in crate::api) fn new(epochs: &Arc<AtomicU64>) -> SessionCalls {
        let calls = SessionCalls { epochs: epochs.clone(), order: watch::Sender::default(), prompts: Mutex::default() };
        calls.order.send_modify(|order| order.epoch = calls.next_epoch());
        calls
    }

    fn next_epoch(&self) -> u64 {
        self.epochs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds a call after the earlier calls.
    pub(in crate::api) fn add_call(self: &Arc<Self>) -> CallPlace {
        let mut number = 0;
        self.order.send_modify(|order| {
            order.last += 1;
            number = order.last;
            order.undecided.insert(number);
        });
        CallPlace { calls: self.clone(), number, refused: AtomicBool::new(false) }
    }
}

/// The place of a call in the order. Dropping it removes the call from the order.
pub struct CallPlace {
    calls: Arc<SessionCalls>,
    number: u64,
    /// True once an owner has refused the call.
    refused: AtomicBool,
}

impl CallPlace {
    /// Waits until each earlier call is decided.
    pub(crate) async fn is_next(&self) {
        let mut order = self.calls.order.subscribe();
        // Cannot fail: `self.calls` holds the sender.
        let _ = order.wait_for(|order| order.undecided.range(..self.number).next().is_none()).await;
    }

    /// Records that the call is decided. Later calls can start.
    pub(crate) fn set_decided(&self) {
        self.calls.order.send_if_modified(|order| order.undecided.remove(&self.number) | order.sent.remove(&self.number).is_some());
    }

    /// Records that the message of the call is sent to an owner. Later calls can start, and send
    /// their messages to this owner only.
    pub(in crate::api) fn set_sent(&self, connection: Arc<PeerConnection>, epoch: u64) {
        self.calls.order.send_modify(|order| {
            order.undecided.remove(&self.number);
            order.sent.insert(self.number, (connection, epoch));
        });
    }

    /// Returns the epoch to send with the next message. See [`CallOrder::epoch`].
    pub(in crate::api) fn epoch(&self) -> u64 {
        self.calls.order.borrow().epoch
    }

    /// Waits until each earlier message has arrived. A message that was sent on `connection` in
    /// this epoch precedes the next one there, unless the owner is refusing them. The time is
    /// limited, because an owner may hang.
    pub(in crate::api) async fn earlier_messages_arrived(&self, connection: Option<&Arc<PeerConnection>>) {
        let connection = connection.filter(|_| !self.refused.load(Ordering::Acquire));
        let mut order = self.calls.order.subscribe();
        let arrived = order.wait_for(|order| {
            order.undecided.range(..self.number).next().is_none()
                && order
                    .sent
                    .range(..self.number)
                    .all(|(_, (sent, epoch))| *epoch == order.epoch && connection.is_some_and(|own| Arc::ptr_eq(own, sent)))
        });
        let _ = tokio::time::timeout(limits::FORWARD_SEARCH, arrived).await;
    }

    /// Registers the call as a prompt until it has ended. `cancel` cancels it.
    pub(in crate::api) fn add_prompt(&self, cancel: CancellationToken) {
        self.calls.prompts.lock().push((self.number, cancel));
    }

    /// Cancels the earlier prompts: those that run, those that wait and those that look for an
    /// owner.
    pub(in crate::api) fn cancel_prompts(&self) {
        for (_, cancel) in self.calls.prompts.lock().iter().filter(|(number, _)| *number < self.number) {
            cancel.cancel();
        }
    }

    /// Records that the call has ended.
    pub(in crate::api) fn end(&self) {
        self.set_decided();
        self.calls.prompts.lock().retain(|(number, _)| *number != self.number);
    }

    /// Records that the owner refused the call, which looks for the next owner. Later calls that
    /// have not started wait for it.
    pub(in crate::api) fn set_refused(&self) {
        self.refused.store(true, Ordering::Release);
        self.calls.order.send_modify(|order| {
            order.epoch = self.calls.next_epoch();
            order.sent.remove(&self.number);
            order.undecided.insert(self.number);
        });
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        self.end();
    }
}
