//! Lets HTTP clients answer the permission requests of the turns that they start.

use std::sync::Arc;

use super::state::AppState;
use crate::api::Client;

/// Returns a copy of the client that counts as able to answer permission requests in each session
/// to which it sends a prompt, until the turn ends. The client needs no open event stream for that.
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
