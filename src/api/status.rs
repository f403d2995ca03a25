//! Lists of tools and agents, and the status of the process.

pub(super) mod agent_processes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::views::options::modes_with;
use crate::agent::offered;
use crate::api::dispatch::agent_status::StatusSnapshot;
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::client::ClientRole;
use crate::api::dispatch::directories::directory;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::config::mask_urls;
use crate::content::AgentStatus;
use crate::error::Result;
use crate::hub::TerminalSession;
use crate::id::SessionId;
use crate::permission::rules::Rules;
use crate::protocol::acp;
use crate::runtime::task_agents;
use crate::session::{AgentInfo, OfferedTool};
use crate::toolkit::AnyTool;
use crate::tools::task::{SkippedAgent, TaskAgent, TaskAgents};

/// No params.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoParams {}

/// Selects the session whose tools are listed.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListToolsParams {
    /// Without it, the built-in tools are listed, as in a new session.
    pub session_id: Option<SessionId>,
}

/// Tools that models can call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ToolList {
    pub tools: Vec<OfferedTool>,
}

pub(crate) struct ListTools;

impl Method for ListTools {
    type Params = ListToolsParams;
    type Result = ToolList;
    const NAME: &'static str = "_nuncio/tool/list";
    const ROUTES: &'static [Route] = &[Route::get("/v1/tools")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the tools that models can call, in a new session or in a session. The tools of MCP servers are known to the \
         process that runs the session, once the servers are connected.";

    async fn call(cx: CallContext, params: ListToolsParams) -> Result<Reply<ToolList>> {
        let tools = match &params.session_id {
            Some(id) => {
                let session = cx.open_read_only(id).await?;
                session.agent().setup(&session.log).await?.tools
            }
            None => {
                let (services, mode) = (&cx.app.services, cx.app.mode);
                let permissions = &services.user.settings.permissions;
                let rules = Rules { user: permissions.rules.clone(), ..Rules::default() };
                let offered = |tool: &Arc<dyn AnyTool>| offered(&**tool, &rules, mode, permissions.default, &cx.app.cwd);
                services.tools.iter().map(offered).collect()
            }
        };
        Ok(Reply::new(ToolList { tools }))
    }
}

/// Selects the directory whose agent definitions are listed.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListAgentsParams {
    /// Directory of a session; the server's directory when it is missing.
    pub cwd: Option<PathBuf>,
}

/// An agent that the tool `task` can start, from an agent definition.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SubagentView {
    name: String,
    description: String,
    /// `PROVIDER/NAME`; missing: the model of the parent session.
    model: Option<String>,
    mode: Option<String>,
    /// The tools that it may use: names, `PREFIX*`, and `!NAME` for a tool that it may not use;
    /// missing: all tools.
    tools: Option<Vec<String>>,
}

impl SubagentView {
    fn from_agent(agent: TaskAgent) -> SubagentView {
        SubagentView {
            name: agent.name,
            description: agent.description,
            model: agent.profile.model,
            mode: agent.mode.map(|mode| mode.id().into()),
            tools: agent.profile.tools,
        }
    }
}

/// Agents that can work in a session, and the agents that `task` can start.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AgentList {
    pub agents: Vec<AgentInfo>,
    subagents: Vec<SubagentView>,
    /// Agent definitions that are not used.
    skipped: Vec<SkippedAgentView>,
}

/// An agent definition that is not used, because it has a restriction that cannot be applied.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SkippedSubagent")]
pub(crate) struct SkippedAgentView {
    name: String,
    path: PathBuf,
    reason: String,
}

pub(crate) struct ListAgents;

impl Method for ListAgents {
    type Params = ListAgentsParams;
    type Result = AgentList;
    const NAME: &'static str = "_nuncio/agent/list";
    const ROUTES: &'static [Route] = &[Route::get("/v1/agents")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Lists the agents that can work in a session, and the agent definitions of a directory.";

    async fn call(cx: CallContext, params: ListAgentsParams) -> Result<Reply<AgentList>> {
        let mut running = agent_processes::list(&cx).await?;
        let agent = |mut info: AgentInfo| {
            let program = &mut info.program;
            let processes: Vec<_> = running.extract_if(.., |process| process.agent == program.name).collect();
            let version = processes.iter().find_map(|process| process.version.clone()).or(program.version.take());
            program.version = version.filter(|version| !version.is_empty());
            if let Some(command) = &mut program.command {
                command.iter_mut().for_each(|word| *word = mask_urls(word));
                info.processes = Some(processes);
            }
            info
        };
        let cwd = match &params.cwd {
            Some(cwd) => directory(&cx, "cwd", cwd)?,
            None => cx.app.cwd.clone(),
        };
        let visible = cx.client.has_access_to(&cwd);
        let found = if visible { task_agents(&cx.app.services, &cwd) } else { TaskAgents::default() };
        let skipped = |SkippedAgent { name, path, reason }| SkippedAgentView { name, path, reason };
        Ok(Reply::new(AgentList {
            agents: cx.app.agents.list().into_iter().map(agent).collect(),
            subagents: found.agents.into_iter().map(SubagentView::from_agent).collect(),
            skipped: found.skipped.into_iter().map(skipped).collect(),
        }))
    }
}

