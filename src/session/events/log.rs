//! The event log of one session: its committed events, the state computed from them, and the sender
//! of the log writer's queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot, watch};

use super::activity_log;
use super::metrics::SessionMetrics;
use super::signer::Signer;
use super::tail::Tail;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event};
use crate::id::{MessageId, Seq, SessionId, TurnId};
use crate::limits;
use crate::session::folds::state::SessionState;
use crate::session::owner::lock;
use crate::session::recorded_requests::RecordedRequests;
use crate::session::shared_files::{ARTIFACTS, SharedFiles, follows_artifacts};
use crate::store::{SessionRow, Store};

pub(in crate::session) struct PendingEvent {
    pub log: Arc<SessionLog>,
    pub turn: Option<TurnId>,
    pub body: Body,
    pub durable: bool,
    pub done: Option<oneshot::Sender<Result<Seq>>>,
    /// The call of another process that appends the event.
    pub call: Option<MessageId>,
}

/// Room for one event in the log's queue.
pub(in crate::session) struct LogRoom<'a> {
    log: &'a Arc<SessionLog>,
    permit: mpsc::Permit<'a, PendingEvent>,
}

impl LogRoom<'_> {
    /// Appends an event of a turn, without waiting. The returned receiver reports the commit.
    pub(in crate::session) fn append(self, turn: TurnId, body: Body) -> oneshot::Receiver<Result<Seq>> {
        let (done, committed) = oneshot::channel();
        self.permit.send(PendingEvent { done: Some(done), ..self.log.pending_event(Some(turn), body) });
        committed
    }
}

/// Handle to the writer thread, which writes the events of all sessions of this process. The thread
/// ends when all senders are dropped.
#[derive(Clone)]
pub(in crate::session) struct Log {
    pub(super) store: Store,
    pub(super) pending: mpsc::Sender<PendingEvent>,
    pub(super) commits: watch::Sender<u64>,
    pub(super) metrics: Arc<SessionMetrics>,
    pub files: Arc<SharedFiles>,
    pub(super) signer: Arc<Signer>,
}

/// The log of one session.
pub struct SessionLog {
    pub id: SessionId,
    /// Rowid of the session.
    pub(in crate::session) key: i64,
    /// The generation that the writer's commits check. See `Ownership`.
    pub(in crate::session) generation: AtomicI64,
    /// The generation whose writer last wrote the summary to the session's row. The first commit of
    /// each generation writes it, because the row may have been copied or written by an older
    /// version.
    pub(in crate::session) summarized: AtomicI64,
    /// The time of the last change that lists show.
    pub(super) listed_ms: AtomicU64,
    live: Mutex<Live>,
    pub(in crate::session) head: watch::Sender<Seq>,
    /// The log of all sessions.
    pub(in crate::session) shared: Log,
    /// Records what the log does not have of model requests.
    pub(crate) requests: RecordedRequests,
    catching_up: tokio::sync::Mutex<()>,
    /// True after an append was lost, until the session is owned again.
    lost: watch::Sender<bool>,
}

/// The newest events, which followers read without disk access, and the current state. `failed` is
/// set when an append is lost; further appends are then refused.
#[derive(Default)]
struct Live {
    head: Seq,
    tail: Tail,
    state: SessionState,
    failed: Option<Error>,
    /// The turn that the previous owner left open.
    left_open: Option<TurnId>,
    /// Settings that were dropped; `None` if the current key has signed what the session may do.
    dropped: Option<Vec<String>>,
}

impl Live {
    /// Drops what the session may do if the events that were read from the store do not prove it.
    fn check(&mut self, id: &SessionId, signer: &Signer) {
        self.dropped = signer.check(id, &mut self.state, self.dropped.take());
    }
}

