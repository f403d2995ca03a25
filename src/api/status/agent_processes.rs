//! The running processes of hosted agents, in all nuncio processes that use the store: lists and
//! ends them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{self, join_all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::api::dispatch::app::App;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::{Client, ClientRole};
use crate::api::dispatch::directories::directory;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::error::{Error, Kind, Result};
use crate::hub;
use crate::local_socket::{PeerAddress, PeerFailure};
use crate::session::{HostedProcess, Session, Sessions};
use crate::workspace::real_path;

/// The request to another process to list or end the processes of agents that it has started
/// ([`ProcessQuery`]). The result is a list of [`HostedProcess`].
pub(crate) const AGENTS: &str = "agents";
/// How long another process may take to list its processes.
const LIST_WAIT: Duration = Duration::from_secs(2);
/// Maximum number of processes in a list.
const PROCESSES_MAX: usize = 1000;

/// Selects processes of hosted agents. Params of [`AGENTS`].
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ProcessQuery {
    /// The caller. Only processes in directories that it has access to are selected.
    client: Arc<Client>,
    agent: Option<String>,
    /// The directory of the processes, without symlinks.
    cwd: Option<PathBuf>,
    /// The processes are ended.
    stop: bool,
}

impl ProcessQuery {
    /// Returns whether the query selects the agent of a session, whether or not its process runs.
    fn selects(&self, session: &Session) -> bool {
        let (agent, cwd) = session.log.state(|state| (state.settings.agent.clone(), state.cwd.clone()));
        let cwd = session.agent().process().map_or(cwd, |process| process.cwd);
        agent.is_some_and(|agent| self.agent.as_ref().is_none_or(|wanted| *wanted == agent))
            && self.cwd.as_ref().is_none_or(|wanted| *wanted == real_path(&cwd))
            && (self.client.has_access_to(&cwd) || !self.stop && self.client.sees_all)
    }

    /// Lists or ends the processes that this process has started.
    pub(crate) async fn run(self, app: &App) -> Result<Vec<HostedProcess>> {
        if self.stop {
            require_unlimited(&self.client)?;
        }
        let mut sessions = app.sessions_now().map(|sessions| sessions.all_open()).unwrap_or_default();
        sessions.retain(|session| self.selects(session));
        if !self.stop {
            return Ok(merged(sessions.iter().filter_map(|session| session.agent().process())));
        }
        let cancelled = CancellationToken::new();
        let ended = join_all(sessions.iter().map(|session| session.agent().end_process(cancelled.clone())));
        // The first poll of the futures lets later turns wait. Sessions can share a process, so all
        // turns are cancelled before the first process ends.
        let cancel = async {
            sessions.iter().for_each(|session| session.cancel());
            cancelled.cancel();
        };
        let (ended, ()) = future::join(ended, cancel).await;
        Ok(merged(ended.into_iter().flatten()))
    }
}

/// Fails if the client may not end processes.
fn require_unlimited(client: &Client) -> Result<()> {
    client.require_role(ClientRole::Controller)?;
    if client.sees_all {
        return Ok(());
    }
    Err(Error::new(Kind::Forbidden, format!("{} is limited to roots and cannot end processes", client.principal)))
}

/// Merges the entries of sessions that use the same process. A process whose id is not known yet is
/// just starting, and is left out.
fn merged(processes: impl Iterator<Item = HostedProcess>) -> Vec<HostedProcess> {
    let mut merged: Vec<HostedProcess> = Vec::new();
    for process in processes.filter(|process| process.pid != 0) {
        match merged.iter_mut().find(|known| known.pid == process.pid) {
            Some(known) => known.sessions += process.sessions,
            None => merged.push(process),
        }
    }
    merged.truncate(PROCESSES_MAX);
    merged
}

