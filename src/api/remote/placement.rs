//! The nodes that can run the turns of a session: those that have its directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::App;
use crate::error::{Error, Kind, Result};
use crate::id::SessionId;
use crate::local_socket::PeerConnection;
use crate::session::Sessions;

/// The request to a node to own a session that no process owns ([`Take`]). The result is true if
/// the node has the directory of the session and owns the session.
pub(crate) const TAKE: &str = "take";
/// How long a node may take for its answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Params of [`TAKE`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Take {
    session: SessionId,
    /// The node only checks that it has the directory.
    check: bool,
}

/// Answers the request of another node.
pub(crate) async fn take(app: &App, params: Take) -> Result<bool> {
    let (sessions, id) = (app.sessions().await?, &params.session);
    if app.ready().await.is_err() || !is_directory(&sessions.cwd(id).await?).await {
        return Ok(false);
    }
    Ok(params.check || sessions.take(id).await?.is_some())
}

/// Lets another node take a session that no process owns if this node lacks its directory. Fails if
/// no node has it.
pub(crate) async fn place(sessions: &Sessions, id: &SessionId) -> Result<()> {
    if !sessions.store().has_nodes() || sessions.other_owner(id).await?.is_some() {
        return Ok(());
    }
    let cwd = sessions.cwd(id).await?;
    if is_directory(&cwd).await {
        return Ok(());
    }
    for node in nodes_with_directory(sessions, id).await? {
        if ask(&node, id, false).await {
            return Ok(());
        }
    }
    Err(Error::new(Kind::SessionBusy, format!("session {id} cannot run: {}", lacking(sessions, &cwd)))
        .hint("start a node that has the directory"))
}

/// Returns why no node can run a session that no process owns. `None` if one can.
pub(crate) async fn unavailable(sessions: &Sessions, id: &SessionId, cwd: &Path) -> Result<Option<String>> {
    let found = is_directory(cwd).await || !nodes_with_directory(sessions, id).await?.is_empty();
    Ok(if found { None } else { Some(lacking(sessions, cwd)) })
}

fn lacking(sessions: &Sessions, cwd: &Path) -> String {
    match sessions.store().has_nodes() {
        true => format!("no running node has the directory {}", cwd.display()),
        false => format!("the directory {} does not exist", cwd.display()),
    }
}

async fn is_directory(path: &Path) -> bool {
    tokio::fs::metadata(path).await.is_ok_and(|metadata| metadata.is_dir())
}

/// Returns connections to the other nodes that have the directory of a session.
async fn nodes_with_directory(sessions: &Sessions, id: &SessionId) -> Result<Vec<Arc<PeerConnection>>> {
    let nodes = sessions.other_nodes().await?;
    // Editors and commands accept no connections: they are left out, because they end early.
    let servers = nodes.iter().filter(|node| node.remote.as_ref().is_some_and(|remote| remote.address.is_some()));
    let connections = servers.filter_map(|node| sessions.peers().connect(node).ok());
    let asked = connections.map(async |node| ask(&node, id, true).await.then_some(node));
    Ok(join_all(asked).await.into_iter().flatten().collect())
}

async fn ask(node: &PeerConnection, session: &SessionId, check: bool) -> bool {
    let asked = node.request(TAKE, Take { session: session.clone(), check });
    matches!(tokio::time::timeout(ANSWER, asked).await, Ok(Ok(Value::Bool(true))))
}
