//! Several agents work on the same task, each in a workspace of its own.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use super::workspaces::{self, worktrees};
use crate::api::dispatch::call_context::CallContext;
use crate::api::dispatch::directories::directory;
use crate::api::dispatch::method::{Method, Reply};
use crate::api::dispatch::route::Route;
use crate::api::sessions::session::{COMPARISON, NewSessionParams, create_session};
use crate::api::turns::message::send_prompt;
use crate::config::NATIVE;
use crate::content::{Part, plain_text};
use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId, TurnId};
use crate::options::Mode;
use crate::session::SessionSetup;
use crate::worktrees::{CreatedWorktree, PathList, WorktreeName};

/// Maximum length of a workspace title that comes from a prompt, in characters.
const WORKTREE_TITLE_CHARS_MAX: usize = 72;
/// Maximum number of agents in a comparison.
const COMPARED_AGENTS_MAX: usize = 8;

/// The task and the agents that work on it.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StartComparisonParams {
    /// Names of the agents; `nuncio` is nuncio's own agent. A name may occur more than once.
    #[schemars(length(min = 1, max = 8))]
    pub agents: Vec<String>,
    /// The prompt. Without it, the sessions wait for prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// A directory in the repository; the server's directory when it is missing.
    pub cwd: Option<PathBuf>,
    /// Branch or commit where the workspaces start. Default: HEAD of `cwd`.
    pub base: Option<String>,
    /// The workspaces also contain the uncommitted changes of `cwd`: they start from a commit with
    /// these changes. Not with `base`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_changes: bool,
    /// Title of the task, for the names of the workspaces. Default: the beginning of the prompt.
    pub title: Option<String>,
    /// Mode of the sessions.
    #[schemars(with = "Option<String>", extend("default" = null))]
    pub mode: Option<Mode>,
}

/// An agent in its session and its workspace.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ComparedAgent {
    pub agent: String,
    pub session_id: SessionId,
    /// The running turn; missing without a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    pub workspace_id: String,
    /// Name of the workspace.
    pub workspace: String,
    /// Directory of the workspace.
    pub path: PathBuf,
    /// The failures of the workspace's preparation, and of sending the prompt.
    pub warnings: Vec<String>,
}

/// The agents, in the order of the params.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Comparison {
    pub agents: Vec<ComparedAgent>,
    /// Uncommitted changes of `cwd` that the workspaces do not contain.
    #[serde(default, skip_serializing_if = "PathList::is_empty")]
    pub uncommitted: PathList,
}

pub(crate) struct StartComparison;

impl Method for StartComparison {
    type Params = StartComparisonParams;
    type Result = Comparison;
    const NAME: &'static str = "_nuncio/comparison/start";
    const EXAMPLE: &'static str =
        r#"{"agents": ["nuncio", "claude"], "parts": [{"type": "text", "text": "Fix the failing test."}], "mode": "accept-edits"}"#;
    const ROUTES: &'static [Route] = &[Route::post("/v1/comparisons").status(201)];
    const DOC: &'static str = "Starts the same prompt with several agents, each in a new session in a new workspace, and answers when the turns have \
         started. `_nuncio/session/result` returns the result of each session.";

    async fn call(cx: CallContext, params: StartComparisonParams) -> Result<Reply<Comparison>> {
        cx.client.authorized()?;
        let agents = &params.agents;
        if !(1..=COMPARED_AGENTS_MAX).contains(&agents.len()) {
            return Err(Error::invalid_params(format!("agents: must be 1 to {} names", COMPARED_AGENTS_MAX)));
        }
        let cwd = directory(&cx, "cwd", params.cwd.as_deref().unwrap_or(&cx.app.cwd))?;
        for agent in agents {
            let agent = Some(agent.clone()).filter(|name| name != NATIVE);
            let (id, cwd, directories) = (SessionId::new(), cwd.clone(), Vec::new());
            cx.app.agents.check(&SessionSetup { id, cwd, directories, parent: None, agent }, &[])?;
        }
        if params.with_changes && params.base.is_some() {
            return Err(Error::invalid_params("withChanges: not possible together with base"));
        }
        let (base, uncommitted) = start(&cx, &cwd, params.base, params.with_changes).await?;
        let title = params.title.unwrap_or_else(|| title_of(&plain_text(&params.parts)));
        let id = uuid::Uuid::now_v7().simple().to_string();
        let shared = StartComparisonParams { cwd: Some(cwd), base, title: Some(title), ..params };
        let mut started = Vec::new();
        // One after the other, because git locks the repository.
        for agent in &shared.agents {
            match shared.open(&cx, &id, agent.clone()).await {
                Ok(entry) => started.push(entry),
                Err(error) if started.is_empty() => return Err(error),
                Err(error) => return Err(error.details(json!({ "started": started }))),
            }
        }
        for entry in started.iter_mut().filter(|_| !shared.parts.is_empty()) {
            let cx = CallContext { message_id: MessageId::new(), ..cx.clone() };
            match send_prompt(cx, &entry.session_id, shared.parts.clone()).await {
                Ok(turn) => entry.turn_id = turn,
                Err(error) => entry.warnings.push(format!("the prompt was not sent: {error}")),
            }
        }
        Ok(Reply::new(Comparison { agents: started, uncommitted }))
    }
}

/// Returns where the workspaces start, and the uncommitted changes that they do not contain.
async fn start(cx: &CallContext, cwd: &Path, base: Option<String>, with_changes: bool) -> Result<(Option<String>, PathList)> {
    let worktrees = worktrees(cx).await?;
    let uncommitted = worktrees.uncommitted(cwd).await?;
    if !with_changes || uncommitted.is_empty() {
        return Ok((base, uncommitted));
    }
    let repository = worktrees.repository(cwd).await?;
    cx.client.require_dir(&repository.main)?;
    let commit = worktrees.commit_of_changes(&repository, cwd).await?;
    Ok((Some(commit), PathList::default()))
}

/// Returns the first line of a prompt, shortened at a word.
pub(crate) fn title_of(prompt: &str) -> String {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let most = WORKTREE_TITLE_CHARS_MAX;
    if line.chars().count() <= most {
        return line.into();
    }
    let start: String = line.chars().take(most).collect();
    start.rsplit_once(' ').map_or(start.as_str(), |(words, _)| words).into()
}

impl StartComparisonParams {
    /// Creates a workspace and a session in it for an agent of the comparison `id`.
    async fn open(&self, cx: &CallContext, id: &str, agent: String) -> Result<ComparedAgent> {
        let title = self.title.as_deref().unwrap_or_default();
        let name = WorktreeName::of_words(&format!("{agent} {title}"));
        let created = workspaces::create(cx, self.cwd.as_deref(), name, None, self.base.clone()).await?;
        let CreatedWorktree { row, warnings } = created;
        let metadata = json!({ COMPARISON: id, "agent": agent, "title": title });
        if let Value::Object(metadata) = metadata {
            worktrees(cx).await?.change_metadata(&row, &metadata).await?;
        }
        let params = NewSessionParams::in_directory(row.path.clone());
        let params = NewSessionParams { agent: Some(agent.clone()), mode: self.mode, ..params };
        let session = create_session(cx.clone(), params, Some(COMPARISON)).await?.result?;
        Ok(ComparedAgent {
            agent,
            session_id: session.session_id,
            turn_id: None,
            workspace_id: row.id,
            workspace: row.name,
            path: row.path,
            warnings,
        })
    }
}
