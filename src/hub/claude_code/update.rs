//! Decodes the messages of Claude Code. Unknown messages and fields are skipped, because they
//! differ between versions.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::content::{
    Cost, Location, PermissionOption, PermissionOptionKind, PlanEntry, PlanPriority, PlanStatus, Role, ToolContent, ToolKind,
    ToolStatus, Usage,
};
use crate::event::Severity;
use crate::hub::call::CallUpdate;
use crate::hub::conversation::{AgentReport, choice, option, slash_command};
use crate::hub::events::TurnEvents;
use crate::hub::peer::Response;
use crate::hub::permission::{AgentRequest, Choice};
use crate::limits;
use crate::session::{AgentChoice, AgentOption};

/// The state of Claude Code that its messages change.
#[derive(Default)]
pub(super) struct ClaudeState {
    report: AgentReport,
    mode: String,
    model: String,
    models: Vec<AgentChoice>,
    /// The cost of the process so far.
    cost: f64,
}

impl ClaudeState {
    /// Reads the responses to the requests `initialize` and `get_settings`.
    pub(super) fn initialized(&mut self, response: &Value, settings: &Value) {
        let commands = response["commands"].as_array().into_iter().flatten().take(limits::AGENT_ITEMS_MAX);
        self.report.commands = commands.filter_map(|command| slash_command(command, &command["argumentHint"])).collect();
        self.mode = response["current_permission_mode"].as_str().unwrap_or("default").into();
        self.report.version = response["claude_code_version"].as_str().map(String::from);
        let models: Vec<&Value> = response["models"].as_array().into_iter().flatten().take(limits::AGENT_ITEMS_MAX).collect();
        let model = |model: &Value| {
            let value = model["value"].as_str()?;
            let description = model["description"].as_str().map(String::from);
            Some(AgentChoice { description, ..choice(value, model["displayName"].as_str().unwrap_or(value)) })
        };
        self.models = models.iter().filter_map(|entry| model(entry)).collect();
        let applied = &settings["applied"]["model"];
        let current = ["value", "resolvedModel"].iter().find_map(|field| models.iter().find(|model| model[*field] == *applied));
        self.model = current.map_or(applied, |model| &model["value"]).as_str().unwrap_or_default().into();
    }

    pub(super) fn report(&self) -> AgentReport {
        let mut options = vec![self.mode_option()];
        if !self.models.is_empty() {
            options.push(option("model", "Model", &self.model, self.models.clone()));
        }
        AgentReport { options, ..self.report.clone() }
    }

    /// Records that an option was set.
    pub(super) fn set(&mut self, id: &str, value: &str) {
        match id {
            "mode" => self.mode = value.into(),
            _ => self.model = value.into(),
        }
    }

    pub(super) fn handle(&mut self, message: &Value) {
        if message["type"] == "system" {
            if let Some(mode) = message["permissionMode"].as_str() {
                self.mode = mode.into();
            }
            if let Some(model) = message["model"].as_str() {
                self.report.model_in_use = Some(model.into());
            }
            if let Some(version) = message["claude_code_version"].as_str() {
                self.report.version = Some(version.into());
            }
        }
        if let Some(models) = message["modelUsage"].as_object() {
            let largest = models.values().filter_map(|model| model["contextWindow"].as_u64()).max();
            self.report.context_window = largest.unwrap_or(self.report.context_window);
        }
    }

    fn mode_option(&self) -> AgentOption {
        let mut modes = vec![choice("default", "Default"), choice("acceptEdits", "Accept edits"), choice("plan", "Plan")];
        if !modes.iter().any(|mode| mode.value == self.mode) {
            modes.push(choice(&self.mode, &self.mode));
        }
        option("mode", "Mode", &self.mode, modes)
    }

    /// Returns the cost since the last result; `None` if the cost did not grow.
    pub(super) fn spent(&mut self, result: &Value) -> Option<Cost> {
        let total = result["total_cost_usd"].as_f64()?;
        let spent = total - std::mem::replace(&mut self.cost, total);
        (spent > 0.0).then(|| Cost::from(spent))
    }
}

/// Records the messages of a turn.
pub(super) struct ClaudeRecorder {
    name: String,
    /// The id of the message that is streamed.
    message: String,
    /// Messages whose text was streamed.
    streamed: HashSet<String>,
    /// Tokens of the context in the last request to the model.
    context_tokens: u64,
    /// The usage at the start of the running request.
    started: Usage,
    /// The usage of the turn's requests that was recorded.
    recorded: Usage,
}

impl ClaudeRecorder {
    pub(super) fn new(name: &str) -> ClaudeRecorder {
        let (streamed, started, recorded) = (HashSet::new(), Usage::default(), Usage::default());
        ClaudeRecorder { name: name.into(), message: String::new(), streamed, context_tokens: 0, started, recorded }
    }

