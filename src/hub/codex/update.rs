//! Decodes the notifications and requests of Codex. Unknown items and fields are skipped, because
//! the protocol differs between versions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::content::{
    Location, PermissionOption, PermissionOptionKind, PlanEntry, PlanPriority, PlanStatus, Role, ToolContent, ToolKind, ToolStatus,
    Usage,
};
use crate::event::{Severity, ToolChange};
use crate::hub::call::{Call, CallUpdate};
use crate::hub::events::TurnEvents;
use crate::hub::permission::AgentRequest;
use crate::limits;

/// Number of paths in the title of a hosted agent's tool call.
const AGENT_PATHS_SHOWN: usize = 3;

/// The reported parts of items, and the usage of the thread.
#[derive(Default)]
pub(super) struct CodexItems {
    /// Number of bytes of each message and of each thought that was recorded.
    recorded: HashMap<String, usize>,
    /// The output of the running commands.
    outputs: HashMap<String, CommandOutput>,
    /// `total` of the last report of usage.
    total: Option<Usage>,
    /// The last warning, which Codex repeats in each turn.
    warning: String,
}

struct CommandOutput {
    text: String,
    shown: Instant,
}

impl CodexItems {
    /// Records a notification of a turn.
    pub(super) async fn record(&mut self, method: &str, params: &Value, events: &mut TurnEvents<'_>, name: &str) {
        let item = params["itemId"].as_str().unwrap_or_default();
        let delta = params["delta"].as_str().unwrap_or_default();
        match method {
            "item/agentMessage/delta" | "item/plan/delta" => self.delta(Role::Assistant, item, delta, events).await,
            "item/reasoning/textDelta" | "item/reasoning/summaryTextDelta" => self.delta(Role::Thought, item, delta, events).await,
            "item/reasoning/summaryPartAdded" if self.recorded.contains_key(item) => {
                self.delta(Role::Thought, item, "\n\n", events).await;
            }
            "item/commandExecution/outputDelta" => self.output(item, delta, events).await,
            "item/fileChange/patchUpdated" => {
                events.call(item, changes(&params["changes"], events.turn().log.state(|state| state.cwd.clone()))).await;
            }
            "item/started" => self.item(&params["item"], false, events).await,
            "item/completed" => self.item(&params["item"], true, events).await,
            "turn/plan/updated" => {
                let steps = params["plan"].as_array().into_iter().flatten();
                events.plan(steps.map(plan_entry).collect()).await;
            }
            "thread/tokenUsage/updated" => self.usage(&params["tokenUsage"], events, name).await,
            "warning" => {
                let message = params["message"].as_str().unwrap_or_default();
                if self.warning != message {
                    message.clone_into(&mut self.warning);
                    notice(&format!("agent {name}"), message, events).await;
                }
            }
            _ => {}
        }
    }

    async fn delta(&mut self, role: Role, item: &str, delta: &str, events: &mut TurnEvents<'_>) {
        *self.recorded.entry(item.into()).or_default() += delta.len();
        events.text(role, Some(item), delta).await;
    }

    /// Shows the output of a running command, as often as the output of nuncio's own commands.
    async fn output(&mut self, item: &str, delta: &str, events: &mut TurnEvents<'_>) {
        let new = || CommandOutput { text: String::new(), shown: Instant::now() - limits::BASH_UPDATE };
        let output = self.outputs.entry(item.into()).or_insert_with(new);
        output.text.push_str(delta);
        let excess = output.text.len().saturating_sub(limits::BASH_LIVE_BYTES_MAX);
        output.text.drain(..output.text.ceil_char_boundary(excess));
        if output.shown.elapsed() >= limits::BASH_UPDATE {
            output.shown = Instant::now();
            let content = Some(vec![ToolContent::text(&output.text)]);
            events.call(item, CallUpdate { content, ..CallUpdate::default() }).await;
        }
    }

