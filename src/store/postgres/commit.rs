//! Commits of events: one statement for all sessions of a batch.
//!
//! The advisory lock 1853187439 orders the events: each statement that inserts events takes it
//! before the ids are assigned, and holds it until the events are visible.

use std::sync::atomic::Ordering;

use serde_json::json;
use tokio_postgres::Row;

use super::PostgresStore;
use super::copy::{numbers, texts};
use super::events::text;
use super::failure::Columns;
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event};
use crate::id::{MessageId, TurnId};
use crate::store::rows::{Append, CommitOutcome, EventRow, indexed_message};

/// Changes the rows of the sessions whose owner, generation and last event are the expected ones,
/// and inserts their events. Returns the places of these appends in the batch. The rows are found
/// by their keys: `IS NOT DISTINCT FROM` leaves out the index of owners, which finds all open
/// sessions.
const COMMIT: &str = "WITH ordered AS MATERIALIZED (SELECT pg_advisory_xact_lock(1853187439)), appends AS ( \
       SELECT a.* FROM ordered, unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], \
         $7::text[], $8::bigint[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[]) WITH ORDINALITY \
       AS a(key, generation, first, head, at_ms, active, turn, waiting, summary, parent, title, cwd, directories, place) \
     ), written AS ( \
       UPDATE sessions s SET head = a.head, updated_ms = coalesce(a.at_ms, s.updated_ms), \
         updated_s = coalesce(a.at_ms / 1000, s.updated_s), \
         active_generation = CASE WHEN a.active THEN a.generation ELSE s.active_generation END, \
         turn = CASE WHEN a.active THEN a.turn ELSE s.turn END, waiting = CASE WHEN a.active THEN a.waiting ELSE s.waiting END, \
         summary = CASE WHEN a.active THEN a.summary ELSE s.summary END, parent = coalesce(a.parent, s.parent), \
         title = coalesce(a.title, s.title), cwd = coalesce(a.cwd, s.cwd), directories = coalesce(a.directories, s.directories) \
       FROM appends a WHERE s.key = a.key AND s.generation = a.generation AND s.owner IS NOT DISTINCT FROM $23 AND s.head = a.first - 1 \
       RETURNING a.place, s.key \
     ), inserted AS ( \
       INSERT INTO events (session, seq, turn, at_ms, delta, kind, message, call, body) \
       SELECT w.key, e.seq, e.turn, e.at_ms, e.delta, e.kind, e.message, e.call, e.body FROM written w JOIN \
         unnest($14::bigint[], $15::bigint[], $16::text[], $17::bigint[], $18::boolean[], $19::text[], $20::text[], $21::text[], \
           $22::text[]) WITH ORDINALITY AS e(place, seq, turn, at_ms, delta, kind, message, call, body, number) \
         ON e.place = w.place ORDER BY e.number \
     ) SELECT place FROM written";

/// The columns of the appends of a batch, one array for each parameter of [`COMMIT`].
#[derive(Default)]
struct AppendArrays {
    key: Vec<i64>,
    generation: Vec<i64>,
    first: Vec<i64>,
    head: Vec<i64>,
    at_ms: Vec<Option<i64>>,
    active: Vec<bool>,
    turn: Vec<Option<String>>,
    waiting: Vec<i64>,
    summary: Vec<Option<String>>,
    parent: Vec<Option<String>>,
    title: Vec<Option<String>>,
    cwd: Vec<Option<String>>,
    directories: Vec<Option<String>>,
}

impl AppendArrays {
    fn add(&mut self, append: &Append) {
        let ends = append.events.first().zip(append.events.last());
        let (first, head) = ends.map_or((0, 0), |(first, last)| (first.seq as i64, last.seq as i64));
        self.key.push(append.key);
        self.generation.push(append.generation);
        self.first.push(first);
        self.head.push(head);
        self.at_ms.push(append.listed_ms.map(|at_ms| at_ms as i64));
        self.active.push(append.activity.is_some());
        let activity = append.activity.clone().unwrap_or_default();
        self.turn.push(activity.turn.map(|turn| turn.to_string()));
        self.waiting.push(activity.waiting as i64);
        self.summary.push(activity.summary);
        let (mut parent, mut title, mut cwd, mut directories) = (None, None, None, None);
        for event in &append.events {
            if let Body::SessionCreated { parent: Some(created_by), .. } = &event.body {
                parent = Some(created_by.call.session_id.to_string());
            }
            if let Some(change) = event.body.session_change() {
                title = change.title.as_ref().map(|title| json!(title).to_string()).or(title);
                cwd = change.cwd.as_ref().map(|cwd| text(&cwd.to_string_lossy()).into_owned()).or(cwd);
                directories = change.additional_directories.as_ref().map(|list| json!(list).to_string()).or(directories);
            }
        }
        self.parent.push(parent);
        self.title.push(title);
        self.cwd.push(cwd);
        self.directories.push(directories);
    }
}

