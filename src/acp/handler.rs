//! Runs the requests and notifications of a client as calls of the method table.

use std::sync::Arc;

use futures_util::future::Either;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::barrier::Barrier;
use super::methods::run;
use super::subscriptions::{Subscription, SubscriptionList};
use crate::api::{self, App, CallContext, Client, MethodKind, Reply, UNFOLLOW};
use crate::error::{Error, Kind, Result};
use crate::rpc::Handler;

/// Handles the messages of one client.
pub(crate) struct MethodHandler {
    pub app: Arc<App>,
    pub client: Arc<Client>,
    pub subscriptions: SubscriptionList,
}

impl Handler<Barrier> for MethodHandler {
    fn request(
        &self,
        method: String,
        params: Value,
        cancel: CancellationToken,
    ) -> impl Future<Output = (Result<Value>, Barrier)> + Send + 'static {
        if method == UNFOLLOW {
            let is_ended = self.subscriptions.unfollow(params.as_array().and_then(|ids| ids.first()));
            return Either::Left(std::future::ready((Ok(is_ended.into()), Barrier::default())));
        }
        let Some(row) = api::method(&method).filter(|row| row.kind != MethodKind::Notification) else {
            let error = Error::new(Kind::Unsupported, format!("unknown method {method}"));
            return Either::Left(std::future::ready((Err(error), Barrier::default())));
        };
        let cx = CallContext::new(self.app.clone(), self.client.clone(), cancel);
        let (answered, subscriptions) = (cx.answered.clone().drop_guard(), self.subscriptions.clone());
        Either::Right(async move {
            match run(row, cx, params).await.and_then(|reply| with_subscription(reply, &subscriptions)) {
                Ok((Reply { result, after, follow, .. }, subscription)) => {
                    (result, Barrier { after, follow, subscription, answered: Some(answered) })
                }
                Err(error) => (Err(error), Barrier { answered: Some(answered), ..Barrier::default() }),
            }
        })
    }

    fn notification(&self, method: String, params: Value, cancel: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
        let Some(row) = api::method(&method).filter(|row| row.kind == MethodKind::Notification) else {
            tracing::debug!(method, "unknown notification");
            return Either::Left(std::future::ready(()));
        };
        let cx = CallContext::new(self.app.clone(), self.client.clone(), cancel);
        Either::Right(async move {
            if let Err(error) = run(row, cx, params).await {
                tracing::warn!(method = row.name, error = ?error, "notification failed");
            }
        })
    }
}

/// Makes the id of a new subscription the result of a method that opened a stream.
fn with_subscription(mut reply: Reply<Value>, subscriptions: &SubscriptionList) -> Result<(Reply<Value>, Option<Subscription>)> {
    let Some(stream) = reply.stream.take_if(|_| reply.result.is_ok()) else { return Ok((reply, None)) };
    let (id, subscription) = subscriptions.add(*stream)?;
    Ok((Reply { result: Ok(id), ..reply }, Some(subscription)))
}