    async fn item(&mut self, item: &Value, completed: bool, events: &mut TurnEvents<'_>) {
        let id = item["id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("agentMessage" | "plan") => {
                if completed {
                    self.complete(Role::Assistant, id, item["text"].as_str().unwrap_or_default(), events).await;
                }
            }
            Some("reasoning") => {
                let parts = ["summary", "content"].iter().find_map(|field| item[*field].as_array().filter(|list| !list.is_empty()));
                let parts: Vec<&str> = parts.into_iter().flatten().filter_map(Value::as_str).collect();
                if completed {
                    let missing = if self.recorded.contains_key(id) { String::new() } else { parts.join("\n\n") };
                    events.text(Role::Thought, Some(id), &missing).await;
                    events.end_text().await;
                }
            }
            _ => {
                let Some(mut update) = call_update(item, events.turn().log.state(|state| state.cwd.clone())) else { return };
                let ends = |status: &ToolStatus| matches!(status, ToolStatus::Completed | ToolStatus::Failed);
                if completed {
                    self.outputs.remove(id);
                    update.status = update.status.filter(ends).or(Some(ToolStatus::Completed));
                }
                events.call(id, update).await;
            }
        }
    }

    /// Records the part of a message that the deltas did not contain.
    async fn complete(&mut self, role: Role, item: &str, text: &str, events: &mut TurnEvents<'_>) {
        let recorded = self.recorded.remove(item).unwrap_or_default();
        events.text(role, Some(item), text.get(recorded..).unwrap_or_default()).await;
        events.end_text().await;
    }

    /// Records the usage since the last report. Codex repeats reports without new usage.
    async fn usage(&mut self, usage: &Value, events: &TurnEvents<'_>, name: &str) {
        let (total, last) = (tokens(&usage["total"]), tokens(&usage["last"]));
        let spent = match self.total.replace(total) {
            Some(before) => total.without(before),
            // The process may have resumed the thread.
            None => last,
        };
        if spent != Usage::default() {
            let context = (last.input_tokens + last.output_tokens, usage["modelContextWindow"].as_u64().unwrap_or(0));
            events.usage(name.into(), spent, None, context).await;
        }
    }
}

pub(super) async fn notice(title: &str, description: &str, events: &TurnEvents<'_>) {
    events.notice(Severity::Warning, title, description).await;
}

fn tokens(breakdown: &Value) -> Usage {
    let tokens = |field: &str| breakdown[field].as_u64().unwrap_or(0);
    Usage {
        input_tokens: tokens("inputTokens"),
        output_tokens: tokens("outputTokens"),
        cache_read_tokens: tokens("cachedInputTokens"),
        cache_write_tokens: tokens("cacheWriteInputTokens"),
    }
}

fn plan_entry(step: &Value) -> PlanEntry {
    PlanEntry {
        content: step["step"].as_str().unwrap_or_default().into(),
        priority: PlanPriority::Medium,
        status: match step["status"].as_str() {
            Some("completed") => PlanStatus::Completed,
            Some("inProgress") => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        },
    }
}

/// Converts an item to a call. Returns `None` for an item that is not a call.
fn call_update(item: &Value, cwd: PathBuf) -> Option<CallUpdate> {
    let text = |field: &str| item[field].as_str().unwrap_or_default();
    let status = match item["status"].as_str() {
        Some("completed") => ToolStatus::Completed,
        Some("failed" | "declined") => ToolStatus::Failed,
        _ => ToolStatus::InProgress,
    };
    let call = |title: String, kind: ToolKind, input: Value| CallUpdate {
        status: Some(status),
        ..CallUpdate::new(title, kind, Some(input))
    };
    Some(match item["type"].as_str()? {
        "commandExecution" => {
            let output = item["aggregatedOutput"].as_str();
            CallUpdate {
                // Replaces the end of the output that was shown while the command ran.
                content: output.map(|output| vec![ToolContent::text(shortened(output))]),
                ..command(text("command"), &item["cwd"], Some(status))
            }
        }
        "fileChange" => CallUpdate { status: Some(status), ..changes(&item["changes"], cwd) },
        "mcpToolCall" => {
            let content = item["result"]["content"].as_array().into_iter().flatten();
            let texts: Vec<&str> = content.filter_map(|content| content["text"].as_str()).collect();
            let output = item["error"]["message"].as_str().map_or_else(|| texts.join("\n"), String::from);
            let title = format!("{}: {}", text("server"), text("tool"));
            CallUpdate { output: Some(output), ..call(title, ToolKind::Other, item["arguments"].clone()) }
        }
        "dynamicToolCall" => call(text("tool").into(), ToolKind::Other, item["arguments"].clone()),
        "collabAgentToolCall" => call(format!("Agent: {}", text("tool")), ToolKind::Other, json!({ "prompt": item["prompt"] })),
        "webSearch" => call(format!("Search the web: {}", text("query")), ToolKind::Fetch, json!({ "query": item["query"] })),
        "imageView" => {
            let mut view = call(format!("View {}", text("path")), ToolKind::Read, json!({ "path": item["path"] }));
            view.change.locations = Some(vec![Location { path: cwd.join(text("path")), line: None }]);
            view
        }
        "contextCompaction" => call("Compact the context".into(), ToolKind::Think, json!({})),
        _ => return None,
    })
}

