//! Clients of HTTP that answer the permission requests of the turns that they start.

use std::sync::Arc;

use super::state::AppState;
use crate::api::Client;

/// A copy of the client that counts as attached to each session that it prompts, until the turn
/// ends. It can answer the turn's permission questions without an open stream.
pub(crate) fn attach_responder(state: &AppState, client: &Client) -> Arc<Client> {
    let client = Arc::new(client.for_call());
    let running = state.running.clone();
    client.on_show(Box::new(move |session, _| {
        let (responder, session) = (session.broker.register_responder(), session.clone());
        running.spawn(async move {
            while let Some(mut turn) = session.turn() {
                turn.end().await;
            }
            drop(responder);
        });
    }));
    client
}
