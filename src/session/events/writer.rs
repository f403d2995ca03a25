//! The log writer: takes the pending events, commits them in one transaction and publishes them.
//! Events that arrive in the meantime go into the next transaction.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::log::{Log, PendingEvent, SessionLog, fenced};
use super::metrics::SessionMetrics;
use super::signer::Signer;
use crate::config::Durability;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event, Severity, ToolUpdate};
use crate::id::{Seq, TurnId};
use crate::limits;
use crate::session::clock::now_ms;
use crate::session::folds::summary::SessionSummary;
use crate::session::shared_files::SharedFiles;
use crate::store::{Append, CommitOutcome, SessionRow, Store};

/// Maximum number of events in the log writer's queue, over all sessions.
const APPENDS_QUEUED_MAX: usize = 4096;
/// Number of events for which an idle log writer keeps space: a stream of deltas fills larger
/// batches.
const BATCH_EVENTS_KEPT: usize = 64;
/// While a turn runs, the time of the last change of its session is written once in this time, in
/// milliseconds.
const LISTED_MS: u64 = 1000;
/// Pause between two attempts to write to a store that is locked or cannot be reached.
const STORE_RETRY: Duration = Duration::from_millis(50);

impl Log {
    /// Starts the writer thread.
    pub(crate) fn open(store: Store, dir: &Path, durability: Durability, signer: Signer) -> Result<Log> {
        let files = Arc::new(SharedFiles::new(store.clone(), dir));
        let (pending, queue) = mpsc::channel(APPENDS_QUEUED_MAX);
        let commits = watch::Sender::new(0);
        let metrics = Arc::new(SessionMetrics::default());
        let (notified, counted) = (commits.clone(), metrics.clone());
        let (runtime, written) = (Handle::current(), store.clone());
        let run = move || runtime.block_on(run(&written, queue, durability, notified, &counted));
        std::thread::Builder::new().name("log".into()).spawn(run).map_err(|error| Error::io("starting the log thread", error))?;
        Ok(Log { store, pending, commits, metrics, files, signer: Arc::new(signer) })
    }

    /// Metrics of the events that this process wrote.
    pub(crate) fn metrics(&self) -> &SessionMetrics {
        &self.metrics
    }

    /// Returns the number of events in the writer's queue.
    pub(crate) fn waiting(&self) -> usize {
        self.pending.max_capacity() - self.pending.capacity()
    }

    /// Returns the counter of commits: those of this process, and those of other processes when
    /// they are detected.
    pub(crate) fn commits(&self) -> &watch::Sender<u64> {
        &self.commits
    }

    /// Opens the log of one session and computes its state from the stored events.
    pub(crate) async fn session(&self, row: &SessionRow) -> Result<Arc<SessionLog>> {
        SessionLog::open(row, self.clone()).await
    }
}

/// The events of one session in a batch, and the callers that wait for their commit.
struct Group {
    log: Arc<SessionLog>,
    /// The running turn after the events.
    turn: Option<TurnId>,
    append: Append,
    waiting: Vec<(Seq, oneshot::Sender<Result<Seq>>)>,
}

/// Runs the writer until all senders are dropped. `commits` counts the batches, for followers of
/// all sessions.
async fn run(
    store: &Store,
    mut queue: mpsc::Receiver<PendingEvent>,
    durability: Durability,
    commits: watch::Sender<u64>,
    metrics: &SessionMetrics,
) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, limits::BATCH_EVENTS_MAX).await > 0 {
        let durable = match durability {
            Durability::Auto => batch.iter().any(|pending: &PendingEvent| pending.durable),
            Durability::Normal => false,
            Durability::Full => true,
        };
        let groups = group(&mut batch);
        commit(store, groups, durable, metrics).await;
        commits.send_modify(|count| *count += 1);
        if queue.is_empty() && batch.capacity() > BATCH_EVENTS_KEPT {
            batch = Vec::new();
        }
    }
}