/// Numbers of sessions in this process: open ones, ones with a running turn, and ones with an open
/// permission request.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Counts")]
struct SessionCounts {
    open: usize,
    busy: usize,
    waiting: usize,
}

/// The sessions of one directory. `open`, `busy` and `waiting` describe the sessions that are open
/// in this process: busy if a turn runs in one of them, waiting if a permission request of one of
/// them is open.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct DirectoryStatus {
    cwd: PathBuf,
    /// The most urgent status of the directory's sessions in all processes, and of its terminal
    /// clients.
    status: AgentStatus,
    open: usize,
    busy: bool,
    waiting: bool,
}

/// Status of the process.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusView {
    version: String,
    /// Milliseconds since the process started.
    uptime_ms: u64,
    /// The most urgent status of all sessions in all processes, and of the terminal clients.
    status: AgentStatus,
    sessions: SessionCounts,
    /// Status by directory, for directories with an open session or a terminal client.
    directories: Vec<DirectoryStatus>,
    /// Agents in terminals that users started themselves and that report their status to this
    /// process.
    terminals: Vec<TerminalSession>,
    /// Current cursor of the stream of all sessions: later events come after it.
    cursor: u64,
    /// The base URL of this process, if it serves HTTP.
    url: Option<String>,
    /// Identity of the calling client; `role` is its role.
    principal: String,
    role: ClientRole,
    /// The model in the settings.
    model: Option<String>,
    /// All modes. `currentModeId` is the mode of sessions that are created without one.
    modes: acp::SessionModeState,
    /// The directory of sessions that are created without one, if the caller has access to it.
    pub cwd: Option<PathBuf>,
}

pub(crate) struct GetStatus;

impl Method for GetStatus {
    type Params = NoParams;
    type Result = StatusView;
    const NAME: &'static str = "_nuncio/status";
    const ROUTES: &'static [Route] = &[Route::get("/v1/status")];
    const ROLE: ClientRole = ClientRole::Observer;
    const DOC: &'static str = "Returns the status of this process.";

    async fn call(cx: CallContext, _params: NoParams) -> Result<Reply<StatusView>> {
        let cursor = cx.app.sessions().await?.head_of_all().await?.number();
        let snapshot = StatusSnapshot::read(&cx.app, |cwd| cx.client.sees_all || cx.client.has_access_to(cwd)).await?;
        let mut open = cx.app.sessions_now().map(|sessions| sessions.all_open()).unwrap_or_default();
        if !cx.client.sees_all {
            open.retain(|session| cx.client.has_access_to(&session.log.state(|state| state.cwd.clone())));
        }
        let mut sessions = SessionCounts { open: open.len(), ..SessionCounts::default() };
        let new = |cwd, status| DirectoryStatus { cwd, status, open: 0, busy: false, waiting: false };
        let known = snapshot.directories().into_iter();
        let mut directories: BTreeMap<PathBuf, DirectoryStatus> =
            known.map(|(cwd, status)| (cwd.clone(), new(cwd, status))).collect();
        for session in &open {
            let (running, waiting, cwd) =
                session.log.state(|state| (state.turn.is_some(), !state.open_permissions.is_empty(), state.cwd.clone()));
            let busy = running || session.is_busy();
            sessions.busy += usize::from(busy);
            sessions.waiting += usize::from(waiting);
            let directory = directories.entry(cwd.clone()).or_insert_with(|| new(cwd, AgentStatus::None));
            directory.open += 1;
            directory.busy |= busy;
            directory.waiting |= waiting;
        }
        Ok(Reply::new(StatusView {
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_ms: cx.app.started.elapsed().as_millis() as u64,
            status: snapshot.status(),
            sessions,
            directories: directories.into_values().collect(),
            terminals: snapshot.into_terminals(),
            cursor,
            url: cx.app.services.url().map(str::to_owned),
            principal: cx.client.principal.clone(),
            role: cx.client.role,
            model: cx.app.services.user.settings.model.clone(),
            modes: modes_with(cx.app.mode.id()),
            cwd: cx.client.has_access_to(&cx.app.cwd).then(|| cx.app.cwd.clone()),
        }))
    }
}