    pub(super) async fn record(&mut self, message: &Value, events: &mut TurnEvents<'_>) {
        let own = message["parent_tool_use_id"].is_null();
        match message["type"].as_str() {
            // Show the calls of subagents, not their texts.
            Some("stream_event") if own => self.stream(&message["event"], events).await,
            Some("assistant") => {
                let streamed = message["message"]["id"].as_str().is_some_and(|id| self.streamed.contains(id));
                // Skip the text of an error: the result repeats it.
                let shows_text = own && !streamed && message["error"].is_null();
                for block in blocks(message) {
                    match block["type"].as_str() {
                        Some("text") if shows_text => {
                            events.text(Role::Assistant, None, block["text"].as_str().unwrap_or_default()).await;
                            events.end_text().await;
                        }
                        Some("thinking") if shows_text => {
                            events.text(Role::Thought, None, block["thinking"].as_str().unwrap_or_default()).await;
                            events.end_text().await;
                        }
                        Some("tool_use") => tool_use(block, events).await,
                        _ => {}
                    }
                }
            }
            Some("user") => {
                for block in blocks(message).filter(|block| block["type"] == "tool_result") {
                    tool_result(block, events).await;
                }
            }
            Some("system") => self.system(message, events).await,
            _ => {}
        }
    }

    async fn stream(&mut self, event: &Value, events: &mut TurnEvents<'_>) {
        let block = format!("{}/{}", self.message, event["index"]);
        match event["type"].as_str() {
            Some("message_start") => {
                self.message = event["message"]["id"].as_str().unwrap_or_default().into();
                self.streamed.insert(self.message.clone());
                self.started = usage(&event["message"]["usage"]);
                self.context_tokens = self.started.input_tokens + self.started.output_tokens;
            }
            Some("content_block_start") if event["content_block"]["type"] == "tool_use" => {
                let call = &event["content_block"];
                let name = call["name"].as_str().unwrap_or_default();
                let update = CallUpdate { status: Some(ToolStatus::Pending), ..CallUpdate::new(name, kind(name), None) };
                events.call(call["id"].as_str().unwrap_or_default(), update).await;
            }
            Some("content_block_delta") => {
                let delta = &event["delta"];
                if let Some(text) = delta["text"].as_str() {
                    events.text(Role::Assistant, Some(&block), text).await;
                } else if let Some(thought) = delta["thinking"].as_str() {
                    events.text(Role::Thought, Some(&block), thought).await;
                }
            }
            Some("content_block_stop") => events.end_text().await,
            Some("message_delta") => {
                let mut usage = usage(&event["usage"]);
                if usage.input_tokens > 0 {
                    self.context_tokens = usage.input_tokens + usage.output_tokens;
                } else {
                    usage = Usage { output_tokens: usage.output_tokens, ..self.started };
                }
                if events.counts_requests {
                    self.recorded += usage;
                    events.usage(self.name.clone(), usage, None, (self.context_tokens, 0)).await;
                }
            }
            _ => {}
        }
    }

    async fn system(&self, message: &Value, events: &TurnEvents<'_>) {
        let (severity, title, description) = match message["subtype"].as_str() {
            Some("api_retry") => {
                let status = message["error_status"].as_u64().map(|status| format!(" (status {status})")).unwrap_or_default();
                let error = message["error"].as_str().unwrap_or("error");
                let attempt = format!("attempt {} of {}: {error}{status}", message["attempt"], message["max_retries"]);
                (Severity::Warning, "trying again", attempt)
            }
            Some("compact_boundary") => (Severity::Info, "the context was compacted", String::new()),
            _ => return,
        };
        events.notice(severity, format!("agent {}: {title}", self.name), description).await;
    }

    /// Records the usage of the turn that is not recorded yet.
    pub(super) async fn end(&self, result: &Value, cost: Option<Cost>, events: &TurnEvents<'_>) {
        let usage = usage(&result["usage"]).without(self.recorded);
        if usage != Usage::default() || cost.is_some() {
            let models = result["modelUsage"].as_object();
            let window = models.into_iter().flat_map(Map::values).filter_map(|model| model["contextWindow"].as_u64()).max();
            events.usage(self.name.clone(), usage, cost, (self.context_tokens, window.unwrap_or(0))).await;
        }
    }
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["message"]["content"].as_array().into_iter().flatten()
}

fn usage(usage: &Value) -> Usage {
    let tokens = |field: &str| usage[field].as_u64().unwrap_or(0);
    let (cache_read_tokens, cache_write_tokens) = (tokens("cache_read_input_tokens"), tokens("cache_creation_input_tokens"));
    Usage {
        input_tokens: tokens("input_tokens") + cache_read_tokens + cache_write_tokens,
        output_tokens: tokens("output_tokens"),
        cache_read_tokens,
        cache_write_tokens,
    }
}

/// Records a call whose input is complete.
async fn tool_use(block: &Value, events: &mut TurnEvents<'_>) {
    let (name, input) = (block["name"].as_str().unwrap_or_default(), &block["input"]);
    let update = CallUpdate { status: Some(ToolStatus::InProgress), ..call_update(name, input) };
    events.call(block["id"].as_str().unwrap_or_default(), update).await;
    if let Some(todos) = input["todos"].as_array().filter(|_| name == "TodoWrite") {
        events.plan(todos.iter().map(plan_entry).collect()).await;
    }
}