impl SessionLog {
    /// Opens the log of the session described by `row` and computes the session's state from the
    /// stored events.
    pub(in crate::session) async fn open(row: &SessionRow, shared: Log) -> Result<Arc<SessionLog>> {
        let log = SessionLog {
            id: row.id.clone(),
            key: row.key,
            generation: AtomicI64::new(row.generation),
            summarized: AtomicI64::new(0),
            listed_ms: AtomicU64::new(0),
            live: Mutex::default(),
            head: watch::Sender::new(0),
            requests: RecordedRequests::new(row.id.clone(), shared.files.clone()),
            shared,
            catching_up: tokio::sync::Mutex::default(),
            lost: watch::Sender::new(false),
        };
        if row.head > 0 {
            log.restore().await?;
        }
        Ok(Arc::new(log))
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock()
    }

    /// Passes the current state to `read`, which must return quickly, because the writer waits for
    /// it.
    pub(crate) fn state<T>(&self, read: impl FnOnce(&SessionState) -> T) -> T {
        read(&self.live().state)
    }

    /// Passes the current state to `read`, with the seq of the last event that the state includes.
    pub(crate) fn state_at_head<T>(&self, read: impl FnOnce(&SessionState, Seq) -> T) -> T {
        let live = self.live();
        read(&live.state, live.head)
    }

    /// Returns the seq of the last committed event.
    pub fn head(&self) -> Seq {
        self.live().head
    }

    /// Appends an event without waiting for its commit; waits only for room in the queue. If the
    /// event is lost, the next [`SessionLog::commit`] returns an error.
    pub async fn emit(self: &Arc<Self>, turn: Option<TurnId>, body: Body) {
        // Fails only while the process exits, because the writer runs until then.
        let _ = self.shared.pending.send(self.pending_event(turn, body)).await;
    }

    /// Appends an event like [`SessionLog::emit`], which is synced with the next durable event.
    pub(crate) async fn emit_before_commit(self: &Arc<Self>, turn: Option<TurnId>, body: Body) {
        let event = PendingEvent { durable: false, ..self.pending_event(turn, body) };
        let _ = self.shared.pending.send(event).await;
    }

    /// Appends an event if the queue has room; otherwise the event is dropped.
    pub(crate) fn try_emit(self: &Arc<Self>, turn: Option<TurnId>, body: Body) {
        let _ = self.shared.pending.try_send(self.pending_event(turn, body));
    }

    fn pending_event(self: &Arc<Self>, turn: Option<TurnId>, body: Body) -> PendingEvent {
        PendingEvent { log: self.clone(), turn, durable: body.is_durable(), body, done: None, call: None }
    }

    /// Appends an event and waits until it, and all events emitted before it, are committed.
    pub async fn commit(self: &Arc<Self>, turn: Option<TurnId>, body: Body) -> Result<Seq> {
        committed(self.append(turn, None, body, false).await?).await
    }

    /// Commits an event outside of a turn, as [`SessionLog::commit`] does, for a call of another
    /// process.
    pub(in crate::session) async fn commit_for(self: &Arc<Self>, call: Option<MessageId>, body: Body) -> Result<Seq> {
        committed(self.append(None, call, body, false).await?).await
    }

    /// Appends an event that precedes an external effect. The event is synced to disk when this
    /// function returns.
    pub(crate) async fn commit_durably(self: &Arc<Self>, turn: Option<TurnId>, body: Body) -> Result<Seq> {
        committed(self.append(turn, None, body, true).await?).await
    }

    /// Appends an event to the queue; with `durable`, it is synced whatever it is. The returned
    /// receiver reports the commit.
    async fn append(
        self: &Arc<Self>,
        turn: Option<TurnId>,
        call: Option<MessageId>,
        body: Body,
        durable: bool,
    ) -> Result<oneshot::Receiver<Result<Seq>>> {
        if follows_artifacts(&body)
            && let Err(error) = self.shared.files.store(&self.id, ARTIFACTS).await
        {
            tracing::warn!(session = %self.id, %error, "writing artifacts to the database failed");
        }
        let (done, committed) = oneshot::channel();
        let event = self.pending_event(turn, body);
        let pending = PendingEvent { durable: durable || event.durable, done: Some(done), call, ..event };
        self.shared.pending.send(pending).await.map(|()| committed).map_err(|_| writer_gone())
    }

