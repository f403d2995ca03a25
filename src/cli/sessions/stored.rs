//! Reads the stored events of a session without following the session: following would open it,
//! which ends a turn whose process died.

use crate::error::Result;
use crate::event::Event;
use crate::id::SessionId;
use crate::session::Sessions;

/// Passes every stored event to `with`, in order, until it fails. Does not take ownership of the
/// session, so a session of another process can be read.
pub(crate) async fn each_event(sessions: &Sessions, id: &SessionId, mut with: impl FnMut(&Event) -> Result<()>) -> Result<()> {
    let mut after = 0;
    loop {
        let events = sessions.events(id, after).await?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.seq;
        for event in &events {
            with(event)?;
        }
    }
}
