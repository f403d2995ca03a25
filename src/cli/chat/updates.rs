//! Work outside the event loop of the chat: calls that take time, and commands of the user.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::commands::{ArgumentValues, CompletionCandidate};
use super::completion::{ComposerWord, WordKind};
use super::info::SessionInfo;
use super::picker::PickerRow;
use crate::api::{
    CommandView, GetResult, GetResultParams, ListAgents, ListAgentsParams, ListCommands, ListCommandsParams, ListModels,
    ListModelsParams, ListResources, ListSessions, ListSessionsParams, ListTools, ListToolsParams, ModelView, SearchFiles,
    SearchFilesParams, SessionParams,
};
use crate::cli::projects::doctor;
use crate::client::SessionClient;
use crate::config::Policy;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::limits;
use crate::options::{MODES, Thinking};
use crate::process::Command;
use crate::session::{AgentInfo, OfferedTool};
use crate::task;
use crate::terminal_text::output;
use crate::toolkit::jobs::JobDetails;

/// Maximum number of results that wait for the event loop.
const UPDATES_MAX: usize = 32;
/// Maximum size of the output of a command that is kept, in bytes.
const OUTPUT_BYTES_MAX: usize = limits::TEXT_BYTES_MAX;
/// Number of last lines that are shown of a running command, and how much of its output has them.
const LAST_LINES: usize = 3;
const LAST_LINES_BYTES: usize = 2 << 10;
/// Time since the last key after which a search begins.
const SEARCH_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of sessions that the picker lists.
const SESSIONS_MAX: usize = 500;
/// Maximum number of resources of MCP servers that complete a word.
const RESOURCES_MAX: usize = 20;
/// Maximum number of paths that complete a word.
const PATHS_MAX: usize = 50;

/// A result for the event loop.
pub(crate) enum ChatUpdate {
    /// The state of a session.
    Info(Box<SessionInfo>),
    /// The commands of the agent.
    Commands(Vec<CompletionCandidate>),
    /// The candidates for a word.
    Candidates(ComposerWord, Vec<CompletionCandidate>),
    /// The sessions to choose from.
    Sessions(Vec<PickerRow>),
    /// Sessions with the text of a filter; `ended`: there are no others.
    Found {
        filter: String,
        sessions: Vec<PickerRow>,
        ended: bool,
    },
    /// A command of the user has ended.
    CommandEnd {
        line: String,
        output: String,
        code: Option<i32>,
        shared: bool,
    },
    /// The last lines of the output of a running command of the user.
    CommandOutput(Vec<String>),
    /// The background jobs that run, and those that have ended since the last report.
    Jobs {
        running: Vec<String>,
        ended: Vec<JobDetails>,
    },
    /// The text of the user's status command; empty if it failed.
    StatusText(String),
    /// Text to print.
    Output(String),
    /// The difference of the working tree, as git prints it.
    Diff(String),
    Failed(Error),
}

/// Starts the work. Its results arrive in the order of their ends.
#[derive(Clone)]
pub(crate) struct ChatTasks {
    pub(super) client: SessionClient,
    pub(super) updates: mpsc::Sender<ChatUpdate>,
    /// Ends the watch over the background jobs.
    pub(super) watch: CancellationToken,
    /// Commands of the user run one after the other.
    commands: Arc<Mutex<()>>,
}

impl ChatTasks {
    /// Creates the tasks, and the receiver of their results.
    pub(crate) fn new(client: SessionClient) -> (ChatTasks, mpsc::Receiver<ChatUpdate>) {
        let (updates, receiver) = mpsc::channel(UPDATES_MAX);
        (ChatTasks { client, updates, watch: CancellationToken::new(), commands: Arc::default() }, receiver)
    }

    fn start(&self, work: impl Future<Output = Result<ChatUpdate>> + Send + 'static) {
        let updates = self.updates.clone();
        task::spawn(async move {
            let update = work.await.unwrap_or_else(ChatUpdate::Failed);
            // Fails when the chat has ended.
            let _ = updates.send(update).await;
        });
    }

    pub(crate) fn read_info(&self, id: &SessionId) {
        let (client, id) = (self.client.clone(), id.clone());
        self.start(async move { SessionInfo::read(&client, &id).await.map(|info| ChatUpdate::Info(Box::new(info))) });
    }

    pub(crate) fn print_info(&self, id: &SessionId, text: fn(&SessionInfo) -> String) {
        let (client, id) = (self.client.clone(), id.clone());
        self.start(async move { Ok(ChatUpdate::Output(text(&SessionInfo::read(&client, &id).await?))) });
    }

    /// Reads the commands of the agent.
    pub(crate) fn read_commands(&self, id: &SessionId) {
        let (client, params) = (self.client.clone(), ListCommandsParams { session_id: Some(id.clone()), cwd: None });
        self.start(async move {
            let listed = client.call::<ListCommands>(params).await?;
            let candidate = |command: &CommandView| candidate(&format!("/{}", command.name), &command.description);
            Ok(ChatUpdate::Commands(listed.commands.iter().map(candidate).collect()))
        });
    }

