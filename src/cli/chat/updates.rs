//! Work outside the event loop of the chat: calls that take time, and commands of the user.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::client::ChatClient;
use super::commands::{ArgumentValues, CompletionCandidate};
use super::completion::{ComposerWord, WordKind};
use super::info::SessionInfo;
use super::picker::ListedSession;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::limits;
use crate::options::{MODES, Thinking};
use crate::process::Command;
use crate::task;
use crate::terminal_text::output;

/// Maximum number of results that wait for the event loop.
const UPDATES_MAX: usize = 32;
/// Maximum size of the output of a command that is kept, in bytes.
const OUTPUT_BYTES_MAX: usize = limits::TEXT_BYTES_MAX;
/// Maximum number of sessions that the picker lists.
const SESSIONS_MAX: usize = 500;
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
    Sessions(Vec<ListedSession>),
    /// A command of the user has ended.
    CommandEnd {
        line: String,
        output: String,
        code: Option<i32>,
        shared: bool,
    },
    /// Text to print.
    Output(String),
    /// The difference of the working tree, as git prints it.
    Diff(String),
    Failed(Error),
}

/// Starts the work. Its results arrive in the order of their ends.
#[derive(Clone)]
pub(crate) struct ChatTasks {
    client: ChatClient,
    updates: mpsc::Sender<ChatUpdate>,
    /// Commands of the user run one after the other.
    commands: Arc<Mutex<()>>,
}

impl ChatTasks {
    /// Creates the tasks, and the receiver of their results.
    pub(crate) fn new(client: ChatClient) -> (ChatTasks, mpsc::Receiver<ChatUpdate>) {
        let (updates, receiver) = mpsc::channel(UPDATES_MAX);
        (ChatTasks { client, updates, commands: Arc::default() }, receiver)
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
        let (client, params) = (self.client.clone(), json!({ "sessionId": id }));
        self.start(async move {
            let listed = client.call("_nuncio/command/list", params).await?;
            let commands = listed["commands"].as_array().into_iter().flatten();
            let candidate = |command: &Value| candidate(&format!("/{}", text(&command["name"])), &text(&command["description"]));
            Ok(ChatUpdate::Commands(commands.map(candidate).collect()))
        });
    }

