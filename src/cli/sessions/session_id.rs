//! Session ids on the command line: an id, or the start of one that no other id has.

use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::session::Sessions;

/// Number of ids that an error about an ambiguous id names.
const AMBIGUOUS_IDS_SHOWN: usize = 5;

const PREFIX: &str = "sess_";

/// Returns the id of the session whose id is `given` or starts with it, with or without `sess_`.
pub(crate) async fn resolve(sessions: &Sessions, given: &str) -> Result<SessionId> {
    let exact = SessionId::from(given);
    if given.is_empty() || sessions.row(&exact).await.is_ok() {
        return Ok(exact);
    }
    let full = if given.starts_with(PREFIX) { given.to_owned() } else { format!("{PREFIX}{given}") };
    let found = sessions.store().session_ids(&full, AMBIGUOUS_IDS_SHOWN + 1).await?;
    match found.as_slice() {
        [] => Err(unknown(given)),
        [id] => Ok(id.clone()),
        several => {
            let names: Vec<&str> = several.iter().take(AMBIGUOUS_IDS_SHOWN).map(SessionId::as_str).collect();
            let more = if several.len() > names.len() { ", …" } else { "" };
            Err(Error::invalid_params(format!("the ids of several sessions start with {given}")).hint(names.join(", ") + more))
        }
    }
}

pub(super) fn unknown(given: &str) -> Error {
    Error::not_found(format!("session {given} not found")).hint("list the sessions: nuncio sessions list --all")
}
