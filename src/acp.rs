//! The Agent Client Protocol: one JSON-RPC message per line. Requests become calls of the method
//! table; events become `session/update` notifications.

mod barrier;
mod client_forms;
mod client_fs;
mod client_requests;
mod client_terminal;
mod feed;
mod handler;
mod methods;
mod permission;
mod pipes;
mod presence;
mod project;
mod subagents;
mod subscriptions;
mod terminal_output;
mod view;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

pub(crate) use methods::{run, schemas};
pub(crate) use pipes::standard;

use crate::api::{App, Client, FollowChange};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::rpc::{Dialect, Framing, OverflowPolicy, ReadError};
use barrier::{AcpConnection, Barrier};
use feed::SessionFeed;
use handler::MethodHandler;
use presence::Presence;
use subscriptions::SubscriptionList;

/// The JSON-RPC dialect of ACP over a pair of pipes.
const ACP: Dialect = Dialect {
    framing: Framing::Lines,
    message_bytes_max: limits::FRAME_BYTES_MAX,
    messages_queued_max: limits::REPLIES_QUEUED_MAX,
    when_full: OverflowPolicy::PauseReading(limits::STALLED),
    cancel_method: "$/cancel_request",
    cancel_id: "requestId",
    rejects_invalid: true,
};

/// Serves one client until its input ends or `stop` is cancelled. Then waits for `others` (the
/// other transports), cancels the running turns, writes the remaining output within
/// [`limits::DRAIN`], and waits until all processes have ended. If the client asked for it, its
/// turns go on without it and end first; `gone` is called before that.
pub(crate) async fn serve(
    app: Arc<App>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
    stop: CancellationToken,
    others: impl Future<Output = ()>,
    gone: impl FnOnce(),
) -> Result<()> {
    let (connection, reader, mut writer) = crate::rpc::connection(ACP);
    let client = Arc::new(Client::new("client", app.cwd.clone()));
    let actor = client.actor();
    let presence = Presence::new(client.clone(), connection.clone());
    follow_prompted_sessions(&client, connection, presence.clone());
    let subscriptions = SubscriptionList::default();
    let feed = SessionFeed::new(app.clone(), client.clone(), presence.clone(), subscriptions.clone());
    let mut writing = crate::task::spawn(async move { writer.run(output, feed).await });
    let handler = MethodHandler { app: app.clone(), client: client.clone(), subscriptions };
    let read = tokio::select! {
        read = reader.run(input, &handler) => read.map_err(describe),
        () = stop.cancelled() => Ok(()),
        // Writing failed: the client has closed the connection.
        _ = &mut writing => Ok(()),
    };
    if client.finishes_turns() && !stop.is_cancelled() {
        writing.abort();
        gone();
        app.finish_turns(&stop).await;
    }
    // Remove the prompts that wait, and deny the permission requests that no other client can
    // answer, before the turns are cancelled.
    for session in app.sessions_now().map(|sessions| sessions.all_open()).unwrap_or_default() {
        session.remove_prompts_of(&actor);
    }
    presence.end();
    reader.cancel_handlers();
    others.await;
    app.end_turns().await;
    let written = tokio::time::timeout(limits::DRAIN, async {
        reader.finish().await;
        if !writing.is_finished() {
            let _ = (&mut writing).await;
        }
    });
    // Wait for the processes even if that takes longer than the output: the client expects that
    // none is left when this one has exited.
    let (written, ()) = tokio::join!(written, app.end_processes());
    if written.is_err() {
        tracing::warn!("pending output was not written to the client in time");
        writing.abort();
    }
    read
}

fn describe(error: ReadError) -> Error {
    match error {
        ReadError::Input(error) => Error::io("reading from the client", error),
        ReadError::PeerNotReading => Error::new(Kind::Timeout, "the client is not reading its responses"),
    }
}

/// Registers a callback for prompts to sessions that the client has not opened: the client starts
/// to follow the session and to receive its permission requests.
fn follow_prompted_sessions(client: &Client, connection: AcpConnection, presence: Presence) {
    client.on_show(Box::new(move |session, after| {
        if presence.attend(session) {
            let follow = Some(FollowChange::AfterIfNew(session.log.id.clone(), after));
            // Sending fails if the client has disconnected.
            let _ = connection.send_barrier(Barrier { follow, ..Barrier::default() });
        }
    }));
}
