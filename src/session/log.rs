//! The log: everything that happens in a session is appended here, and everything that is shown is read from here.
//! An event is numbered by the writer when it is committed, and nobody sees it before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};

use super::counts::Counts;
use super::state::SessionState;
use super::writer::{self, Pending};
use crate::config::Durability;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event};
use crate::id::{Seq, SessionId, TurnId};
use crate::limits;
use crate::store::{SessionRow, Store};

/// The one writer of all sessions of this process, on a thread of its own. It ends when all its senders are gone.
#[derive(Clone)]
pub struct Log {
    store: Arc<Store>,
    pending: mpsc::Sender<Pending>,
    commits: watch::Sender<u64>,
    counts: Arc<Counts>,
}

impl Log {
    pub fn open(store: Arc<Store>, durability: Durability) -> Result<Log> {
        let (pending, queue) = mpsc::channel(limits::APPENDS_QUEUED_MAX);
        let connection = store.writer()?;
        let commits = watch::Sender::new(0);
        let counts = Arc::new(Counts::default());
        let (told, counted) = (commits.clone(), counts.clone());
        let run = move || writer::run(connection, queue, durability, told, &counted);
        std::thread::Builder::new().name("log".into()).spawn(run).map_err(|error| Error::io("starting the log's thread", error))?;
        Ok(Log { store, pending, commits, counts })
    }

    /// What this process wrote, counted.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Events that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.pending.max_capacity() - self.pending.capacity()
    }

    /// Counts commits of this process, and those of others once somebody saw them.
    pub(super) fn commits(&self) -> &watch::Sender<u64> {
        &self.commits
    }

    /// The log of one session, with the state that its events up to now make.
    pub fn session(&self, row: &SessionRow) -> Result<Arc<SessionLog>> {
        let log = SessionLog {
            id: row.id.clone(),
            key: row.key,
            generation: AtomicI64::new(row.generation),
            live: Mutex::default(),
            head: watch::Sender::new(0),
            pending: self.pending.clone(),
            store: self.store.clone(),
            catching_up: Mutex::default(),
            lost: watch::Sender::new(false),
        };
        if row.head > 0 {
            log.restore()?;
        }
        Ok(Arc::new(log))
    }
}

/// The log of one session.
pub struct SessionLog {
    pub id: SessionId,
    pub(super) key: i64,
    pub(super) generation: AtomicI64,
    live: Mutex<Live>,
    pub(super) head: watch::Sender<Seq>,
    pending: mpsc::Sender<Pending>,
    store: Arc<Store>,
    catching_up: Mutex<()>,
    /// Whether an append was lost.
    lost: watch::Sender<bool>,
}

/// What followers read without the disk, and what is true now. `failed`: an append was lost, so nothing more is taken.
#[derive(Default)]
struct Live {
    head: Seq,
    tail: VecDeque<(usize, Arc<Event>)>,
    tail_bytes: usize,
    state: SessionState,
    failed: Option<Error>,
}

impl SessionLog {
    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what is true now. Short: the writer waits for it.
    pub fn state<T>(&self, look: impl FnOnce(&SessionState) -> T) -> T {
        look(&self.live().state)
    }

    /// The same together with the seq of the last event it holds.
    pub fn state_at_head<T>(&self, look: impl FnOnce(&SessionState, Seq) -> T) -> T {
        let live = self.live();
        look(&live.state, live.head)
    }

    /// Seq of the last event that is committed.
    pub fn head(&self) -> Seq {
        self.live().head
    }

    /// Appends without waiting for the commit; waits only for room in the queue. A loss is told by the next [`SessionLog::commit`].
    pub async fn emit(self: &Arc<Self>, turn: Option<TurnId>, body: Body) {
        let pending = Pending { log: self.clone(), turn, durable: body.is_durable(), body, done: None };
        // The writer only ends when the process does.
        let _ = self.pending.send(pending).await;
    }

    /// Appends if there is room: for what may be left out.
    pub fn try_emit(self: &Arc<Self>, turn: Option<TurnId>, body: Body) {
        let _ = self.pending.try_send(Pending { log: self.clone(), turn, durable: body.is_durable(), body, done: None });
    }

