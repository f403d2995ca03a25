//! Running calls of nuncio's MCP server. Since protocol 2026-07-28 a server sends no requests: a
//! call that needs an answer of the user ends with an `InputRequiredResult`, and the client repeats
//! it with the answers. The work continues in a task between these requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{
    CallToolResult, ElicitRequest, ElicitRequestParams, ElicitResult, InputRequest, InputRequests, InputResponses, ProgressToken,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::Value;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::limits;

/// How long a call to nuncio's MCP server waits for the client's next request with an answer.
const MCP_SUSPENDED_MAX: Duration = Duration::from_secs(900);
/// Number of calls that ended while they waited for an answer and whose results are kept.
const MCP_SUSPENDED_KEPT: usize = 16;

/// Open requests of a call to the user, by the key under which the client answers them.
#[derive(Default)]
pub(crate) struct InputRounds {
    open: Mutex<BTreeMap<String, OpenForm>>,
    opened: Notify,
}

struct OpenForm {
    request: ElicitRequest,
    answer: oneshot::Sender<Value>,
}

/// RAII guard: closes a request that no longer waits for its answer.
struct OpenFormGuard<'a>(&'a InputRounds, &'a str);

impl InputRounds {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, OpenForm>> {
        self.open.lock()
    }

    /// Shows a form with the next result of the call and waits for its answer. The error is a
    /// message.
    pub(crate) async fn ask(&self, key: &str, form: ElicitRequestParams) -> std::result::Result<ElicitResult, String> {
        let (answer, answered) = oneshot::channel();
        self.lock().insert(key.into(), OpenForm { request: ElicitRequest::new(form), answer });
        let _guard = OpenFormGuard(self, key);
        self.opened.notify_one();
        let value = answered.await.map_err(|_| "the call ended")?;
        serde_json::from_value(value).map_err(|error| format!("its answer is not an elicitation result: {error}"))
    }

    /// Waits until a request is open. Returns all open requests.
    pub(crate) async fn pending(&self) -> InputRequests {
        loop {
            let open: InputRequests =
                self.lock().iter().map(|(key, open)| (key.clone(), InputRequest::Elicitation(open.request.clone()))).collect();
            if !open.is_empty() {
                return open;
            }
            self.opened.notified().await;
        }
    }

    /// Passes answers to their requests. An answer to a request that is no longer open is dropped.
    fn answer(&self, responses: InputResponses) {
        for (key, value) in responses {
            if let Some(open) = self.lock().remove(&key) {
                // Fails if the request no longer waits.
                let _ = open.answer.send(value);
            }
        }
    }
}

impl Drop for OpenFormGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(self.1);
    }
}

/// The client's request that waits for the result of a call. Progress is reported to it.
#[derive(Clone)]
pub(crate) struct ProgressTarget {
    pub peer: Peer<RoleServer>,
    /// `None` if the client did not ask for progress.
    pub token: Option<ProgressToken>,
}

/// The request that waits now; `None` between two requests.
pub(crate) type TargetWatch = watch::Receiver<Option<ProgressTarget>>;

/// A call whose work runs in a task. Dropping it cancels the work.
pub(crate) struct DelegateCall {
    /// Identifies the call in the client's next request.
    pub state: String,
    pub rounds: Arc<InputRounds>,
    task: JoinHandle<Result<CallToolResult>>,
    waiting: watch::Sender<Option<ProgressTarget>>,
    cancel: DropGuard,
}

impl DelegateCall {
    /// Starts the work of a call. `work` must end soon after the token is cancelled.
    pub(crate) fn start<F>(
        request: ProgressTarget,
        ended: CancellationToken,
        work: impl FnOnce(Arc<InputRounds>, TargetWatch, CancellationToken) -> F,
    ) -> DelegateCall
    where
        F: Future<Output = Result<CallToolResult>> + Send + 'static,
    {
        let (rounds, cancel) = (Arc::<InputRounds>::default(), CancellationToken::new());
        let (waiting, observed) = watch::channel(Some(request));
        let mut work = Box::pin(work(rounds.clone(), observed.clone(), cancel.clone()));
        let cancelled = cancel.clone();
        let task = crate::task::spawn(async move {
            tokio::select! {
                biased;
                result = &mut work => return result,
                () = cancelled.cancelled() => {}
                () = ended.cancelled() => {}
                () = tokio::time::sleep(limits::MCP_SERVED_CALL_MAX) => {}
                () = wait_until_abandoned(observed) => {}
            }
            cancelled.cancel();
            work.await
        });
        DelegateCall { state: Uuid::now_v7().simple().to_string(), rounds, task, waiting, cancel: cancel.drop_guard() }
    }

    /// Waits for the result. Cancel safe.
    pub(crate) async fn result(&mut self) -> Result<CallToolResult> {
        let joined = (&mut self.task).await;
        joined.unwrap_or_else(|error| Err(Error::internal(format!("the call panicked: {error}"))))
    }

    /// Cancels the work and waits for its result.
    pub(crate) async fn cancelled(self) -> Result<CallToolResult> {
        let DelegateCall { task, cancel, .. } = self;
        drop(cancel);
        task.await.unwrap_or_else(|error| Err(Error::internal(format!("the call panicked: {error}"))))
    }
}

/// Waits until no request has waited for the call for [`MCP_SUSPENDED_MAX`].
async fn wait_until_abandoned(mut waiting: TargetWatch) {
    loop {
        if waiting.wait_for(Option::is_none).await.is_err() {
            return;
        }
        match timeout(MCP_SUSPENDED_MAX, waiting.wait_for(Option::is_some)).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

/// The calls of a client that wait for its next request, the oldest first.
#[derive(Default)]
pub(crate) struct SuspendedCalls(Mutex<VecDeque<DelegateCall>>);

impl SuspendedCalls {
    fn calls(&self) -> MutexGuard<'_, VecDeque<DelegateCall>> {
        self.0.lock()
    }

    /// Keeps a call for the client's next request. Drops the calls that ended without one.
    pub(crate) fn suspend(&self, call: DelegateCall) {
        call.waiting.send_replace(None);
        let mut calls = self.calls();
        let ended = calls.iter().filter(|call| call.task.is_finished()).count();
        let mut excess = ended.saturating_sub(MCP_SUSPENDED_KEPT);
        calls.retain(|call| {
            let drops = excess > 0 && call.task.is_finished();
            excess -= usize::from(drops);
            !drops
        });
        calls.push_back(call);
    }

    /// Resumes the call that a client's request names, with the answers of the request.
    pub(crate) fn resume(&self, state: &str, responses: InputResponses, request: ProgressTarget) -> Result<DelegateCall> {
        let mut calls = self.calls();
        let found = calls.iter().position(|call| call.state == state).and_then(|at| calls.remove(at));
        drop(calls);
        let call = found.ok_or_else(|| {
            Error::invalid_params("requestState: no call of this server waits for this answer")
                .hint("the answer was too late, or the call was repeated already; call the tool again")
        })?;
        call.waiting.send_replace(Some(request));
        call.rounds.answer(responses);
        Ok(call)
    }
}
