//! The functions of the store. Each database implements them.

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "postgres")]
use futures_util::FutureExt;
use serde_json::{Map, Value};

#[cfg(feature = "postgres")]
use super::postgres::PostgresStore;
use super::rows::{
    AnswerRow, Append, CommitOutcome, Cursor, EventRow, IdempotencyRecord, SessionFilter, SessionPage, SessionRow, StoreTotals,
    StoredEvent, TakeOutcome, WorkspaceRow, WorkspaceState,
};
use super::sqlite::SqliteStore;
use super::wakeups::Wakeups;
use crate::error::Result;
#[cfg(not(feature = "postgres"))]
use crate::error::{Error, Kind};
use crate::event::Event;
use crate::id::{MessageId, Seq, SessionId};
use crate::task;

/// The store of sessions, events, workspaces and idempotency keys. Clones share the database.
#[derive(Clone)]
pub(crate) enum Store {
    /// Reads of single rows run on the calling thread: they take microseconds.
    Sqlite(Arc<SqliteStore>),
    #[cfg(feature = "postgres")]
    Postgres(Arc<PostgresStore>),
}

/// Evaluates the first expression for an SQLite database, the second for a PostgreSQL database.
macro_rules! on_each {
    ($store:expr, $name:ident => $sqlite:expr, $postgres:expr) => {
        match $store {
            #[allow(unused_variables, reason = "not each function needs the database")]
            Store::Sqlite($name) => $sqlite,
            #[cfg(feature = "postgres")]
            #[allow(unused_variables, reason = "not each function needs the database")]
            Store::Postgres($name) => $postgres,
        }
    };
}

mod nodes;

/// Runs work on the SQLite database on a thread for blocking work. `what` names the work in the
/// error for a panic.
async fn blocking<T: Send + 'static>(
    store: &Arc<SqliteStore>,
    what: &str,
    work: impl FnOnce(&SqliteStore) -> Result<T> + Send + 'static,
) -> Result<T> {
    let store = store.clone();
    task::blocking(what, move || work(&store)).await?
}

impl Store {
    /// Opens the PostgreSQL database with this URL, or else the SQLite database in the directory
    /// `dir`, which is created if it is missing. Migrates the tables. An SQLite database that
    /// cannot be written is opened for reading ([`Store::is_read_only`]).
    pub(crate) async fn open(dir: &Path, url: Option<&str>) -> Result<Store> {
        if let Some(url) = url {
            return Store::connect(url).await;
        }
        let dir = dir.to_owned();
        let opened = task::blocking("opening the store", move || SqliteStore::open(&dir)).await??;
        Ok(Store::Sqlite(Arc::new(opened)))
    }

    /// Checks the URL of a PostgreSQL database without connecting to it.
    #[cfg_attr(not(feature = "postgres"), allow(unused_variables, reason = "no URL is valid without PostgreSQL"))]
    pub(crate) fn check(url: &str) -> Result<()> {
        #[cfg(feature = "postgres")]
        return PostgresStore::check(url);
        #[cfg(not(feature = "postgres"))]
        return Err(without_postgres());
    }

    #[cfg(feature = "postgres")]
    async fn connect(url: &str) -> Result<Store> {
        // Boxed, because the futures of its callers contain it.
        Ok(Store::Postgres(Arc::new(PostgresStore::open(url).boxed().await?)))
    }

    #[cfg(not(feature = "postgres"))]
    async fn connect(_: &str) -> Result<Store> {
        Err(without_postgres())
    }

    /// Returns the place of the database, without a password.
    pub(crate) fn place(&self) -> String {
        on_each!(self, store => store.path().display().to_string(), store.place().to_owned())
    }

    pub(crate) fn is_read_only(&self) -> bool {
        on_each!(self, store => store.is_read_only(), false)
    }

    /// Starts to wait for writes of other processes.
    pub(crate) async fn wakeups(&self) -> Result<Wakeups> {
        on_each!(
            self,
            store => Ok(Wakeups::Sqlite { watch: store.watch()?, seen: None }),
            Ok(Wakeups::Postgres(store.listen().await?))
        )
    }

    pub(crate) async fn session(&self, id: &SessionId) -> Result<Option<SessionRow>> {
        on_each!(self, store => store.session(id), store.session(id).await)
    }

