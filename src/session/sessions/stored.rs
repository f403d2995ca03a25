//! Sessions in the store, whichever process owns them.

use std::path::PathBuf;
use std::sync::Arc;

use super::Sessions;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::{Seq, SessionId};
use crate::limits;
use crate::session::files::check_name;
use crate::store::{SessionFilter, SessionPage, SessionRow};

impl Sessions {
    pub(crate) async fn cwd(&self, id: &SessionId) -> Result<PathBuf> {
        match self.opened(id) {
            Some(session) => Ok(session.log.state(|state| state.cwd.clone())),
            None => self.row(id).await.map(|row| row.cwd),
        }
    }

    /// Returns the stored row of a session. Fails with `not_found` if there is no row or the
    /// session has no events.
    pub(crate) async fn row(&self, id: &SessionId) -> Result<SessionRow> {
        // The id becomes the name of files.
        let row = self.store.session(id).await?.filter(|row| row.head > 0 && check_name(id.as_str()).is_ok());
        row.ok_or_else(|| Error::not_found(format!("session {id} not found")))
    }

    /// Returns a page of stored events after `after`, regardless of which process owns the session.
    pub(crate) async fn events(&self, id: &SessionId, after: Seq) -> Result<Vec<Event>> {
        let row = self.row(id).await?;
        self.store.events(id, row.key, after, limits::PAGE_EVENTS, true).await
    }

    /// Returns a page of stored sessions after `after`, as [`Store::sessions`] does.
    pub(crate) async fn list(&self, filter: SessionFilter<'_>, after: Option<(u64, i64)>) -> Result<SessionPage> {
        self.store.sessions(filter, after, limits::SESSIONS_PAGE).await
    }

    /// Closes a session if it is open, and archives it.
    pub(crate) async fn archive(self: &Arc<Self>, id: &SessionId) -> Result<()> {
        self.close(id).await?;
        self.set_archived(id, true).await
    }

    /// Archives a session or returns it to the list. The log and the update time do not change.
    pub(crate) async fn set_archived(&self, id: &SessionId, archived: bool) -> Result<()> {
        match self.store.set_archived(id, archived).await? {
            true => Ok(()),
            false => Err(Error::not_found(format!("session {id} not found"))),
        }
    }
}
