//! `task`: delegates a task to a subagent, which works in a child session.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::config::{AccessShape, Policy};
use crate::content::{BudgetLimits, StopReason, ToolKind, Usage};
use crate::context::agent_definitions::SubagentProfile;
use crate::event::{ChildEnd, ChildStatus};
use crate::id::SessionId;
use crate::limits;
use crate::options::Mode;
use crate::permission::Access;
use crate::permission::rules::stricter;
use crate::task;
use crate::toolkit::{AnyTool, Subagent, SubagentRequest, Tool, ToolContext, ToolError, ToolOutput, artifact, entry_with};
use crate::workspace::{Workspace, one_line};

/// Maximum length of the description of an agent in the tool's description, in characters.
const AGENT_DESCRIPTION_CHARS_MAX: usize = 300;

/// The tool, with the agents that it can start.
#[derive(Default)]
pub(super) struct Task {
    agents: Arc<TaskAgents>,
}

/// The agents of a directory.
#[derive(Debug, Default)]
pub(crate) struct TaskAgents {
    pub agents: Vec<TaskAgent>,
    pub skipped: Vec<SkippedAgent>,
    /// Parts of the definitions that have no effect.
    pub notices: Vec<String>,
}

/// An agent that `task` can start.
#[derive(Clone, Debug)]
pub(crate) struct TaskAgent {
    pub name: String,
    pub description: String,
    pub mode: Option<Mode>,
    pub profile: SubagentProfile,
}

/// A file with an agent definition that is not used.
#[derive(Clone, Debug)]
pub(crate) struct SkippedAgent {
    pub name: String,
    pub path: PathBuf,
    pub reason: String,
}

impl TaskAgents {
    /// Finds an agent.
    pub(crate) fn agent(&self, name: &str) -> Option<&TaskAgent> {
        self.agents.iter().find(|agent| agent.name.eq_ignore_ascii_case(name))
    }

    /// Finds a definition that is not used.
    pub(crate) fn skipped(&self, name: &str) -> Option<&SkippedAgent> {
        self.skipped.iter().find(|skipped| skipped.name.eq_ignore_ascii_case(name))
    }

    /// Returns why there is no agent with this name, and the names that can be used.
    pub(crate) fn missing(&self, name: &str) -> (String, String) {
        let names: Vec<&str> = self.agents.iter().map(|agent| agent.name.as_str()).collect();
        let known = if names.is_empty() { "there are none: omit it".into() } else { format!("use one of {}", names.join(", ")) };
        let why = self.skipped(name).map(|skipped| format!(": {skipped}")).unwrap_or_default();
        (format!("agent: there is no agent {name}{why}"), known)
    }
}

impl std::fmt::Display for SkippedAgent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} is skipped: {}", one_line(self.path.display().to_string()), self.reason)
    }
}

/// Creates the tool of a session with these agents. Its description lists them.
pub(crate) fn with_agents(agents: Arc<TaskAgents>) -> Arc<dyn AnyTool> {
    let mut list = String::new();
    for agent in &agents.agents {
        let mut description = agent.description.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = description.char_indices().nth(AGENT_DESCRIPTION_CHARS_MAX) {
            description.replace_range(end.., "…");
        }
        list += &format!("\n- {}: {description}", agent.name);
    }
    let list = if list.is_empty() { list } else { format!("\nAgents:{list}") };
    entry_with(Task { agents }, &list)
}

/// Delegates a task to a subagent with its own conversation, and returns its result. Use it for
/// independent parts of the work, and for searches of which you need only the result. The subagent
/// sees nothing of this conversation: the prompt must contain everything it needs.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskInput {
    /// The task, and what to report.
    prompt: String,
    /// Name of an agent.
    #[serde(default, alias = "subagent_type")]
    agent: Option<String>,
    /// A stricter permission mode, such as plan.
    #[schemars(with = "Option<String>")]
    mode: Option<Mode>,
    /// Return at once; the result arrives later as a message.
    #[serde(default, alias = "run_in_background")]
    background: Option<bool>,
}

/// Status of a subagent in a result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TaskStatus {
    /// The subagent works in the background.
    Started,
    Completed,
}

/// The details of the result of a `task` call.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskDetails {
    child_session_id: SessionId,
    agent: Option<String>,
    status: TaskStatus,
    stop_reason: Option<StopReason>,
    /// Total usage of the model requests of the subagent and of those below it.
    usage: Option<Usage>,
    /// The file with the whole answer, if the model received only a part of it.
    artifact: Option<PathBuf>,
}