    /// Appends and waits until it, and all that was emitted before it, is committed.
    pub async fn commit(self: &Arc<Self>, turn: Option<TurnId>, body: Body) -> Result<Seq> {
        let durable = body.is_durable();
        self.append(turn, body, durable).await?.await.map_err(|_| writer_gone())?
    }

    /// The same for what precedes an effect: it is on the disk when this returns.
    pub async fn commit_durably(self: &Arc<Self>, turn: Option<TurnId>, body: Body) -> Result<Seq> {
        self.append(turn, body, true).await?.await.map_err(|_| writer_gone())?
    }

    /// In the queue when this returns, committed when the receiver answers.
    async fn append(self: &Arc<Self>, turn: Option<TurnId>, body: Body, durable: bool) -> Result<oneshot::Receiver<Result<Seq>>> {
        self.append_holding(turn, body, durable, || ()).await
    }

    /// The same. What `hold` returns is held while it goes into the queue: nobody who waits for that sees one without the other.
    pub(super) async fn append_holding<T>(
        self: &Arc<Self>,
        turn: Option<TurnId>,
        body: Body,
        durable: bool,
        hold: impl FnOnce() -> T,
    ) -> Result<oneshot::Receiver<Result<Seq>>> {
        let (done, committed) = oneshot::channel();
        let pending = Pending { log: self.clone(), turn, body, durable, done: Some(done) };
        let room = self.pending.reserve().await.map_err(|_| writer_gone())?;
        let held = hold();
        room.send(pending);
        drop(held);
        Ok(committed)
    }

    /// In the queue when this returns, or there is no room. Outside of a turn.
    pub(super) fn try_append(self: &Arc<Self>, body: Body) -> Result<oneshot::Receiver<Result<Seq>>> {
        let (done, committed) = oneshot::channel();
        let pending = Pending { log: self.clone(), turn: None, durable: body.is_durable(), body, done: Some(done) };
        let sent = self.pending.try_send(pending);
        sent.map(|()| committed).map_err(|_| Error::new(Kind::Overloaded, "the log has no room for more now"))
    }

    /// Shows committed events: called by the writer, and by whoever reads what another process wrote.
    pub(super) fn publish(&self, events: Vec<Event>, counts: Option<&Counts>) {
        let Some(last) = events.last().map(|event| event.seq) else { return };
        let mut live = self.live();
        for event in events {
            counts.inspect(|counts| counts.on(&event, &live.state));
            live.state.on(&event);
            let bytes = approximate_bytes(&event.body);
            live.tail_bytes += bytes;
            live.tail.push_back((bytes, Arc::new(event)));
        }
        while live.tail.len() > limits::TAIL_EVENTS_MAX || live.tail_bytes > limits::TAIL_BYTES_MAX {
            let Some((bytes, _)) = live.tail.pop_front() else { break };
            live.tail_bytes -= bytes;
        }
        live.head = last;
        drop(live);
        self.head.send_replace(last);
    }

    pub(super) fn next_seq(&self) -> Seq {
        self.live().head + 1
    }

    pub(super) fn fail(&self, error: &Error) {
        self.live().failed.get_or_insert_with(|| error.clone());
        self.lost.send_replace(true);
    }

    /// Waits until an append is lost: nothing more is written until the session is owned again.
    pub(super) async fn lost(&self) {
        // Cannot fail: `self` holds the sender.
        let _ = self.lost.subscribe().wait_for(|lost| *lost).await;
    }

    pub(super) fn failed(&self) -> Option<Error> {
        self.live().failed.clone()
    }

    /// A new owner starts with a clean slate.
    pub(super) fn own(&self, generation: i64) {
        self.generation.store(generation, Ordering::Release);
        self.live().failed = None;
        self.lost.send_replace(false);
    }

