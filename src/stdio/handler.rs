//! Runs the requests and notifications of a client as calls of the method table.

use std::sync::Arc;

use futures_util::future::Either;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::barrier::Barrier;
use crate::api::{self, App, CallContext, Client, MethodKind, Reply};
use crate::error::{Error, Kind, Result};
use crate::rpc::Handler;

/// Handles the messages of one client.
pub(crate) struct MethodHandler {
    pub app: Arc<App>,
    pub client: Arc<Client>,
}

impl Handler<Barrier> for MethodHandler {
    fn request(
        &self,
        method: String,
        params: Value,
        cancel: CancellationToken,
    ) -> impl Future<Output = (Result<Value>, Barrier)> + Send + 'static {
        let Some(row) = api::method(&method).filter(|row| matches!(row.kind, MethodKind::Call | MethodKind::Turn)) else {
            let error = Error::new(Kind::Unsupported, format!("unknown method {method}"));
            return Either::Left(std::future::ready((Err(error), Barrier::default())));
        };
        let cx = CallContext::new(self.app.clone(), self.client.clone(), cancel);
        let answered = cx.answered.clone().drop_guard();
        Either::Right(async move {
            match row.run(cx, params).await {
                Ok(Reply { result, after, follow, .. }) => (result, Barrier { after, follow, answered: Some(answered) }),
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
            if let Err(error) = row.run(cx, params).await {
                tracing::warn!(method = row.name, error = ?error, "notification failed");
            }
        })
    }
}