impl Tool for Task {
    type Input = TaskInput;
    type Details = TaskDetails;
    const NAME: &'static str = "task";
    const LABEL: &'static str = "Run subagent";
    const ALIASES: &'static [&'static str] = &["agent"];
    const KIND: ToolKind = ToolKind::Think;
    const ACCESS: &'static [AccessShape] = AccessShape::NOTHING;

    fn title(&self, input: &TaskInput, _: &Workspace) -> String {
        let prompt = input.prompt.split_whitespace().collect::<Vec<_>>().join(" ");
        let title: String = prompt.chars().take(limits::TITLE_CHARS_MAX).collect();
        let more = if title.len() < prompt.len() { "…" } else { "" };
        format!("{}: {title}{more}", input.agent.as_deref().unwrap_or("Task"))
    }

    /// Declares no access: the calls of the subagent are checked themselves.
    fn access(&self, _: &TaskInput) -> Access {
        Access::none()
    }

    async fn run(&self, input: TaskInput, context: &ToolContext) -> Result<ToolOutput<TaskDetails>, ToolError> {
        if input.prompt.trim().is_empty() {
            return Err(ToolError::new("task: prompt: is empty"));
        }
        let depth = context.depth + 1;
        if depth > limits::SUBAGENT_DEPTH_MAX {
            let most = limits::SUBAGENT_DEPTH_MAX;
            return Err(ToolError(format!("task: at most {most} levels of subagents are possible: do this task yourself")));
        }
        let Some(subagents) = &context.subagents else {
            return Err(ToolError::new("task: subagents are available only in a session"));
        };
        let agent = input.agent.as_deref().map(|name| self.agent(name)).transpose()?.cloned();
        let (mut profile, mode) = agent.map(|agent| (agent.profile, agent.mode)).unwrap_or_default();
        if profile.hosted.is_none() {
            profile.model = profile.model.or_else(|| context.subagent_model.as_deref().map(String::from));
        }
        let modes = mode.into_iter().chain(input.mode);
        let background = input.background == Some(true);
        let request = SubagentRequest {
            call_id: context.call_id.clone(),
            title: self.title(&input, &context.workspace),
            prompt: input.prompt,
            profile: profile.clone(),
            mode: modes.reduce(|one, other| stricter(one, other, Policy::Ask)),
            background,
            budget: BudgetLimits::default(),
            depth,
            cancel: context.cancel.clone(),
            progress: context.progress.clone(),
        };
        let Subagent { session, end, answer } = subagents.spawn(request).await?;
        let details = |status, end: Option<&ChildEnd>, artifact| TaskDetails {
            child_session_id: session.clone(),
            agent: profile.name.clone(),
            status,
            stop_reason: end.and_then(|end| end.stop_reason),
            usage: end.and_then(|end| end.usage),
            artifact,
        };
        let Some(end) = end else {
            let text = format!("started subagent {session} in the background: its result arrives as a message");
            return Ok(ToolOutput::text(text, details(TaskStatus::Started, None, None)));
        };
        let (text, artifact) = bounded(answer, context).await?;
        if end.unresolved.as_ref().is_some_and(|unresolved| unresolved.failing_checks.is_some()) {
            // The parent's turn does not end before the checks have run again.
            context.changes.require_check();
        }
        let text = result(&end, text, context)?;
        Ok(ToolOutput::text(text, details(TaskStatus::Completed, Some(&end), artifact)))
    }
}

/// Returns the result of a subagent that completed its task. Fails if it did not, or if it left
/// problems, whatever its answer says.
fn result(end: &ChildEnd, answer: String, context: &ToolContext) -> Result<String, ToolError> {
    let problems = end.unresolved.as_ref().map(|unresolved| unresolved.text()).unwrap_or_default();
    let failed = |what: &str, answer: &str| Err(ToolError(format!("{problems}\n{what}\n{answer}").trim().into()));
    match end.status {
        ChildStatus::Completed => {
            let text = match (end.stop_reason, answer.trim().is_empty()) {
                (Some(StopReason::EndTurn) | None, false) => answer,
                (Some(StopReason::EndTurn) | None, true) => "[the subagent ended without an answer]".into(),
                (Some(stop), _) => format!("{answer}\n[the subagent was stopped: {}]", serde_json::json!(stop)),
            };
            if problems.is_empty() { Ok(text) } else { failed("The subagent's answer:", &text) }
        }
        ChildStatus::Failed => failed(&format!("the subagent failed: {}", end.error.as_deref().unwrap_or_default()), &answer),
        ChildStatus::Cancelled | ChildStatus::Interrupted if context.cancel.is_cancelled() => Err(ToolError::cancelled()),
        ChildStatus::Cancelled | ChildStatus::Interrupted => failed("the subagent was cancelled", &answer),
    }
}

impl Task {
    fn agent(&self, name: &str) -> Result<&TaskAgent, ToolError> {
        self.agents.agent(name).ok_or_else(|| {
            let (missing, known) = self.agents.missing(name);
            ToolError(format!("task: {missing}; {known}"))
        })
    }
}

/// Shortens a long answer, and keeps the whole answer in a file.
async fn bounded(answer: String, context: &ToolContext) -> Result<(String, Option<PathBuf>), ToolError> {
    let mut end = limits::SUBAGENT_ANSWER_BYTES_MAX;
    if answer.len() <= end {
        return Ok((answer, None));
    }
    while !answer.is_char_boundary(end) {
        end -= 1;
    }
    let (bytes, keeping) = (answer.clone().into_bytes(), context.clone());
    let path = task::blocking("keeping the answer", move || artifact::keep(&keeping, "task", "md", &bytes)).await??;
    let text = format!("{}\n[{} more bytes: the whole answer is in {}]", &answer[..end], answer.len() - end, path.display());
    Ok((text, Some(path)))
}