    /// Searches the candidates for an argument or a path.
    pub(crate) fn complete(&self, id: &SessionId, word: ComposerWord) {
        let (client, id) = (self.client.clone(), id.clone());
        self.start(async move {
            let candidates = match word.kind {
                WordKind::Command | WordKind::Argument(ArgumentValues::Any) => Vec::new(),
                WordKind::Argument(ArgumentValues::Modes) => MODES.iter().map(|row| candidate(row.id, row.description)).collect(),
                WordKind::Argument(ArgumentValues::Levels) => {
                    Thinking::ALL.iter().map(|level| candidate(level.as_str(), level.name())).collect()
                }
                WordKind::Argument(ArgumentValues::Agents) => agents(&client).await?,
                WordKind::Argument(ArgumentValues::Models) => models(&client).await?,
                WordKind::Argument(ArgumentValues::Files) => paths(&client, &id, &word.text, "").await?,
                WordKind::Path => paths(&client, &id, word.text.trim_start_matches('@'), "@").await?,
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
            let (mut sessions, mut cursor) = (Vec::new(), Value::Null);
            while sessions.len() < SESSIONS_MAX {
                let page = client.call("session/list", json!({ "cursor": cursor })).await?;
                sessions.extend(page["sessions"].as_array().into_iter().flatten().map(ListedSession::from_json));
                cursor = page["nextCursor"].clone();
                if cursor.is_null() {
                    break;
                }
            }
            Ok(ChatUpdate::Sessions(sessions))
        });
    }

    /// Lists the tools whose names begin with a prefix, with what may happen without asking.
    pub(crate) fn list_tools(&self, id: &SessionId, prefix: &'static str, none: &'static str) {
        let (client, params) = (self.client.clone(), json!({ "sessionId": id }));
        self.start(async move {
            let listed = client.call("_nuncio/tool/list", params).await?;
            let tools = listed["tools"].as_array().into_iter().flatten().filter(|tool| text(&tool["name"]).starts_with(prefix));
            let line =
                |tool: &Value| format!("{:<6} {:<20} {}\n", text(&tool["approval"]), text(&tool["name"]), text(&tool["label"]));
            let lines: String = tools.map(line).collect();
            Ok(ChatUpdate::Output(if lines.is_empty() { format!("{none}\n") } else { lines }))
        });
    }

    /// Runs a command line of the user in a directory, until `cancel`. If `shared` is true, its
    /// output is added to the conversation.
    pub(crate) fn run_command(&self, line: &str, directory: PathBuf, shared: bool, cancel: CancellationToken) {
        let (client, line, turn) = (self.client.clone(), line.to_owned(), self.commands.clone());
        self.start(async move {
            let ran = async {
                let _turn = turn.lock().await;
                run(&client, Command::shell(&line, directory)).await
            };
            let (output, code) = tokio::select! {
                ran = ran => ran.unwrap_or_else(|error| (error.message, None)),
                () = cancel.cancelled() => ("stopped".into(), None),
            };
            Ok(ChatUpdate::CommandEnd { line, output, code, shared })
        });
    }

    /// Reads the uncommitted changes in the directory of a session, or those of its workspace.
    pub(crate) fn read_diff(&self, id: &SessionId) {
        let (client, params) = (self.client.clone(), json!({ "sessionId": id, "diff": true }));
        self.start(async move {
            let result = client.call("_nuncio/session/result", params).await?;
            match result["diff"].as_str() {
                Some("") => Ok(ChatUpdate::Output("no changes\n".into())),
                Some(diff) => Ok(ChatUpdate::Diff(diff.into())),
                None => Err(Error::invalid_params("/diff: git found no repository, or failed")),
            }
        });
    }
}

/// Runs a command. Returns its output, without control sequences, and its exit code.
async fn run(client: &ChatClient, command: Command) -> Result<(String, Option<i32>)> {
    let mut child = client.app().services.launcher.spawn(&command)?;
    let mut bytes = Vec::new();
    let mut truncated = false;
    loop {
        let read = child.output.read(&mut bytes).await.map_err(|error| Error::io("reading the output of a command", error))?;
        if read == 0 {
            break;
        }
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

async fn agents(client: &ChatClient) -> Result<Vec<CompletionCandidate>> {
    let listed = client.call("_nuncio/agent/list", json!({})).await?;
    let agent = |agent: &Value| {
        let about = agent["problem"].as_str().map_or_else(|| text(&agent["kind"]), String::from);
        candidate(&text(&agent["name"]), &about)
    };
    Ok(listed["agents"].as_array().into_iter().flatten().map(agent).collect())
}

async fn models(client: &ChatClient) -> Result<Vec<CompletionCandidate>> {
    let listed = client.call("_nuncio/model/list", json!({})).await?;
    let model = |model: &Value| candidate(&text(&model["id"]), &text(&model["displayName"]));
    Ok(listed["models"].as_array().into_iter().flatten().map(model).collect())
}

async fn paths(client: &ChatClient, id: &SessionId, query: &str, mark: &str) -> Result<Vec<CompletionCandidate>> {
    let params = json!({ "sessionId": id, "query": query, "limit": PATHS_MAX });
    let found = client.call("_nuncio/file/search", params).await?;
    let paths = found["paths"].as_array().into_iter().flatten();
    Ok(paths.map(|path| candidate(&format!("{mark}{}", text(path)), "")).collect())
}

fn candidate(value: &str, about: &str) -> CompletionCandidate {
    CompletionCandidate { value: value.into(), about: about.into() }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