/// Lists the processes of agents that the caller has access to. Skips nuncio processes that do not
/// respond.
pub(in crate::api) async fn list(cx: &CallContext) -> Result<Vec<HostedProcess>> {
    let query = ProcessQuery { client: cx.client.clone(), agent: None, cwd: None, stop: false };
    let mut found = query.clone().run(&cx.app).await?;
    let Some(sessions) = cx.app.sessions_now() else { return Ok(found) };
    let others = sessions.other_processes().await?;
    let asked = others.iter().map(async |other| tokio::time::timeout(LIST_WAIT, ask(sessions, other, &query)).await);
    for listed in join_all(asked).await {
        match listed {
            Ok(Ok(processes)) => found.extend(processes),
            Ok(Err(error)) => tracing::debug!(%error, "the processes of agents were not listed"),
            Err(_) => tracing::debug!("another process did not list the processes of agents in time"),
        }
    }
    found.truncate(PROCESSES_MAX);
    Ok(found)
}

/// Sends a query to another process, and waits for the result while that process responds.
async fn ask(sessions: &Sessions, other: &PeerAddress, query: &ProcessQuery) -> Result<Vec<HostedProcess>> {
    let failed = |why: &str| Error::new(Kind::SessionBusy, format!("nuncio process {}: {why}", other.pid));
    let connection = match sessions.peers().connect(other) {
        Ok(connection) => connection,
        // It has ended, and with it its agents.
        Err(error) if error.kind == Kind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&error.message)),
    };
    let answer = tokio::select! {
        biased;
        answer = connection.request(AGENTS, query) => answer,
        () = connection.hangs() => return Err(failed("it does not respond")),
    };
    match (answer, connection.refusal()) {
        (Ok(listed), _) => serde_json::from_value(listed).map_err(|error| failed(&error.to_string())),
        (Err(_), Some(refusal)) => Err(failed(&refusal.message)),
        (Err(PeerFailure::Refused(error)), None) => Err(failed(&error.message)),
        (Err(PeerFailure::Closed), None) => Ok(Vec::new()),
    }
}

/// Selects the processes that end. Without fields, all processes of agents end.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopAgentsParams {
    /// The name of an agent.
    pub agent: Option<String>,
    /// The directory of the processes; directories below it do not count.
    pub cwd: Option<PathBuf>,
}

/// The processes that were ended.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoppedAgents {
    pub stopped: Vec<HostedProcess>,
    /// Why the agents of other nuncio processes were not ended, one entry for each of these
    /// processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

pub(crate) struct StopAgents;

impl Method for StopAgents {
    type Params = StopAgentsParams;
    type Result = StoppedAgents;
    const NAME: &'static str = "_nuncio/agent/stop";
    const ROUTES: &'static [Route] = &[Route::post("/v1/agents/stop")];
    const EXAMPLE: &'static str = r#"{"agent": "codex"}"#;
    const DOC: &'static str = "Ends the processes of hosted agents, in all nuncio processes that use the store, and cancels the turns that run in \
         them. The next prompt of a session starts its agent again. A token that is limited to roots cannot call it.";

    async fn call(cx: CallContext, params: StopAgentsParams) -> Result<Reply<StoppedAgents>> {
        cx.client.authorized()?;
        require_unlimited(&cx.client)?;
        params.agent.iter().try_for_each(|name| hub::check_name(&cx.app.services, name))?;
        let cwd = params.cwd.map(|cwd| directory(&cx, "cwd", &cwd)).transpose()?.map(|cwd| real_path(&cwd));
        let query = ProcessQuery { client: cx.client.clone(), agent: params.agent, cwd, stop: true };
        let sessions = cx.app.sessions().await?;
        let others = sessions.other_processes().await?;
        let asked = join_all(others.iter().map(|other| ask(sessions, other, &query)));
        let (own, asked) = tokio::join!(query.clone().run(&cx.app), asked);
        let (mut stopped, mut failures) = (own?, Vec::new());
        for answer in asked {
            match answer {
                Ok(processes) => stopped.extend(processes),
                Err(error) => failures.push(error.message),
            }
        }
        Ok(Reply::new(StoppedAgents { stopped, failures }))
    }
}
