//! Event streams as subscriptions of the connection. Each page of a stream is read when the
//! previous one is in the output buffer, so a slow client needs no queue.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::api::{EVENT, EventStream, SUBSCRIPTIONS_MAX, StreamItem, SubscriptionParams, SubscriptionResult};
use crate::error::{Error, Kind, Result};
use crate::rpc::FrameWriter;

/// The running subscriptions of a connection, and the tokens that end them.
#[derive(Clone, Default)]
pub(crate) struct SubscriptionList(Arc<Mutex<Subscriptions>>);

#[derive(Default)]
struct Subscriptions {
    last: u64,
    running: HashMap<u64, CancellationToken>,
}

/// A stream that begins after the response with the id of the subscription.
pub(crate) struct Subscription {
    id: u64,
    stream: EventStream,
    unfollowed: CancellationToken,
}

impl SubscriptionList {
    /// Adds a subscription. Returns its id and the stream for the feed.
    pub(crate) fn add(&self, stream: EventStream) -> Result<(Value, Subscription)> {
        let mut list = self.0.lock();
        if list.running.len() >= SUBSCRIPTIONS_MAX {
            let message = format!("more than {SUBSCRIPTIONS_MAX} subscriptions on one connection");
            return Err(Error::new(Kind::Overloaded, message).hint("end one with _nuncio/events/unfollow"));
        }
        list.last += 1;
        let (id, unfollowed) = (list.last, CancellationToken::new());
        list.running.insert(id, unfollowed.clone());
        Ok((id.into(), Subscription { id, stream, unfollowed }))
    }

    /// Ends a subscription. Returns false if it does not run.
    pub(crate) fn unfollow(&self, id: Option<&Value>) -> bool {
        let id = id.and_then(Value::as_u64);
        id.and_then(|id| self.0.lock().running.remove(&id)).inspect(CancellationToken::cancel).is_some()
    }

    fn forget(&self, id: u64) {
        self.0.lock().running.remove(&id);
    }
}

/// The next item of a subscription's stream; `None` at its end.
pub(crate) type SubscriptionItem = (Subscription, Option<StreamItem>);

/// Writes the items of the subscriptions.
pub(crate) struct SubscriptionFeed {
    list: SubscriptionList,
    waiting: FuturesUnordered<BoxFuture<'static, SubscriptionItem>>,
    /// Ends the streams after their committed events.
    ending: CancellationToken,
}

impl SubscriptionFeed {
    pub(crate) fn new(list: SubscriptionList) -> SubscriptionFeed {
        SubscriptionFeed { list, waiting: FuturesUnordered::new(), ending: CancellationToken::new() }
    }

    /// Starts a subscription, or continues it after an item.
    pub(crate) fn follow(&self, mut subscription: Subscription) {
        let ending = self.ending.clone();
        self.waiting.push(
            async move {
                let unfollowed = subscription.unfollowed.clone();
                let item = tokio::select! {
                    biased;
                    () = unfollowed.cancelled() => None,
                    next = subscription.stream.next(&ending) => next.unwrap_or_else(|error| {
                        tracing::warn!(error = %error, "a subscription failed");
                        None
                    }),
                };
                (subscription, item)
            }
            .boxed(),
        );
    }

    /// Resolves when a subscription has an item. Never ends without subscriptions.
    pub(crate) async fn changed(&mut self) -> SubscriptionItem {
        match self.waiting.next().await {
            Some(item) => item,
            None => std::future::pending().await,
        }
    }

    /// Writes an item. The end is written unless the client has ended the subscription.
    pub(crate) async fn write(&mut self, (subscription, item): SubscriptionItem, out: &mut FrameWriter) -> io::Result<()> {
        let id = Value::from(subscription.id);
        let Some(item) = item.filter(|_| !subscription.unfollowed.is_cancelled()) else {
            if !subscription.unfollowed.is_cancelled() {
                out.notify(EVENT, SubscriptionParams { subscription: &id, result: SubscriptionResult::Ended { ended: true } });
            }
            self.list.forget(subscription.id);
            return Ok(());
        };
        for result in item.results() {
            out.notify(EVENT, SubscriptionParams { subscription: &id, result });
            out.flush_if_full().await?;
        }
        self.follow(subscription);
        Ok(())
    }

    /// Writes the events that are committed so far.
    pub(crate) async fn finish(&mut self, out: &mut FrameWriter) -> io::Result<()> {
        self.ending.cancel();
        while let Some(item) = self.waiting.next().await {
            self.write(item, out).await?;
        }
        Ok(())
    }
}