    /// Returns up to `limit` ids of sessions that start with `prefix`, newest first.
    pub(crate) async fn session_ids(&self, prefix: &str, limit: usize) -> Result<Vec<SessionId>> {
        on_each!(self, store => store.session_ids(prefix, limit), store.session_ids(prefix, limit).await)
    }

    /// Lists up to `limit` sessions of `filter` that have events, after position `after`, most
    /// recently updated first.
    pub(crate) async fn sessions(&self, filter: SessionFilter<'_>, after: Option<(u64, i64)>, limit: usize) -> Result<SessionPage> {
        on_each!(self, store => store.sessions(filter, after, limit), store.sessions(filter, after, limit).await)
    }

    /// Lists up to `limit` sessions with an open permission request, most recently updated first.
    /// The owner of a session may have died since.
    pub(crate) async fn waiting_sessions(&self, limit: usize) -> Result<Vec<SessionRow>> {
        on_each!(self, store => store.waiting_sessions(limit), store.waiting_sessions(limit).await)
    }

    /// Lists up to `limit` child sessions of a session, oldest first.
    pub(crate) async fn children(&self, parent: &SessionId, limit: usize) -> Result<Vec<SessionRow>> {
        on_each!(self, store => store.children(parent, limit), store.children(parent, limit).await)
    }

    /// Lists up to `limit` sessions with a directory that is `directory` or below it, most recently
    /// updated first.
    pub(crate) async fn sessions_in(&self, directory: &Path, limit: usize) -> Result<Vec<SessionRow>> {
        on_each!(self, store => store.sessions_in(directory, limit), store.sessions_in(directory, limit).await)
    }

    /// Creates a session owned by this process, in generation 1.
    pub(crate) async fn create_session(&self, id: &SessionId, cwd: &Path, at_ms: u64) -> Result<SessionRow> {
        on_each!(self, store => store.create_session(id, cwd, at_ms), store.create_session(id, cwd, at_ms).await)
    }

    /// Creates a session with a copy of the events of session `parent` up to seq `until`. `created`
    /// replaces the first event; deltas and messages that are still queued are omitted. The events
    /// are copied page by page, so that other processes can write in between; the new session is
    /// listed only once the copy is complete.
    pub(crate) async fn fork_session(&self, parent: i64, created: Event, until: Seq) -> Result<SessionRow> {
        on_each!(
            self,
            store => blocking(store, "forking a session", move |store| store.fork_session(parent, &created, until)).await,
            store.fork_session(parent, &created, until).await
        )
    }

    /// Makes this process the session's owner in a new generation. From then on, appends of earlier
    /// generations are refused. If this process takes the session only to end the turn of a dead
    /// node (`ends_turn`), rows of the session have no owner. In a store without nodes, the caller
    /// must hold the lock of the session, which has the same effect.
    #[cfg_attr(not(feature = "postgres"), allow(unused_variables, reason = "an SQLite store has no nodes"))]
    pub(crate) async fn take_session(&self, key: i64, ends_turn: bool) -> Result<TakeOutcome> {
        on_each!(
            self,
            store => blocking(store, "taking a session", move |store| store.take_session(key)).await,
            store.take_session(key, ends_turn).await
        )
    }

    /// Archives a session or returns it to the list. Returns false if the session does not exist.
    pub(crate) async fn set_archived(&self, id: &SessionId, archived: bool) -> Result<bool> {
        on_each!(self, store => store.set_archived(id, archived), store.set_archived(id, archived).await)
    }

    /// Removes a session and all of its events except the last, which reports the deletion to
    /// clients that follow all sessions. [`Store::forget_deleted`] removes that event later, with
    /// the row, which keeps the id, the directory and the times until then.
    pub(crate) async fn delete_session(&self, key: i64) -> Result<()> {
        on_each!(self, store => blocking(store, "deleting a session", move |store| store.delete_session(key)).await, store.delete_session(key).await)
    }

    /// Removes the remains of sessions that were deleted before `before_ms`, and sessions without
    /// events that were last updated before that time.
    pub(crate) async fn forget_deleted(&self, before_ms: u64) -> Result<()> {
        on_each!(
            self,
            store => blocking(store, "removing deleted sessions", move |store| store.forget_deleted(before_ms)).await,
            store.forget_deleted(before_ms).await
        )
    }