    /// Reads what was committed by others since. Only for sessions that this process does not own.
    pub(super) fn catch_up(&self) -> Result<()> {
        let _one_at_a_time = self.catching_up.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let events = self.store.events(&self.id, self.key, self.head(), limits::BATCH_EVENTS_MAX, true)?;
            if events.is_empty() {
                return Ok(());
            }
            self.publish(events, None);
        }
    }

    /// Makes the state from the whole log, which stays on the disk: without the pieces of whole messages, but with those of a turn that
    /// is open, for they may be all there is.
    fn restore(&self) -> Result<()> {
        let mut state = SessionState::default();
        let (mut head, mut turn) = (0, Vec::new());
        self.each(0, false, |event| {
            if matches!(event.body, Body::TurnStarted { .. }) {
                turn.drain(..).for_each(|event| state.on(&event));
            }
            head = event.seq;
            let ends = event.body.ends_turn();
            turn.push(event);
            if ends {
                turn.drain(..).for_each(|event| state.on(&event));
            }
        })?;
        match turn.first() {
            Some(start) if matches!(start.body, Body::TurnStarted { .. }) => {
                state.on(start);
                head = start.seq;
                self.each(start.seq, true, |event| {
                    state.on(&event);
                    head = event.seq;
                })?;
            }
            _ => turn.iter().for_each(|event| state.on(event)),
        }
        let mut live = self.live();
        live.state = state;
        live.head = head;
        self.head.send_replace(head);
        Ok(())
    }

    /// All events on the disk after `after`, page by page.
    fn each(&self, mut after: Seq, deltas: bool, mut with: impl FnMut(Event)) -> Result<()> {
        loop {
            let events = self.store.events(&self.id, self.key, after, limits::BATCH_EVENTS_MAX, deltas)?;
            let Some(last) = events.last() else { return Ok(()) };
            after = last.seq;
            events.into_iter().for_each(&mut with);
        }
    }

    /// Events with a seq above `after`, from memory if they are there.
    pub(super) fn tail_after(&self, after: Seq, limit: usize) -> Option<Vec<Arc<Event>>> {
        let live = self.live();
        if after >= live.head {
            return Some(Vec::new());
        }
        let first = live.tail.front()?.1.seq;
        if after + 1 < first {
            return None;
        }
        let skip = live.tail.partition_point(|(_, event)| event.seq <= after);
        Some(live.tail.iter().skip(skip).take(limit).map(|(_, event)| event.clone()).collect())
    }

    /// A page of history. `deltas`: with the pieces of messages, or without.
    pub fn page(&self, after: Seq, limit: usize, deltas: bool) -> Result<Vec<Arc<Event>>> {
        if let Some(events) = self.tail_after(after, limit) {
            return Ok(events);
        }
        let events = self.store.events(&self.id, self.key, after, limit, deltas)?;
        let head = self.head();
        // What is in the file and not published yet is not shown yet.
        Ok(events.into_iter().filter(|event| event.seq <= head).map(Arc::new).collect())
    }

    pub fn prune(&self) -> Result<usize> {
        self.store.prune_deltas(self.key, self.head())
    }
}

/// Good enough for a bound: texts, and a flat sum for the rest.
fn approximate_bytes(body: &Body) -> usize {
    use crate::content::{Part, ToolContent};
    let part = |part: &Part| match part {
        Part::Text { text } | Part::Resource { text, .. } => text.len(),
        Part::Image { data, .. } => data.len(),
        Part::ResourceLink { .. } => 0,
    };
    let content = |content: &ToolContent| match content {
        ToolContent::Content { content } => part(content),
        ToolContent::Diff { old_text, new_text, .. } => old_text.as_ref().map_or(0, String::len) + new_text.len(),
        ToolContent::Terminal { output, .. } => output.len(),
    };
    200 + match body {
        Body::MessageDelta { text, .. } => text.len(),
        Body::MessageCompleted { parts, .. } | Body::MessageQueued { parts, .. } => parts.iter().map(part).sum(),
        Body::ToolUpdated { content: Some(list), .. } | Body::PermissionRequested { content: list, .. } => {
            list.iter().map(content).sum()
        }
        Body::ToolCompleted { output, content: list, .. } => {
            output.iter().map(part).sum::<usize>() + list.iter().map(content).sum::<usize>()
        }
        Body::ToolStarted { input, .. } => {
            input.as_object().map_or(0, |map| map.values().map(|value| value.as_str().map_or(20, str::len)).sum())
        }
        _ => 0,
    }
}

fn writer_gone() -> Error {
    Error::internal("the log's writer is gone")
}

/// An append by somebody who is not the owner any more.
pub(super) fn fenced(id: &SessionId) -> Error {
    Error::new(Kind::SessionBusy, format!("session {id} was taken by another process"))
}
