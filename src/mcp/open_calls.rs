//! The running tool calls of a connection: their progress, and the requests that the server makes
//! during them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::content::{Form, FormAnswer, ModelQuery, ModelReply, shortened};

/// Maximum number of kept progress reports for calls that are not registered yet.
const MCP_PROGRESS_EARLY_MAX: usize = 64;
/// Minimum interval between two shown progress reports of a call.
const MCP_PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum size of a shown progress report, in bytes.
const MCP_PROGRESS_BYTES_MAX: usize = 1_000;

/// Receives a text about the progress of a call. Must not block.
pub type ProgressHandler = Arc<dyn Fn(String) + Send + Sync>;

/// Answers the requests that a server makes during a call.
pub trait ServerRequests: Send + Sync {
    fn session(&self) -> Option<&str>;

    /// Asks the user to fill in a form.
    fn fill(&self, form: Form) -> BoxFuture<'static, FormAnswer>;

    /// Sends a request to the session's model. The error is a message.
    fn query(&self, query: ModelQuery) -> BoxFuture<'static, Result<ModelReply, String>>;
}

/// The running calls of one connection.
#[derive(Default)]
pub(super) struct OpenCalls(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    running: HashMap<ProgressToken, OpenCall>,
    /// Number of calls so far.
    count: u64,
    /// Reports that arrived before the call was registered.
    early: Vec<ProgressNotificationParam>,
}

struct OpenCall {
    number: u64,
    /// The highest progress so far; reports are handled concurrently, and may be out of order.
    reached: f64,
    requests: Option<Arc<dyn ServerRequests>>,
    activity: Arc<Activity>,
}

/// RAII guard: the call is registered, and its progress is shown.
pub(super) struct CallGuard {
    on_progress: ProgressHandler,
    /// When the next report may be shown.
    next: Instant,
    calls: Arc<OpenCalls>,
    token: ProgressToken,
    activity: Arc<Activity>,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.calls.0.lock().running.remove(&self.token);
    }
}

impl CallGuard {
    /// Returns when the call times out if nothing else happens: `timeout` after the last report or
    /// the last answer to a request of the server. During such a request, `timeout` counts from
    /// now.
    pub(super) fn due(&self, timeout: Duration) -> Instant {
        let state = self.activity.state.lock();
        if state.open_requests > 0 { Instant::now() + timeout } else { state.last + timeout }
    }

    /// Waits for a report that may be shown: several within [`MCP_PROGRESS_INTERVAL`] count
    /// as one, the last of them.
    pub(super) async fn wait_for_report(&self) {
        while self.activity.state.lock().unshown.is_none() {
            self.activity.reported.notified().await;
        }
        sleep_until(self.next).await;
    }

    /// Shows the last report, unless it was shown.
    pub(super) fn show(&mut self) {
        let unshown = self.activity.state.lock().unshown.take();
        if let Some(report) = unshown {
            (self.on_progress)(report);
            self.next = Instant::now() + MCP_PROGRESS_INTERVAL;
        }
    }
}

impl OpenCalls {
    /// Registers a call. Its progress is passed to `on_progress`.
    pub(super) fn register(
        self: &Arc<Self>,
        token: ProgressToken,
        on_progress: ProgressHandler,
        requests: Option<Arc<dyn ServerRequests>>,
    ) -> CallGuard {
        let activity = Arc::new(Activity::new());
        let early: Vec<ProgressNotificationParam> = {
            let mut calls = self.0.lock();
            calls.count += 1;
            let (number, reached) = (calls.count, f64::NEG_INFINITY);
            let call = OpenCall { number, reached, requests, activity: activity.clone() };
            calls.running.insert(token.clone(), call);
            let (ours, others) = std::mem::take(&mut calls.early).into_iter().partition(|report| report.progress_token == token);
            calls.early = others;
            ours
        };
        for report in early {
            self.report(report);
        }
        CallGuard { on_progress, next: Instant::now(), calls: self.clone(), token, activity }
    }

    /// Passes a progress report to its call.
    pub(super) fn report(&self, report: ProgressNotificationParam) {
        let mut calls = self.0.lock();
        match calls.running.get_mut(&report.progress_token) {
            Some(call) if report.progress < call.reached => {}
            Some(call) => {
                call.reached = report.progress;
                let mut state = call.activity.state.lock();
                (state.last, state.unshown) = (Instant::now(), Some(text(&report)));
                drop(state);
                call.activity.reported.notify_one();
            }
            None => {
                if calls.early.len() >= MCP_PROGRESS_EARLY_MAX {
                    calls.early.remove(0);
                }
                calls.early.push(report);
            }
        }
    }

    /// Returns the call to which a request of the server belongs. The protocol does not name the
    /// call: use the one that started last, if all running calls belong to one session.
    pub(super) fn of_request(&self) -> Option<RequestOfCall> {
        let calls = self.0.lock();
        let last = calls.running.values().max_by_key(|call| call.number)?;
        let requests = last.requests.clone()?;
        let same = |call: &OpenCall| call.requests.as_ref().is_some_and(|other| other.session() == requests.session());
        if !calls.running.values().all(same) {
            return None;
        }
        last.activity.state.lock().open_requests += 1;
        Some(RequestOfCall { requests, activity: last.activity.clone() })
    }
}

/// A request that a server makes during a call. While it exists, the call does not time out.
pub(super) struct RequestOfCall {
    pub(super) requests: Arc<dyn ServerRequests>,
    activity: Arc<Activity>,
}

impl Drop for RequestOfCall {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.open_requests -= 1;
        state.last = Instant::now();
    }
}

/// The activity of a call, which determines its timeout.
struct Activity {
    state: Mutex<ActivityState>,
    /// Notified when there is a report to show.
    reported: Notify,
}

struct ActivityState {
    /// Time of the last report, of the last answer to a request, or of the start.
    last: Instant,
    open_requests: usize,
    /// The last report, until it is shown.
    unshown: Option<String>,
}

impl Activity {
    fn new() -> Activity {
        let state = ActivityState { last: Instant::now(), open_requests: 0, unshown: None };
        Activity { state: Mutex::new(state), reported: Notify::new() }
    }
}

/// Formats a progress report as a text: `2/5: indexing`.
fn text(report: &ProgressNotificationParam) -> String {
    let reached = match report.total {
        Some(total) => format!("{}/{total}", report.progress),
        None => report.progress.to_string(),
    };
    match &report.message {
        Some(message) => shortened(format!("{reached}: {message}"), MCP_PROGRESS_BYTES_MAX),
        None => reached,
    }
}