/// Groups the events by session, numbers them and merges adjacent deltas of one message.
fn group(batch: &mut Vec<PendingEvent>) -> Vec<Group> {
    let at_ms = now_ms();
    let mut groups: Vec<Group> = Vec::new();
    for PendingEvent { log, turn, body, done, durable: _, call } in batch.drain(..) {
        if let Some(error) = log.failed() {
            if let Some(done) = done {
                let _ = done.send(Err(error));
            }
            continue;
        }
        let place = groups.iter().position(|group| Arc::ptr_eq(&group.log, &log));
        let group = match place {
            Some(place) => &mut groups[place],
            None => {
                let generation = log.generation.load(Ordering::Acquire);
                let append =
                    Append { key: log.key, generation, events: Vec::new(), calls: Vec::new(), activity: None, listed_ms: None };
                let turn = log.state(|state| state.turn.clone());
                groups.push(Group { log: log.clone(), turn, append, waiting: Vec::new() });
                groups.last_mut().expect("pushed above")
            }
        };
        if matches!(body, Body::TurnStarted { .. }) {
            group.turn = turn.clone();
        } else if turn.is_some() && turn != group.turn {
            // The turn has ended although its agent still works: its log was lost and then owned
            // again.
            if let Some(done) = done {
                let _ = done.send(Err(fenced(&log.id)));
            }
            continue;
        } else if body.ends_turn() {
            group.turn = None;
        }
        let events = &mut group.append.events;
        let body = match events.last_mut() {
            Some(last) => merge(&mut last.body, body),
            None => Some(body),
        };
        let seq = match body {
            None => events.last().map_or(0, |last| last.seq),
            Some(body) => {
                let seq = events.last().map_or_else(|| log.head() + 1, |last| last.seq + 1);
                events.push(Event { session_id: log.id.clone(), seq, turn_id: turn, at_ms, body, signature: None });
                seq
            }
        };
        group.append.calls.extend(call.map(|call| (seq, call)));
        group.waiting.extend(done.map(|done| (seq, done)));
    }
    groups.retain(|group| !group.append.events.is_empty());
    for Group { log, append, .. } in &mut groups {
        log.sign(&mut append.events);
        let first = log.summarized.load(Ordering::Acquire) != append.generation;
        let activity = log.state(|state| SessionSummary::columns_after(state, &append.events, first));
        // The columns of the previous owner stay until its turn is ended.
        append.activity = activity.filter(|activity| !activity.turn.as_ref().is_some_and(|turn| log.is_left_open(turn)));
        append.listed_ms = listed_ms(log, &append.events);
    }
    groups
}

/// Returns the time at which lists show that a session was updated, if it is to be written with
/// these events: at the ends of a turn, and while it runs once in [`LISTED_MS`].
fn listed_ms(log: &SessionLog, events: &[Event]) -> Option<u64> {
    let at_ms = events.iter().rev().find(|event| event.body.updates_session())?.at_ms;
    let is_at_end =
        |event: &Event| event.turn_id.is_none() || matches!(event.body, Body::TurnStarted { .. }) || event.body.ends_turn();
    let is_due = at_ms >= log.listed_ms.load(Ordering::Relaxed) + LISTED_MS || events.iter().any(is_at_end);
    is_due.then(|| {
        log.listed_ms.store(at_ms, Ordering::Relaxed);
        at_ms
    })
}

/// Merges `next` into `last` if both are deltas of one message, or updates of the output or the
/// input of one tool call, of which the newer replaces the older. Otherwise returns `next`.
fn merge(last: &mut Body, next: Body) -> Option<Body> {
    match (last, next) {
        (Body::MessageDelta { message_id, text, .. }, Body::MessageDelta { message_id: next_id, text: more, .. })
            if *message_id == next_id =>
        {
            text.push_str(&more);
            None
        }
        (
            Body::ToolUpdated(ToolUpdate { tool_call_id, status: None, content, .. }),
            Body::ToolUpdated(ToolUpdate { tool_call_id: next_id, status: None, content: Some(newer), change }),
        ) if *tool_call_id == next_id && change.is_empty() => {
            *content = Some(newer);
            None
        }
        (Body::ToolInput { name, bytes, path }, Body::ToolInput { name: next_name, bytes: more, path: next_path })
            if *name == next_name =>
        {
            (*bytes, *path) = (more, next_path);
            None
        }
        (_, next) => Some(next),
    }
}