    /// Waits for room in the queue, so that the caller can append an event in one step with a
    /// decision.
    pub(in crate::session) async fn room(self: &Arc<Self>) -> Result<LogRoom<'_>> {
        let permit = self.shared.pending.reserve().await.map_err(|_| writer_gone())?;
        Ok(LogRoom { log: self, permit })
    }

    /// Returns the seq of the event after `after` that a call of another process appended.
    pub(in crate::session) async fn event_of_call(&self, after: Seq, call: &MessageId) -> Result<Option<Seq>> {
        self.shared.store.event_of_call(self.key, after, call).await
    }

    /// Appends an event outside of a turn, or fails if the queue is full. `call` is the call of
    /// another process that appends it.
    pub(in crate::session) fn try_append(
        self: &Arc<Self>,
        body: Body,
        call: Option<MessageId>,
    ) -> Result<oneshot::Receiver<Result<Seq>>> {
        let (done, committed) = oneshot::channel();
        let sent = self.shared.pending.try_send(PendingEvent { done: Some(done), call, ..self.pending_event(None, body) });
        sent.map(|()| committed).map_err(|_| Error::new(Kind::Overloaded, "the log's queue is full"))
    }

    /// Signs the events that change what the session may do. They follow the committed events.
    pub(in crate::session) fn sign(&self, events: &mut [Event]) {
        self.shared.signer.sign_events(&self.id, || self.state(SessionState::clone_grants), events);
    }

    /// Returns the settings that were dropped; `None` if the current key has signed the settings.
    pub(in crate::session) fn dropped(&self) -> Option<Vec<String>> {
        self.live().dropped.clone()
    }

    /// Publishes committed events to followers. Called by the writer, and by
    /// [`SessionLog::catch_up`] for events that other processes committed.
    pub(in crate::session) fn publish(&self, events: Vec<Event>, metrics: Option<&SessionMetrics>) {
        let Some(last) = events.last().map(|event| event.seq) else { return };
        let mut live = self.live();
        let signed = live.state.signed.seq;
        for event in events {
            if let Some(metrics) = metrics {
                metrics.record(&event, &live.state);
                activity_log::log(&event, &live.state);
            }
            live.state.apply(&event);
            live.tail.push(event);
        }
        live.head = last;
        if live.state.signed.seq != signed {
            // The writer has just signed its own events.
            if metrics.is_some() { live.dropped = None } else { live.check(&self.id, &self.shared.signer) }
        }
        drop(live);
        self.head.send_replace(last);
    }

    /// Returns whether the previous owner left this turn open.
    pub(in crate::session) fn is_left_open(&self, turn: &TurnId) -> bool {
        self.live().left_open.as_ref() == Some(turn)
    }

    /// Refuses further appends, with this error, until the session is owned again.
    pub(in crate::session) fn fail(&self, error: &Error) {
        self.live().failed.get_or_insert_with(|| error.clone());
        self.lost.send_replace(true);
    }

    /// Waits until an append is lost. No event is written after that until the session is owned
    /// again.
    pub(in crate::session) async fn lost(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.lost.subscribe().wait_for(|lost| *lost).await;
    }

    /// Returns the error from the first lost append; `None` if no append was lost since this
    /// process took the session.
    pub(in crate::session) fn failed(&self) -> Option<Error> {
        self.live().failed.clone()
    }

    /// Starts a new ownership generation and clears the failure.
    pub(in crate::session) fn own(&self, generation: i64) {
        self.generation.store(generation, Ordering::Release);
        let mut live = self.live();
        live.failed = None;
        live.left_open = live.state.turn.clone();
        drop(live);
        self.lost.send_replace(false);
    }

    /// Reads and publishes the events that other processes committed, at least up to `until` if
    /// there are as many. Only for sessions that this process does not own.
    pub(in crate::session) async fn catch_up(&self, until: Seq) -> Result<()> {
        let _one_at_a_time = self.catching_up.lock().await;
        while self.head() < until {
            let events = self.shared.store.events(&self.id, self.key, self.head(), limits::BATCH_EVENTS_MAX, true).await?;
            if events.is_empty() {
                break;
            }
            self.publish(events, None);
        }
        Ok(())
    }

    /// Computes the state from the stored events. Deltas are read only for an open turn, whose
    /// messages may be incomplete.
    async fn restore(&self) -> Result<()> {
        let mut state = SessionState::default();
        let (mut head, mut turn) = (0, Vec::new());
        self.each(0, false, |event| {
            if matches!(event.body, Body::TurnStarted { .. }) {
                turn.drain(..).for_each(|event| state.apply(&event));
            }
            head = event.seq;
            let ends = event.body.ends_turn();
            turn.push(event);
            if ends {
                turn.drain(..).for_each(|event| state.apply(&event));
            }
        })
        .await?;
        match turn.first() {
            Some(start) if matches!(start.body, Body::TurnStarted { .. }) => {
                state.apply(start);
                head = start.seq;
                self.each(start.seq, true, |event| {
                    state.apply(&event);
                    head = event.seq;
                })
                .await?;
            }
            _ => turn.iter().for_each(|event| state.apply(event)),
        }
        let mut live = self.live();
        live.state = state;
        live.head = head;
        live.check(&self.id, &self.shared.signer);
        self.head.send_replace(head);
        Ok(())
    }

    /// Passes each stored event after `after` to `with`, reading page by page.
    async fn each(&self, mut after: Seq, deltas: bool, mut with: impl FnMut(Event)) -> Result<()> {
        loop {
            let events = self.shared.store.events(&self.id, self.key, after, limits::BATCH_EVENTS_MAX, deltas).await?;
            let Some(last) = events.last() else { return Ok(()) };
            after = last.seq;
            events.into_iter().for_each(&mut with);
        }
    }

    /// Returns up to `limit` events after `after` from memory, or `None` if they are only in the
    /// store.
    pub(in crate::session) fn tail_after(&self, after: Seq, limit: usize) -> Option<Vec<Arc<Event>>> {
        let live = self.live();
        if after >= live.head {
            return Some(Vec::new());
        }
        live.tail.after(after, limit)
    }

    /// Returns a page of events. `deltas`: a page from the store includes deltas.
    pub(crate) async fn page(&self, after: Seq, limit: usize, deltas: bool) -> Result<Vec<Arc<Event>>> {
        if let Some(events) = self.tail_after(after, limit) {
            return Ok(events);
        }
        let events = self.shared.store.events(&self.id, self.key, after, limit, deltas).await?;
        let head = self.head();
        // Exclude committed events that are not yet published.
        Ok(events.into_iter().filter(|event| event.seq <= head).map(Arc::new).collect())
    }

    /// Removes the deltas of complete messages from the store.
    pub(crate) async fn prune(&self) -> Result<usize> {
        self.shared.store.prune_deltas(self.key, self.head()).await
    }
}

/// Waits until an event is committed, and returns its seq.
pub(in crate::session) async fn committed(done: oneshot::Receiver<Result<Seq>>) -> Result<Seq> {
    done.await.map_err(|_| writer_gone())?
}

fn writer_gone() -> Error {
    Error::internal("the log writer has ended")
}

/// Creates the error for an append after ownership was lost.
pub(in crate::session) fn fenced(id: &SessionId) -> Error {
    Error { message: format!("session {id} was taken over by another process"), ..lock::busy(id, None) }
}
