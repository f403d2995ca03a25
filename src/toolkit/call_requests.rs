//! Requests that a running tool call makes to the user and to the model.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use crate::content::{Form, FormAnswer, ModelQuery, ModelReply};
use crate::id::SessionId;
use crate::limits;
#[cfg(feature = "mcp")]
use crate::mcp::ServerRequests;

/// A request of a running call, and where its answer goes. A request whose answer is dropped was
/// not answered.
pub(crate) enum CallRequest {
    Form(Form, oneshot::Sender<FormAnswer>),
    Query(ModelQuery, oneshot::Sender<Result<ModelReply, String>>),
}

/// Sends the requests of one call to the host of the call.
#[derive(Clone)]
pub struct CallRequests {
    session: Option<SessionId>,
    sender: mpsc::Sender<CallRequest>,
}

impl CallRequests {
    /// Creates the sender for a call of `session`, and its receiver.
    pub(crate) fn new(session: Option<SessionId>) -> (CallRequests, mpsc::Receiver<CallRequest>) {
        let (sender, receiver) = mpsc::channel(limits::MCP_REQUESTS_MAX);
        (CallRequests { session, sender }, receiver)
    }

    /// Sends a request and waits for the answer. Returns `None` if too many requests are waiting,
    /// or if the call ends first.
    fn send<T: Send + 'static>(&self, request: impl FnOnce(oneshot::Sender<T>) -> CallRequest) -> BoxFuture<'static, Option<T>> {
        let (sender, answer) = oneshot::channel();
        let sent = self.sender.try_send(request(sender)).is_ok();
        async move { if sent { answer.await.ok() } else { None } }.boxed()
    }
}

#[cfg(feature = "mcp")]
impl ServerRequests for CallRequests {
    fn session(&self) -> Option<&str> {
        self.session.as_ref().map(SessionId::as_str)
    }

    fn fill(&self, form: Form) -> BoxFuture<'static, FormAnswer> {
        let answer = self.send(|sender| CallRequest::Form(form, sender));
        async move { answer.await.unwrap_or(FormAnswer::Cancelled) }.boxed()
    }

    fn query(&self, query: ModelQuery) -> BoxFuture<'static, Result<ModelReply, String>> {
        let reply = self.send(|sender| CallRequest::Query(query, sender));
        async move { reply.await.unwrap_or_else(|| Err("too many requests, or the tool call has ended".into())) }.boxed()
    }
}