async fn commit(store: &Store, groups: Vec<Group>, durable: bool, metrics: &SessionMetrics) {
    if groups.is_empty() {
        // All events were refused. Skip the transaction, because even an empty one waits for the
        // store's lock.
        return;
    }
    let (mut appends, mut others) = (Vec::with_capacity(groups.len()), Vec::with_capacity(groups.len()));
    for Group { log, append, waiting, .. } in groups {
        appends.push(append);
        others.push((log, waiting));
    }
    // If the transaction fails, commit each session separately: one may fail without the others.
    let (written, waited) = write(store, &appends, durable).await;
    let outcomes: Vec<Result<CommitOutcome>> = match written {
        Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
        Err(error) if appends.len() == 1 || is_temporary(&error) => appends.iter().map(|_| Err(error.clone())).collect(),
        Err(error) => {
            tracing::warn!(%error, sessions = appends.len(), "a batch was not written: its sessions are written one by one");
            metrics.record_split_batch();
            let alone = |append| async move { Ok(store.commit(std::slice::from_ref(append), durable).await?[0]) };
            stream::iter(&appends).then(alone).collect().await
        }
    };
    for (index, (append, (log, waiting))) in appends.into_iter().zip(others).enumerate() {
        let result = match &outcomes[index] {
            Ok(CommitOutcome::Written) => Ok(()),
            Ok(CommitOutcome::Fenced) => Err(fenced(&log.id)),
            Ok(CommitOutcome::Behind(head)) => Err(not_continued(&log, *head)),
            Err(error) => Err(error.clone()),
        };
        match &result {
            Ok(()) => {
                log.summarized.store(append.generation, Ordering::Release);
                log.publish(append.events, Some(metrics));
                if let Some(waited) = waited {
                    let title = "The store was locked or not reachable";
                    let description = format!("nothing was written for {} s; no events were lost", waited.as_secs());
                    // The turn may have ended.
                    log.try_emit(None, Body::notice(Severity::Warning, title, description));
                }
            }
            Err(error) => {
                tracing::error!(session = %log.id, error = %error, "events were not written");
                log.fail(error);
            }
        }
        for (seq, done) in waiting {
            let _ = done.send(result.clone().map(|()| seq));
        }
    }
}

/// Commits the appends. Retries while the store is locked or cannot be reached, for at most
/// [`limits::STORE_LOCKED_MAX`]. If the first attempt failed, also returns the total duration.
async fn write(store: &Store, appends: &[Append], durable: bool) -> (Result<Vec<CommitOutcome>>, Option<Duration>) {
    let began = Instant::now();
    let mut waited = None;
    loop {
        match store.commit(appends, durable).await {
            Err(error) if is_temporary(&error) && began.elapsed() < limits::STORE_LOCKED_MAX => {
                if waited.is_none() {
                    tracing::warn!(%error, "the store cannot be written: retrying");
                }
                waited = Some(began.elapsed());
                // Blocks, because tokio's timers can end before this thread.
                std::thread::sleep(STORE_RETRY);
            }
            result => return (result, waited.map(|_| began.elapsed())),
        }
    }
}

/// Returns whether the same commit may succeed later.
fn is_temporary(error: &Error) -> bool {
    matches!(error.kind, Kind::Overloaded | Kind::StoreUnavailable)
}

/// Creates the error for events that do not continue the stored ones: another program changed the
/// database.
fn not_continued(log: &SessionLog, stored: Seq) -> Error {
    let message = format!("the stored events of session {} end with {stored}, not with {}", log.id, log.head());
    Error::internal(message).hint("close the session and open it again: its events are read from the store")
}