async fn tool_result(block: &Value, events: &mut TurnEvents<'_>) {
    let output = match &block["content"] {
        Value::String(text) => text.clone(),
        content => {
            let texts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    };
    let status = if block["is_error"] == true { ToolStatus::Failed } else { ToolStatus::Completed };
    let update = CallUpdate { status: Some(status), output: Some(output), ..CallUpdate::default() };
    let id = block["tool_use_id"].as_str().unwrap_or_default();
    // Skip results of calls of earlier turns: they are already recorded.
    if events.open_call(id).is_some() {
        events.call(id, update).await;
    }
}

fn plan_entry(todo: &Value) -> PlanEntry {
    PlanEntry {
        content: todo["content"].as_str().unwrap_or_default().into(),
        priority: PlanPriority::Medium,
        status: match todo["status"].as_str() {
            Some("completed") => PlanStatus::Completed,
            Some("in_progress") => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        },
    }
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "Bash" | "Monitor" => ToolKind::Execute,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Read" => ToolKind::Read,
        "Grep" | "Glob" | "LS" => ToolKind::Search,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

/// Describes a tool call: its title, kind, input, content and location.
fn call_update(tool: &str, input: &Value) -> CallUpdate {
    let text = |field: &str| input[field].as_str();
    let path = ["file_path", "notebook_path", "path"].iter().find_map(|field| text(field));
    let subject = ["command", "pattern", "url", "query", "description", "skill"].iter().find_map(|field| text(field)).or(path);
    let title = match (kind(tool), subject) {
        (ToolKind::Execute, Some(command)) => command.into(),
        (_, Some(subject)) => format!("{tool} {subject}"),
        (_, None) => tool.strip_prefix("mcp__").map_or_else(|| tool.to_owned(), |tool| tool.replacen("__", ": ", 1)),
    };
    let content = match (path, text("content"), text("old_string"), text("new_string")) {
        (Some(path), Some(content), ..) if tool == "Write" => {
            Some(ToolContent::Diff { path: path.into(), old_text: None, new_text: content.into() })
        }
        (Some(path), _, Some(old), Some(new)) => {
            Some(ToolContent::Diff { path: path.into(), old_text: Some(old.into()), new_text: new.into() })
        }
        _ => text("plan").filter(|_| tool == "ExitPlanMode").map(ToolContent::text),
    };
    let mut update = CallUpdate::new(title, kind(tool), Some(input.clone()));
    update.change.locations = path.map(|path| vec![Location { path: path.into(), line: None }]);
    update.content = content.map(|content| vec![content]);
    update
}

const ALLOW: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT: &str = "reject_once";

/// Converts a control request to a permission request. The error is the response to a request that
/// cannot be shown to the user.
pub(super) async fn permission_request(request: &Value, events: &mut TurnEvents<'_>) -> Result<AgentRequest, Response> {
    if request["subtype"] != "can_use_tool" {
        return Err(Err("not supported".into()));
    }
    let tool = request["tool_name"].as_str().unwrap_or_default();
    if tool == "AskUserQuestion" {
        return Err(Ok(denial("Questions cannot be shown here. Write the question as your answer.")));
    }
    let id = request["tool_use_id"].as_str().or(request["request_id"].as_str()).unwrap_or_default();
    events.call(id, call_update(tool, &request["input"])).await;
    let Some(call) = events.open_call(id).cloned() else {
        return Err(Ok(denial("The call has ended.")));
    };
    let option = |id: &str, name: &str, kind| PermissionOption { option_id: id.into(), name: name.into(), kind };
    let mut options = vec![option(ALLOW, "Allow", PermissionOptionKind::AllowOnce)];
    if !suggestions(request).is_empty() {
        options.push(option(ALLOW_ALWAYS, "Allow for this session", PermissionOptionKind::AllowAlways));
    }
    options.push(option(REJECT, "Reject", PermissionOptionKind::RejectOnce));
    Ok(AgentRequest { call, options })
}

/// Returns the suggested rules and directories, changed to apply to the session only: Claude Code
/// does not save them.
fn suggestions(request: &Value) -> Vec<Value> {
    let list = request["permission_suggestions"].as_array().into_iter().flatten();
    let kept = list.filter(|suggestion| ["addRules", "addDirectories"].iter().any(|kind| suggestion["type"] == *kind));
    let mut kept: Vec<Value> = kept.cloned().collect();
    for suggestion in &mut kept {
        suggestion["destination"] = "session".into();
    }
    kept
}

/// Creates the response to a permission request.
pub(super) fn answer(request: &Value, choice: &Choice) -> Value {
    let input = &request["input"];
    match choice.option_id.as_deref() {
        Some(ALLOW) => json!({ "behavior": "allow", "updatedInput": input }),
        Some(ALLOW_ALWAYS) => {
            json!({ "behavior": "allow", "updatedInput": input, "updatedPermissions": suggestions(request) })
        }
        Some(_) => denial("The user or a rule denied this call. Do not try the same in another way."),
        None => denial("The turn was cancelled."),
    }
}

fn denial(message: &str) -> Value {
    json!({ "behavior": "deny", "message": message })
}
