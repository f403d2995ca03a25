//! The task that passes the permission requests of a session to the callback.

use tokio::task::JoinSet;

use super::question::{Decide, Decision, Question};
use crate::api::{AnswerPermission, AnswerPermissionParams, ListPermissions, ListPermissionsParams};
use crate::client::{SessionClient, SessionEvents};
use crate::content::PermissionOptionKind;
use crate::error::Result;
use crate::event::{Body, PermissionRequest};
use crate::id::{PermissionId, SessionId};

/// Why a call is denied whose callback panicked.
const PANICKED: &str = "the program that decides about permissions failed";

/// Answers the requests in `events` until the session is deleted.
pub(super) async fn answer_all(client: SessionClient, session: SessionId, mut events: SessionEvents, decide: Decide) {
    let mut asked = JoinSet::new();
    loop {
        let events = tokio::select! {
            events = events.next() => events,
            Some(_) = asked.join_next() => continue,
        };
        let Ok(events) = events else { return };
        for event in events {
            if let Body::PermissionRequested(PermissionRequest { permission_id, .. }) = &event.body {
                let (client, session, id) = (client.clone(), session.clone(), permission_id.clone());
                let answering = answer(client, session, id, decide.clone());
                asked.spawn(async {
                    if let Err(error) = answering.await {
                        // A request that was cancelled or answered elsewhere is no longer open.
                        tracing::debug!(%error, "a permission request was not answered");
                    }
                });
            }
        }
    }
}

/// Answers one request, unless it was answered elsewhere.
async fn answer(client: SessionClient, session: SessionId, id: PermissionId, decide: Decide) -> Result<()> {
    let open = client.call::<ListPermissions>(ListPermissionsParams { session_id: Some(session) }).await?;
    let Some(view) = open.permissions.into_iter().find(|view| view.permission_id == id) else { return Ok(()) };
    let decided = tokio_util::task::AbortOnDropHandle::new(crate::task::spawn(async move { decide(Question::new(view)).await }));
    let (kind, reason) = match decided.await.unwrap_or(Decision::Deny(PANICKED.into())) {
        Decision::Once => (PermissionOptionKind::AllowOnce, None),
        Decision::Always => (PermissionOptionKind::AllowAlways, None),
        Decision::Deny(reason) => (PermissionOptionKind::RejectOnce, Some(reason)),
    };
    let answer = |kind| AnswerPermissionParams::new(id.clone(), None, Some(kind), reason.clone());
    match client.call::<AnswerPermission>(answer(kind)).await {
        // Some requests offer no permission for later calls.
        Err(_) if kind == PermissionOptionKind::AllowAlways => {
            client.call::<AnswerPermission>(answer(PermissionOptionKind::AllowOnce)).await.map(drop)
        }
        answered => answered.map(drop),
    }
}