/// Returns the row of an event. `call` is the call of another process that appended it.
fn event_row(event: &Event, call: Option<&str>) -> Result<EventRow> {
    Ok(EventRow {
        // The database assigns it.
        id: 0,
        seq: event.seq,
        turn: event.turn_id.as_ref().map(TurnId::to_string),
        at_ms: event.at_ms as i64,
        delta: event.body.is_delta(),
        kind: Some(event.body.name().into()),
        message: indexed_message(&event.body).map(MessageId::to_string),
        call: call.map(String::from),
        body: event.stored().map_err(|error| Error::internal(format!("writing events: {error}")))?,
    })
}

impl PostgresStore {
    /// Commits all appends in one statement.
    ///
    /// If the connection is lost, the outcome is unknown. The same appends can then be committed
    /// again: those that were written do not continue the stored events any more, and are found by
    /// their last event.
    pub(in crate::store) async fn commit(&self, appends: &[Append]) -> Result<Vec<CommitOutcome>> {
        let (mut sessions, mut places, mut events) = (AppendArrays::default(), Vec::<i64>::new(), Vec::new());
        for (place, append) in (1..).zip(appends) {
            sessions.add(append);
            for event in &append.events {
                let call = append.calls.iter().find(|(seq, _)| *seq == event.seq).map(|(_, call)| call.as_str());
                places.push(place);
                events.push(event_row(event, call)?);
            }
        }
        let (s, e) = (&sessions, &events[..]);
        let written = self
            .writer
            .rows(
                "writing events to",
                COMMIT,
                &[
                    &s.key,
                    &s.generation,
                    &s.first,
                    &s.head,
                    &s.at_ms,
                    &s.active,
                    &s.turn,
                    &s.waiting,
                    &s.summary,
                    &s.parent,
                    &s.title,
                    &s.cwd,
                    &s.directories,
                    &places,
                    &numbers(e, |event| event.seq as i64),
                    &texts(e, |event| &event.turn),
                    &numbers(e, |event| event.at_ms),
                    &e.iter().map(|event| event.delta).collect::<Vec<_>>(),
                    &texts(e, |event| &event.kind),
                    &texts(e, |event| &event.message),
                    &texts(e, |event| &event.call),
                    &e.iter().map(|event| event.body.as_str()).collect::<Vec<_>>(),
                    &self.incarnation(),
                ],
            )
            .await;
        let written = written.inspect_err(|error| {
            if error.kind == Kind::StoreUnavailable {
                self.outcome_unknown.store(true, Ordering::Release);
            }
        })?;
        let mut outcomes = vec![None; appends.len()];
        for row in &written {
            outcomes[row.column::<i64>(0)? as usize - 1] = Some(CommitOutcome::Written);
        }
        if written.len() < appends.len() {
            self.classify(appends, &mut outcomes).await?;
        }
        self.outcome_unknown.store(false, Ordering::Release);
        self.notifier.changed(&sessions.key);
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or(CommitOutcome::Fenced)).collect())
    }

    /// Finds out why appends were not written.
    async fn classify(&self, appends: &[Append], outcomes: &mut [Option<CommitOutcome>]) -> Result<()> {
        let keys: Vec<i64> = appends.iter().map(|append| append.key).collect();
        let sql = "SELECT key, generation, head FROM sessions WHERE key = ANY($1) AND owner = $2";
        let stored = self.writer.rows("reading sessions of", sql, &[&keys, &self.incarnation()]).await?;
        let row = |row: &Row| Ok((row.column::<i64>(0)?, row.column::<i64>(1)?, row.column::<i64>(2)?));
        let stored = stored.iter().map(row).collect::<Result<Vec<_>>>()?;
        let repeated = self.outcome_unknown.load(Ordering::Acquire);
        for (append, outcome) in appends.iter().zip(outcomes).filter(|(_, outcome)| outcome.is_none()) {
            let Some(last) = append.events.last() else {
                *outcome = Some(CommitOutcome::Written);
                continue;
            };
            let owned = stored.iter().find(|(key, generation, _)| (*key, *generation) == (append.key, append.generation));
            *outcome = Some(match owned.map(|(_, _, head)| *head as u64) {
                None => CommitOutcome::Fenced,
                Some(head) if repeated && head == last.seq => CommitOutcome::Written,
                Some(head) => CommitOutcome::Behind(head),
            });
        }
        Ok(())
    }
}