    /// Commits all appends in one transaction; if `durable` is true, the transaction is synced to
    /// disk before this function returns. Returns the outcome of each append. Can block the calling
    /// thread: only the log writer, which has a thread of its own, calls it.
    pub(crate) async fn commit(&self, appends: &[Append], durable: bool) -> Result<Vec<CommitOutcome>> {
        on_each!(self, store => store.commit(appends, durable), store.commit(appends).await)
    }

    /// Returns a page of events with a seq above `after`, in order. The page has at most `limit`
    /// events, and fewer if they are large. An empty page means that there are no more events. If
    /// `deltas` is false, the page omits deltas ([`crate::event::Body::is_delta`]).
    pub(crate) async fn events(&self, id: &SessionId, key: i64, after: Seq, limit: usize, deltas: bool) -> Result<Vec<Event>> {
        on_each!(
            self,
            store => {
                let id = id.clone();
                blocking(store, "reading events", move |store| store.events(&id, key, after, limit, deltas)).await
            },
            store.events(id, key, after, limit, deltas).await
        )
    }

    /// Returns a page of the `message.completed` events of a session with a seq above `after`, in
    /// order, whose JSON matches each pattern of LIKE without regard to the case of ASCII letters.
    /// The limits of [`Store::events`] apply.
    pub(crate) async fn messages_like(
        &self,
        id: &SessionId,
        key: i64,
        patterns: &[String],
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Event>> {
        on_each!(
            self,
            store => {
                let (id, patterns) = (id.clone(), patterns.to_vec());
                blocking(store, "searching messages", move |store| store.messages_like(&id, key, &patterns, after, limit)).await
            },
            store.messages_like(id, key, patterns, after, limit).await
        )
    }

    /// Returns a page of the events of all sessions after the cursor `after`, in commit order. The
    /// limits of [`Store::events`] apply.
    pub(crate) async fn events_of_all(&self, after: Cursor, limit: usize) -> Result<Vec<StoredEvent>> {
        on_each!(self, store => blocking(store, "reading events", move |store| store.events_of_all(after, limit)).await, store.events_of_all(after, limit).await)
    }

    /// Returns the cursor of the last event ever written.
    pub(crate) async fn last_event(&self) -> Result<Cursor> {
        on_each!(self, store => store.last_event(), store.last_event().await)
    }

    /// Returns the seq of the event after `after` that a call of another process appended.
    pub(crate) async fn event_of_call(&self, key: i64, after: Seq, call: &MessageId) -> Result<Option<Seq>> {
        on_each!(self, store => store.event_of_call(key, after, call), store.event_of_call(key, after, call).await)
    }

    /// Deletes a session's deltas ([`crate::event::Body::is_delta`]) before seq `before`, and
    /// returns their number. The events that repeat their content, such as `message.completed`, are
    /// kept.
    pub(crate) async fn prune_deltas(&self, key: i64, before: Seq) -> Result<usize> {
        on_each!(self, store => blocking(store, "removing deltas", move |store| store.prune_deltas(key, before)).await, store.prune_deltas(key, before).await)
    }

    /// Claims an idempotency key. Returns `None` if the key was unused, otherwise the key's record.
    /// Also deletes expired keys, and the oldest keys in excess of a limit.
    pub(crate) async fn claim_key(
        &self,
        principal: &str,
        key: &str,
        asked: &[u8],
        at_ms: u64,
    ) -> Result<Option<IdempotencyRecord>> {
        on_each!(self, store => store.claim_key(principal, key, asked, at_ms), store.claim_key(principal, key, asked, at_ms).await)
    }

    /// Stores the response for a claimed key. Without a response, deletes the key, so that it can
    /// be claimed again.
    pub(crate) async fn finish_key(&self, principal: &str, key: &str, response: Option<&str>) -> Result<()> {
        on_each!(self, store => store.finish_key(principal, key, response), store.finish_key(principal, key, response).await)
    }

    /// Adds a workspace without metadata. Returns false if its id exists.
    pub(crate) async fn insert_workspace(&self, row: &WorkspaceRow) -> Result<bool> {
        on_each!(self, store => store.insert_workspace(row), store.insert_workspace(row).await)
    }

    /// Lists up to `limit` workspaces, the newest first.
    pub(crate) async fn workspaces(&self, limit: usize) -> Result<Vec<WorkspaceRow>> {
        on_each!(self, store => store.workspaces(limit), store.workspaces(limit).await)
    }

    pub(crate) async fn workspace(&self, id: &str) -> Result<Option<WorkspaceRow>> {
        on_each!(self, store => store.workspace(id), store.workspace(id).await)
    }

    pub(crate) async fn set_workspace_state(&self, id: &str, state: WorkspaceState) -> Result<()> {
        on_each!(self, store => store.set_workspace_state(id, state), store.set_workspace_state(id, state).await)
    }

    /// Merges `change` into the metadata of a workspace (RFC 7396: null removes a value). Returns
    /// all metadata. `None` if it would be larger than `limit` bytes, or if there is no workspace
    /// `id`.
    pub(crate) async fn change_workspace_metadata(
        &self,
        id: &str,
        change: &Map<String, Value>,
        limit: usize,
    ) -> Result<Option<Map<String, Value>>> {
        on_each!(self, store => store.change_workspace_metadata(id, change, limit), store.change_workspace_metadata(id, change, limit).await)
    }

    pub(crate) async fn remove_workspace(&self, id: &str) -> Result<()> {
        on_each!(self, store => store.remove_workspace(id), store.remove_workspace(id).await)
    }

    /// Counts the rows.
    pub(super) async fn totals(&self) -> Result<StoreTotals> {
        on_each!(self, store => blocking(store, "counting rows", |store| store.totals()).await, store.totals().await)
    }

    /// Lists up to `limit` sessions with a key above `after`, in the order of the keys, also those
    /// without events. The rows have no owners.
    pub(crate) async fn session_rows(&self, after: i64, limit: usize) -> Result<Vec<SessionRow>> {
        on_each!(self, store => store.session_rows(after, limit), store.session_rows(after, limit).await)
    }

    /// Returns a page of the events of a session, as [`Store::events`] does with deltas.
    pub(super) async fn event_rows(&self, key: i64, after: Seq, limit: usize) -> Result<Vec<EventRow>> {
        on_each!(
            self,
            store => blocking(store, "reading events", move |store| store.event_rows(key, after, limit)).await,
            store.event_rows(key, after, limit).await
        )
    }

    /// Lists up to `limit` stored responses after a principal and a key, in the order of both.
    pub(super) async fn answer_rows(&self, after: (&str, &str), limit: usize) -> Result<Vec<AnswerRow>> {
        on_each!(self, store => store.answer_rows(after, limit), store.answer_rows(after, limit).await)
    }

    /// Inserts the row of a session, or replaces the one with its key.
    pub(super) async fn put_session(&self, row: &SessionRow) -> Result<()> {
        on_each!(self, store => store.put_session(row), store.put_session(row).await)
    }

    /// Inserts events of a session in one transaction, with the numbers of their rows. Does not
    /// change the row of the session.
    pub(super) async fn put_events(&self, key: i64, events: Vec<EventRow>) -> Result<()> {
        on_each!(
            self,
            store => blocking(store, "writing events", move |store| store.put_events(key, &events)).await,
            store.put_events(key, &events).await
        )
    }

    /// Inserts stored responses, and replaces those that have the same keys.
    pub(super) async fn put_answers(&self, rows: &[AnswerRow]) -> Result<()> {
        on_each!(self, store => store.put_answers(rows), store.put_answers(rows).await)
    }

    /// Reserves the numbers of rows up to these: later sessions and events receive higher ones.
    pub(super) async fn reserve_numbers(&self, key: i64, event: Cursor) -> Result<()> {
        on_each!(self, store => store.reserve_numbers(key, event), store.reserve_numbers(key, event).await)
    }

    /// Syncs all writes to the disk.
    pub(super) async fn sync(&self) -> Result<()> {
        on_each!(self, store => blocking(store, "syncing the store", |store| store.sync()).await, Ok(()))
    }
}

#[cfg(not(feature = "postgres"))]
fn without_postgres() -> Error {
    Error::new(Kind::Unsupported, "this nuncio was built without PostgreSQL").hint("build it with the feature postgres")
}
