//! Forking: a new session that starts with the events of another one.

use crate::error::{Error, Kind, Result};
use crate::event::{Body, Event, SessionChange};
use crate::id::SessionId;
use crate::session::clock::now_ms;
use crate::session::events::signer::dropped_notice;
use crate::session::open::owned_session::OwnedSession;
use crate::session::owner::claims::ClaimPurpose;
use crate::session::sessions::{Lineage, Sessions};
use crate::session::turn::agent::SessionSetup;

impl Sessions {
    /// Copies the events of `parent`, up to the end of its last finished turn, into a new session
    /// and applies `change` to the new session. Queued messages are not copied.
    pub(crate) async fn fork(&self, parent: &SessionId, change: SessionChange) -> Result<OwnedSession> {
        let (id, parent) = (SessionId::new(), self.open_read_only(parent).await?);
        let (until, setup, granted) = parent.log.state_at_head(|state, head| {
            let running = state.turn.as_ref().and_then(|turn| state.turns.get(turn));
            let cwd = change.cwd.as_ref().unwrap_or(&state.cwd).clone();
            (
                running.map_or(head, |turn| turn.first_seq - 1),
                SessionSetup { id: id.clone(), cwd, directories: Vec::new(), parent: None, agent: state.settings.agent.clone() },
                state.granted_to_fork(),
            )
        });
        if let Some(agent) = &setup.agent {
            let message =
                format!("session {} of the agent {agent} cannot be forked: its conversation is in the agent", parent.log.id);
            return Err(Error::new(Kind::Unsupported, message));
        }
        self.agents.check(&setup, &[])?;
        self.ensure_capacity().await?;
        let claim = self.claims.prepare(&id, ClaimPurpose::Own).await?;
        let (parent, dropped) = (&parent.log, parent.log.dropped().unwrap_or_default());
        let first = self.store.events(&parent.id, parent.key, 0, 1, false).await?.pop();
        let created = first.filter(|first| matches!(first.body, Body::SessionCreated { .. }));
        let created = created
            .ok_or_else(|| Error::internal(format!("the log of session {} does not start with session.created", parent.id)))?;
        let mut created = Event { session_id: id, at_ms: now_ms(), signature: None, ..created };
        if let Body::SessionCreated { parent, .. } = &mut created.body {
            // A fork of a subagent's session is an ordinary session.
            *parent = None;
        }
        let row = self.store.fork_session(parent.key, created, until).await?;
        let log = self.log.session(&row).await?;
        if let Err(error) = log.shared.files.fork_requests(&parent.id, &log.id).await {
            tracing::warn!(session = %log.id, %error, "copying the model requests failed");
        }
        if let Some(notice) = dropped_notice(&dropped) {
            log.emit(None, notice).await;
        }
        // The signatures of the copied events are those of the parent.
        log.commit(None, granted).await?;
        log.commit(None, Body::SessionUpdated { change }).await?;
        self.insert_owned(log, claim, Lineage::default())
    }
}
