//! `nuncio mcp serve`: an MCP server on standard input and output. Its tool `delegate` lets another
//! agent use nuncio as a subagent.

mod end_of_input;

use std::sync::Arc;

use rmcp::service::serve_server_with_ct;
use tokio_util::sync::CancellationToken;

use crate::acp::standard;
use crate::app::{self, Bootstrap, on_signal};
use crate::config::SESSION_VARIABLE;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::mcp_server::ToolServer;
use crate::runtime::McpAccess;
use end_of_input::EndOfInput;

/// Serves until the input ends or a signal arrives, then cancels the running turns. Returns the
/// exit code.
pub(crate) async fn serve(bootstrap: Bootstrap) -> Result<u8> {
    let roots = app::server_roots(&bootstrap.cwd, &bootstrap.overrides, &bootstrap.loaded);
    let app = app::build(bootstrap)?;
    let stop = CancellationToken::new();
    crate::task::spawn(on_signal(stop.clone()));
    // The turns are cancelled before the results of the calls are written.
    let ended = stop.child_token();
    let services = &app.services;
    // Set if a hosted agent started this process.
    let session = services.environment.get(SESSION_VARIABLE).map(SessionId::from);
    let access = match session {
        Some(session) => McpAccess::hosted(&services.places.data, session, &app.cwd, &roots, services.depth()),
        None => McpAccess::new(None, app.cwd.clone(), roots.into(), services.depth()),
    };
    let server = ToolServer::new(app.clone(), Arc::new(access.until(ended.clone())));
    let (input, output) = standard();
    let served = match serve_server_with_ct(server, (EndOfInput { input, ended: ended.clone() }, output), stop.clone()).await {
        Ok(running) => {
            running.waiting().await.map(drop).map_err(|error| Error::internal(format!("the MCP server panicked: {error}")))
        }
        // The client went away before it introduced itself.
        Err(error) if ended.is_cancelled() => {
            tracing::info!(%error, "the MCP client did not connect");
            Ok(())
        }
        Err(error) => Err(Error::invalid_params(format!("the MCP client did not connect: {error}"))),
    };
    stop.cancel();
    app.shut_down().await;
    served.map(|()| 0)
}