    /// Searches the candidates for an argument or a path.
    pub(crate) fn complete(&self, id: &SessionId, word: ComposerWord) {
        let (client, id) = (self.client.clone(), id.clone());
        self.start(async move {
            let candidates = match word.kind {
                WordKind::Command | WordKind::History | WordKind::Argument(ArgumentValues::Any) => Vec::new(),
                WordKind::Argument(ArgumentValues::Modes) => MODES.iter().map(|row| candidate(row.id, row.description)).collect(),
                WordKind::Argument(ArgumentValues::Levels) => {
                    Thinking::ALL.iter().map(|level| candidate(level.as_str(), level.name())).collect()
                }
                WordKind::Argument(ArgumentValues::Agents) => agents(&client).await?,
                WordKind::Argument(ArgumentValues::Models) => models(&client).await?,
                WordKind::Argument(ArgumentValues::Files) => paths(&client, &id, &word.text).await?,
                WordKind::Path => {
                    let query = word.text.trim_start_matches('@').trim_start_matches('"');
                    let files = paths(&client, &id, query).await?.into_iter().map(mention);
                    files.chain(resources(&client, &id, query).await).collect()
                }
            };
            Ok(ChatUpdate::Candidates(word, candidates))
        });
    }

    /// Lists the models that can be used.
    pub(crate) fn list_models(&self) {
        let client = self.client.clone();
        self.start(async move {
            let models = models(&client).await?;
            Ok(ChatUpdate::Output(models.iter().map(|model| format!("{}  {}\n", model.value, model.about)).collect()))
        });
    }

    /// Lists the sessions to choose from, of all directories.
    pub(crate) fn list_sessions(&self) {
        let client = self.client.clone();
        self.start(async move {
            let (mut sessions, mut params) = (Vec::new(), ListSessionsParams::default());
            while sessions.len() < SESSIONS_MAX {
                let page = client.call::<ListSessions>(params.clone()).await?;
                sessions.extend(page.sessions.into_iter().map(PickerRow::new));
                params.cursor = page.next_cursor;
                if params.cursor.is_none() {
                    break;
                }
            }
            Ok(ChatUpdate::Sessions(sessions))
        });
    }

    /// Searches the sessions for a text, until `cancel`.
    pub(crate) fn search_sessions(&self, filter: String, cancel: CancellationToken) {
        let (client, updates) = (self.client.clone(), self.updates.clone());
        task::spawn(async move {
            let search = async {
                tokio::time::sleep(SEARCH_PAUSE).await;
                let (mut params, mut count) =
                    (ListSessionsParams { text: Some(filter.clone()), ..ListSessionsParams::default() }, 0);
                loop {
                    let (sessions, next) = match client.call::<ListSessions>(params.clone()).await {
                        Ok(page) => (page.sessions, page.next_cursor),
                        // For example a text that is too long.
                        Err(_) => (Vec::new(), None),
                    };
                    count += sessions.len();
                    let ended = next.is_none() || count >= SESSIONS_MAX;
                    let sessions = sessions.into_iter().map(PickerRow::new).collect();
                    // Fails when the chat has ended.
                    let _ = updates.send(ChatUpdate::Found { filter: filter.clone(), sessions, ended }).await;
                    if ended {
                        break;
                    }
                    params.cursor = next;
                }
            };
            cancel.run_until_cancelled(search).await;
        });
    }

    /// Lists the tools whose names begin with a prefix, with what may happen without asking.
    pub(crate) fn list_tools(&self, id: &SessionId, prefix: &'static str, none: &'static str) {
        let (client, params) = (self.client.clone(), ListToolsParams { session_id: Some(id.clone()) });
        self.start(async move {
            let listed = client.call::<ListTools>(params).await?;
            let tools = listed.tools.iter().filter(|tool| tool.name.starts_with(prefix));
            let line = |tool: &OfferedTool| format!("{:<6} {:<20} {}\n", approval(tool.approval), tool.name, tool.label);
            let lines: String = tools.map(line).collect();
            Ok(ChatUpdate::Output(if lines.is_empty() { format!("{none}\n") } else { lines }))
        });
    }

    /// Checks the model and the programs that nuncio uses.
    pub(crate) fn run_doctor(&self) {
        let app = self.client.app().clone();
        self.start(async move { doctor::lines(&app).await.map(ChatUpdate::Output) });
    }

    /// Runs a command line of the user in a directory, until `cancel`. If `shared` is true, its
    /// output is added to the conversation.
    pub(crate) fn run_command(&self, line: &str, directory: PathBuf, shared: bool, cancel: CancellationToken) {
        let (client, line, turn) = (self.client.clone(), line.to_owned(), self.commands.clone());
        let updates = self.updates.clone();
        self.start(async move {
            let _turn = turn.lock().await;
            let ran = run(&client, Command::shell(&line, directory), &cancel, &updates).await;
            let (output, code) = ran.unwrap_or_else(|error| (error.message, None));
            Ok(ChatUpdate::CommandEnd { line, output, code, shared })
        });
    }