fn shortened(output: &str) -> String {
    crate::content::shortened(output.to_owned(), limits::AGENT_OUTPUT_BYTES_MAX)
}

/// Describes a call that runs a command. Codex runs `/bin/bash -lc 'LINE'`, which is shown as LINE.
fn command(line: &str, cwd: &Value, status: Option<ToolStatus>) -> CallUpdate {
    let line = inner(line).unwrap_or_else(|| line.to_owned());
    let input = json!({ "command": line, "cwd": cwd });
    CallUpdate { status, ..CallUpdate::new(line, ToolKind::Execute, Some(input)) }
}

/// Returns the quoted command line after `SHELL -lc` or `SHELL -c`.
fn inner(line: &str) -> Option<String> {
    let (shell, rest) = line.split_once(' ')?;
    let quoted = rest.strip_prefix("-lc ").or_else(|| rest.strip_prefix("-c "))?;
    if !["bash", "zsh", "sh"].contains(&shell.rsplit('/').next()?) {
        return None;
    }
    let plain =
        |text: &str| !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || "_-./=,:@%+".contains(letter));
    if plain(quoted) {
        return Some(quoted.into());
    }
    if let Some(text) = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        // Show the whole command if the shell interprets a character within the double quotes.
        return (!text.contains(['"', '\\', '$', '`'])).then(|| text.into());
    }
    // Quotes within the line are written as `'\''`.
    let pieces = quoted.strip_prefix('\'')?.strip_suffix('\'')?.split("'\\''");
    let pieces: Vec<&str> = pieces.collect();
    (!pieces.iter().any(|piece| piece.contains('\''))).then(|| pieces.join("'"))
}

/// Describes a call that changes files.
fn changes(list: &Value, cwd: PathBuf) -> CallUpdate {
    let list: Vec<&Value> = list.as_array().into_iter().flatten().take(limits::AGENT_ITEMS_MAX).collect();
    // A file that is moved has two paths.
    let both = |change: &&Value| -> Option<(String, Vec<String>)> {
        let (path, target) = (change["path"].as_str()?, change["kind"]["move_path"].as_str());
        let name = target.map_or_else(|| path.into(), |target| format!("{path} → {target}"));
        Some((name, [path].into_iter().chain(target).map(String::from).collect()))
    };
    let (names, paths): (Vec<String>, Vec<Vec<String>>) = list.iter().filter_map(both).unzip();
    let paths = paths.concat();
    let locations = paths.iter().map(|path| Location { path: cwd.join(path), line: None });
    let content: Vec<ToolContent> = list.iter().flat_map(|change| differences(change, &cwd)).collect();
    let title = match paths.is_empty() {
        true => "Edit files".into(),
        false => format!("Edit {}", crate::content::listed(&names, AGENT_PATHS_SHOWN)),
    };
    let mut update = CallUpdate::new(title, ToolKind::Edit, Some(json!({ "paths": paths })));
    update.change.locations = (!paths.is_empty()).then(|| locations.collect());
    update.content = (!content.is_empty()).then_some(content);
    update
}

/// Returns the changed parts of a file. `diff` is the content of a new or deleted file, otherwise a
/// unified diff.
fn differences(change: &Value, cwd: &Path) -> Vec<ToolContent> {
    let (Some(path), Some(diff)) = (change["path"].as_str(), change["diff"].as_str()) else { return Vec::new() };
    let path = cwd.join(path);
    let part = |old_text: Option<String>, new_text: String| ToolContent::Diff { path: path.clone(), old_text, new_text };
    match change["kind"]["type"].as_str() {
        Some("add") => return vec![part(None, diff.into())],
        Some("delete") => return vec![part(Some(diff.into()), String::new())],
        _ => {}
    }
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.push((String::new(), String::new()));
            continue;
        }
        let Some((old, new)) = hunks.last_mut() else { continue };
        let add = |text: &mut String, line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        match line.split_at_checked(1) {
            Some(("-", line)) => add(old, line),
            Some(("+", line)) => add(new, line),
            Some((" ", line)) => {
                add(old, line);
                add(new, line);
            }
            _ => {}
        }
    }
    hunks.into_iter().map(|(old, new)| part(Some(old), new)).collect()
}

/// Converts a request of Codex to a permission request. Returns `None` if the user cannot decide
/// it.
pub(super) async fn permission_request(method: &str, params: &Value, events: &mut TurnEvents<'_>) -> Option<AgentRequest> {
    let id = params["itemId"].as_str().unwrap_or_default();
    match method {
        "item/commandExecution/requestApproval" => {
            let update = match (params["command"].as_str(), params["networkApprovalContext"]["host"].as_str()) {
                (Some(line), None) => command(line, &params["cwd"], None),
                (_, Some(host)) => {
                    let input = json!({ "url": format!("https://{host}/") });
                    CallUpdate::new(format!("Connect to {host}"), ToolKind::Fetch, Some(input))
                }
                (None, None) => {
                    let change = ToolChange { kind: Some(ToolKind::Execute), ..ToolChange::default() };
                    CallUpdate { change, ..CallUpdate::default() }
                }
            };
            let call = asked(id, update, events).await?;
            Some(AgentRequest { call, options: options(true) })
        }
        "item/fileChange/requestApproval" => {
            if events.open_call(id).is_none() {
                events.call(id, changes(&Value::Null, PathBuf::new())).await;
            }
            Some(AgentRequest { call: events.open_call(id)?.clone(), options: options(true) })
        }
        "mcpServer/elicitation/request" if params["_meta"]["codex_approval_kind"] == "mcp_tool_call" => {
            let (server, meta) = (params["serverName"].as_str()?, &params["_meta"]);
            let title = format!("{server}: {}", meta["tool_name"].as_str()?);
            let call = events.find_open_call(|call| call.title == title)?.clone();
            let persists = meta["persist"].as_array().is_some_and(|list| list.iter().any(|value| value == "session"));
            Some(AgentRequest { call, options: options(persists) })
        }
        _ => None,
    }
}

/// Returns the call of a permission request, with the title, kind and input from the request: a
/// call may have several permission requests, each about a part of it. Returns `None` if the call
/// has ended.
async fn asked(id: &str, update: CallUpdate, events: &mut TurnEvents<'_>) -> Option<Call> {
    if events.open_call(id).is_none() {
        events.call(id, update.clone()).await;
    }
    let mut call = events.open_call(id)?.clone();
    let ToolChange { title, kind, input, .. } = update.change;
    call.title = title.unwrap_or(call.title);
    call.details.kind = kind.unwrap_or(call.details.kind);
    call.details.input = input.unwrap_or(call.details.input);
    Some(call)
}

/// Returns the options of a permission request. Codex accepts them even if `availableDecisions`
/// lists other decisions, such as a rule that Codex would save.
fn options(for_session: bool) -> Vec<PermissionOption> {
    let rows = [
        ("accept", "Allow", PermissionOptionKind::AllowOnce),
        ("acceptForSession", "Allow for this session", PermissionOptionKind::AllowAlways),
        ("decline", "Reject", PermissionOptionKind::RejectOnce),
    ];
    let rows = rows.into_iter().filter(|(id, ..)| for_session || *id != "acceptForSession");
    rows.map(|(id, name, kind)| PermissionOption { option_id: id.into(), name: name.into(), kind }).collect()
}

/// Creates the response to a permission request with the chosen option.
pub(super) fn answer(method: &str, option: &str) -> Value {
    match method {
        "mcpServer/elicitation/request" => match option {
            "acceptForSession" => json!({ "action": "accept", "content": {}, "_meta": { "persist": "session" } }),
            option => json!({ "action": option, "content": {} }),
        },
        _ => json!({ "decision": option }),
    }
}