    /// Reads the uncommitted changes in the directory of a session, or those of its workspace.
    pub(crate) fn read_diff(&self, id: &SessionId) {
        let (client, params) = (self.client.clone(), GetResultParams { session_id: id.clone(), diff: true });
        self.start(async move {
            match client.call::<GetResult>(params).await?.diff {
                Some(diff) if diff.is_empty() => Ok(ChatUpdate::Output("no changes\n".into())),
                Some(diff) => Ok(ChatUpdate::Diff(diff)),
                None => Err(Error::invalid_params("/diff: git found no repository, or failed")),
            }
        });
    }
}

/// Runs a command until `cancel`, and reports its last lines. Returns its output, without control
/// sequences, and its exit code, if it ended by itself.
async fn run(
    client: &SessionClient,
    command: Command,
    cancel: &CancellationToken,
    updates: &mpsc::Sender<ChatUpdate>,
) -> Result<(String, Option<i32>)> {
    let mut child = client.app().services.launcher.spawn(&command)?;
    let mut bytes = Vec::new();
    let mut truncated = false;
    loop {
        let read = tokio::select! {
            read = child.output.read(&mut bytes) => read.map_err(|error| Error::io("reading the output of a command", error))?,
            // The command ends when `child` is dropped. Its output so far is kept.
            () = cancel.cancelled() => return Ok((output(&String::from_utf8_lossy(&bytes)), None)),
        };
        if read == 0 {
            break;
        }
        // A full queue has newer work for the event loop.
        let _ = updates.try_send(ChatUpdate::CommandOutput(last_lines(&bytes)));
        if bytes.len() > OUTPUT_BYTES_MAX {
            // Keep the end, which says how the command ended.
            bytes.drain(..bytes.len() - OUTPUT_BYTES_MAX);
            truncated = true;
        }
    }
    let status = child.wait().await?;
    let text = output(&String::from_utf8_lossy(&bytes));
    Ok((if truncated { format!("… earlier output\n{text}") } else { text }, Some(status.code)))
}

/// Returns the last lines of an output.
fn last_lines(bytes: &[u8]) -> Vec<String> {
    let text = output(&String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LAST_LINES_BYTES)..]));
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| (*line).into()).collect()
}

async fn agents(client: &SessionClient) -> Result<Vec<CompletionCandidate>> {
    let listed = client.call::<ListAgents>(ListAgentsParams { cwd: None }).await?;
    let agent = |agent: &AgentInfo| candidate(&agent.program.name, agent.problem.as_deref().unwrap_or(&agent.program.kind));
    Ok(listed.agents.iter().map(agent).collect())
}

async fn models(client: &SessionClient) -> Result<Vec<CompletionCandidate>> {
    let listed = client.call::<ListModels>(ListModelsParams::default()).await?;
    let model = |model: &ModelView| candidate(&model.id, model.display_name.as_deref().unwrap_or_default());
    Ok(listed.models.iter().map(model).collect())
}

async fn paths(client: &SessionClient, id: &SessionId, query: &str) -> Result<Vec<CompletionCandidate>> {
    let params = SearchFilesParams::in_session(id, query, PATHS_MAX);
    let found = client.call::<SearchFiles>(params).await?;
    Ok(found.paths.iter().map(|path| candidate(path, "")).collect())
}

/// Returns the resources of MCP servers whose mention contains the query.
async fn resources(client: &SessionClient, id: &SessionId, query: &str) -> Vec<CompletionCandidate> {
    // Servers without resources and those of a hosted agent are no error.
    let Ok(listed) = client.call::<ListResources>(SessionParams { session_id: id.clone() }).await else { return Vec::new() };
    let mentions =
        listed.resources.iter().map(|resource| candidate(&format!("@{}:{}", resource.server, resource.uri), &resource.name));
    mentions.filter(|mention| mention.value.to_lowercase().contains(&query.to_lowercase())).take(RESOURCES_MAX).collect()
}

/// Writes a path as a mention in a message.
fn mention(path: CompletionCandidate) -> CompletionCandidate {
    let has_blank = path.value.contains(char::is_whitespace);
    // The quotes of a directory stay open, because it can be completed further.
    let end = if path.value.ends_with('/') { "" } else { "\"" };
    let value = if has_blank { format!("@\"{}{end}", path.value) } else { format!("@{}", path.value) };
    CompletionCandidate { value, ..path }
}

/// Returns what happens to an ordinary call.
fn approval(policy: Policy) -> &'static str {
    match policy {
        Policy::Allow => "allow",
        Policy::Ask => "ask",
        Policy::Deny => "deny",
    }
}

fn candidate(value: &str, about: &str) -> CompletionCandidate {
    CompletionCandidate { value: value.into(), about: about.into() }
}
