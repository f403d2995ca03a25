//! Decodes the updates of ACP agents. Unknown updates and fields are skipped, because agents send
//! their own extensions.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{gemini_command, kimi_input};
use crate::content::{
    Cost, Location, Part, PermissionOption, PermissionOptionKind, PlanEntry, PlanPriority, PlanStatus, Role, ToolContent, ToolKind,
    ToolStatus, Usage,
};
use crate::event::ToolChange;
use crate::hub::call::CallUpdate;
use crate::hub::conversation::{AgentReport, option, slash_command};
use crate::hub::events::TurnEvents;
use crate::hub::peer::Peer;
use crate::hub::raw_output;
use crate::limits;
use crate::protocol::{acp, content};
use crate::session::{AgentChoice, AgentOption};

/// The state of an agent that its notifications change.
#[derive(Default)]
pub(super) struct AcpState {
    /// The id of the session, once it is known. A process has one session.
    pub session: Option<String>,
    report: AgentReport,
    /// The agent is Kimi Code, see [`kimi_input`].
    is_kimi: bool,
    options: Vec<KnownOption>,
    /// Tokens of the context window in use.
    context_tokens: u64,
    /// The cost of the session so far.
    cost: Cost,
}

/// An option of an agent, and the request that sets it.
struct KnownOption {
    option: AgentOption,
    method: &'static str,
    /// Name of the parameter that carries the value, for example `modeId`.
    field: &'static str,
}

impl AcpState {
    /// Creates the state of a session whose recorded cost is `cost`.
    pub(super) fn new(cost: Cost) -> AcpState {
        AcpState { cost, ..AcpState::default() }
    }

    pub(super) fn report(&self) -> AgentReport {
        let options = self.options.iter().map(|known| known.option.clone()).collect();
        AgentReport { options, ..self.report.clone() }
    }

    /// Reads the response to `initialize`, and the modes, models and options of a new or loaded
    /// session.
    pub(super) fn opened(&mut self, initialized: &Value, response: &Value) {
        let agent = &initialized["agentInfo"];
        self.report.version = agent["version"].as_str().map(String::from);
        self.is_kimi = agent["name"].as_str().is_some_and(|name| name.to_lowercase().contains("kimi"));
        self.options.clear();
        self.set_config_options(&response["configOptions"]);
        let modes = &response["modes"];
        self.add("mode", "Mode", "session/set_mode", "modeId", &modes["currentModeId"], &modes["availableModes"], "id");
        let models = &response["models"];
        self.add(
            "model",
            "Model",
            "session/set_model",
            "modelId",
            &models["currentModelId"],
            &models["availableModels"],
            "modelId",
        );
    }

    #[expect(clippy::too_many_arguments, reason = "the shape of one of two similar lists")]
    fn add(
        &mut self,
        id: &str,
        name: &str,
        method: &'static str,
        field: &'static str,
        current: &Value,
        list: &Value,
        value_field: &str,
    ) {
        let has = self.options.iter().any(|known| known.option.id == id || known.option.category.as_deref() == Some(id));
        let choices = choices(list, value_field);
        if has || choices.is_empty() {
            return;
        }
        let option = option(id, name, current.as_str().unwrap_or_default(), choices);
        self.options.push(KnownOption { option, method, field });
    }

    /// Reads a list of options, if it is one.
    pub(super) fn set_config_options(&mut self, list: &Value) {
        let Some(list) = list.as_array() else { return };
        self.options.retain(|known| known.method != SET_CONFIG_OPTION);
        for option in list.iter().take(limits::AGENT_ITEMS_MAX) {
            let Some(id) = option["id"].as_str() else { continue };
            let (current, choices) = match &option["currentValue"] {
                Value::String(current) => (current.clone(), choices(&option["options"], "value")),
                Value::Bool(is_on) if option["type"] == BOOLEAN => (is_on.to_string(), AgentOption::switch_choices()),
                _ => continue,
            };
            let option = AgentOption {
                id: id.into(),
                name: option["name"].as_str().unwrap_or(id).into(),
                category: option["category"].as_str().map(String::from),
                current,
                choices,
            };
            self.options.push(KnownOption { option, method: SET_CONFIG_OPTION, field: "value" });
        }
    }

    /// Reads an update that is not about a turn.
    pub(super) fn handle(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str() {
            Some("available_commands_update") => {
                let list = update["availableCommands"].as_array().into_iter().flatten();
                self.report.commands =
                    list.take(limits::AGENT_ITEMS_MAX).filter_map(|entry| slash_command(entry, &entry["input"]["hint"])).collect();
            }
            Some("current_mode_update") => {
                if let Some(mode) = update["currentModeId"].as_str() {
                    self.set_current("mode", mode);
                }
            }
            Some("config_option_update") => self.set_config_options(&update["configOptions"]),
            Some("usage_update") => {
                self.report.context_window = update["size"].as_u64().unwrap_or(self.report.context_window);
                self.context_tokens = update["used"].as_u64().unwrap_or(self.context_tokens);
            }
            _ => {}
        }
    }

    /// Returns the method and the parameters of the request that sets an option. The parameters do
    /// not contain the session's id.
    pub(super) fn setter(&self, id: &str, value: &str) -> Option<(&'static str, Value)> {
        let known = self.options.iter().find(|known| known.option.id == id)?;
        let mut params = json!({});
        params[known.field] = value.into();
        if known.method == SET_CONFIG_OPTION {
            params["configId"] = id.into();
            if known.option.switch().is_some() {
                (params["type"], params[known.field]) = (BOOLEAN.into(), (value == "true").into());
            }
        }
        Some((known.method, params))
    }

    /// Sets the value of an option. Returns the previous value.
    pub(super) fn set_current(&mut self, id: &str, value: &str) -> String {
        let of = |known: &&mut KnownOption| known.option.id == id || known.option.category.as_deref() == Some(id);
        let known = self.options.iter_mut().find(of);
        known.map(|known| std::mem::replace(&mut known.option.current, value.into())).unwrap_or_default()
    }

    /// Returns the cost since the last call. `total` is the cost of the whole session, if known.
    fn spent(&mut self, total: Option<f64>) -> Option<Cost> {
        let total = Cost::from(total?).nano_dollars();
        let before = std::mem::replace(&mut self.cost, Cost::of_nano_dollars(total)).nano_dollars();
        // A restarted agent may count from zero.
        let spent = if total < before { total } else { total - before };
        (spent > 0).then(|| Cost::of_nano_dollars(spent))
    }
}

const SET_CONFIG_OPTION: &str = "session/set_config_option";
/// Value of `type`, in an option and in the request that sets it, for an option that is on or off.
const BOOLEAN: &str = "boolean";

/// Reads the choices of an option. Groups of choices are flattened.
fn choices(list: &Value, value_field: &str) -> Vec<AgentChoice> {
    let items = list.as_array().into_iter().flatten();
    let flat = items.flat_map(|item| match item["options"].as_array() {
        Some(group) => group.iter().collect(),
        None => vec![item],
    });
    let choice = |item: &Value| {
        let value = item[value_field].as_str()?;
        Some(AgentChoice {
            value: value.into(),
            name: item["name"].as_str().unwrap_or(value).into(),
            description: item["description"].as_str().map(String::from),
        })
    };
    flat.take(limits::AGENT_ITEMS_MAX).filter_map(choice).collect()
}

pub(super) async fn record(update: &Value, events: &mut TurnEvents<'_>, name: &str, peer: &Peer<AcpState>) {
    match update["sessionUpdate"].as_str() {
        Some("agent_message_chunk") => chunk(Role::Assistant, update, events).await,
        Some("agent_thought_chunk") => chunk(Role::Thought, update, events).await,
        Some("tool_call" | "tool_call_update") => {
            if let Some(given) = update["toolCallId"].as_str() {
                let mut call = call_update(update);
                if call.change.input.is_none() && peer.with_state(|state| state.is_kimi) {
                    call.change.input = kimi_input::input(update);
                }
                events.call(given, call).await;
            }
        }
        Some("plan") => {
            let entries = update["entries"].as_array().into_iter().flatten();
            events.plan(entries.map(plan_entry).collect()).await;
        }
        Some("usage_update") => {
            let dollars = Some(&update["cost"]).filter(|cost| cost["currency"].as_str().is_none_or(|unit| unit == "USD"));
            let total = dollars.and_then(|cost| cost["amount"].as_f64());
            let (cost, context) =
                peer.with_state(|state| (state.spent(total), (state.context_tokens, state.report.context_window)));
            events.usage(name.into(), Usage::default(), cost, context).await;
        }
        _ => {}
    }
}

pub(super) async fn record_usage(response: &Value, events: &TurnEvents<'_>, name: &str, peer: &Peer<AcpState>) {
    let usage = &response["usage"];
    let tokens = |field: &str| usage[field].as_u64().unwrap_or(0);
    let (cached_read, cached_write) = (tokens("cachedReadTokens"), tokens("cachedWriteTokens"));
    let usage = Usage {
        input_tokens: tokens("inputTokens") + cached_read + cached_write,
        output_tokens: tokens("outputTokens"),
        cache_read_tokens: cached_read,
        cache_write_tokens: cached_write,
    };
    if usage != Usage::default() {
        let context = peer.with_state(|state| (state.context_tokens, state.report.context_window));
        events.usage(name.into(), usage, None, context).await;
    }
}

async fn chunk(role: Role, update: &Value, events: &mut TurnEvents<'_>) {
    let block = &update["content"];
    match block["text"].as_str().filter(|_| block["type"] == "text") {
        Some(text) => events.text(role, update["messageId"].as_str(), text).await,
        None => {
            if let Some(part) = part(block) {
                events.part(role, part).await;
            }
        }
    }
}

/// Converts a content block. Returns `None` if its type is unknown or it is invalid.
fn part(block: &Value) -> Option<Part> {
    content::part(decode::<acp::ContentBlock>(block)?).ok()
}

fn decode<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

/// Converts the fields of a tool call.
pub(super) fn call_update(update: &Value) -> CallUpdate {
    let output = &update["rawOutput"];
    let of_terminal = |field: &str| {
        let output = &update["_meta"][field];
        output.as_str().or(output["data"].as_str()).map(String::from)
    };
    let output = match output {
        Value::Null => of_terminal("terminal_output"),
        output => Some(raw_output::text(output)),
    };
    let input = match &update["rawInput"] {
        Value::Null => gemini_command::input(update),
        input => Some(input.clone()),
    };
    CallUpdate {
        change: ToolChange {
            title: update["title"].as_str().map(String::from),
            kind: update["kind"].as_str().map(kind),
            input,
            locations: update["locations"].as_array().map(|list| list.iter().filter_map(location).collect()),
        },
        status: match update["status"].as_str() {
            Some("pending") => Some(ToolStatus::Pending),
            Some("in_progress") => Some(ToolStatus::InProgress),
            Some("completed") => Some(ToolStatus::Completed),
            Some("failed" | "cancelled") => Some(ToolStatus::Failed),
            _ => None,
        },
        content: update["content"].as_array().map(|list| list.iter().filter_map(tool_content).collect()),
        output,
        more_output: of_terminal("terminal_output_delta"),
    }
}

fn kind(kind: &str) -> ToolKind {
    match kind {
        "read" => ToolKind::Read,
        "edit" | "delete" | "move" => ToolKind::Edit,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Execute,
        "think" => ToolKind::Think,
        "fetch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

/// Converts the content of a call. Terminals belong to the agent and are omitted.
fn tool_content(content: &Value) -> Option<ToolContent> {
    match content["type"].as_str()? {
        "content" => Some(ToolContent::Content { content: part(&content["content"])? }),
        "diff" => Some(ToolContent::Diff {
            path: content["path"].as_str()?.into(),
            old_text: content["oldText"].as_str().map(String::from),
            new_text: content["newText"].as_str()?.into(),
        }),
        _ => None,
    }
}

fn location(location: &Value) -> Option<Location> {
    let line = location["line"].as_u64().and_then(|line| u32::try_from(line).ok());
    Some(Location { path: location["path"].as_str()?.into(), line })
}

fn plan_entry(entry: &Value) -> PlanEntry {
    PlanEntry {
        content: entry["content"].as_str().unwrap_or_default().into(),
        priority: match entry["priority"].as_str() {
            Some("high") => PlanPriority::High,
            Some("low") => PlanPriority::Low,
            _ => PlanPriority::Medium,
        },
        status: match entry["status"].as_str() {
            Some("completed") => PlanStatus::Completed,
            Some("in_progress") => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        },
    }
}

/// Returns the options of a permission request, without those of an unknown kind. Of several
/// options with the same id, keeps one, preferably a refusal, because the agent receives only the
/// id.
pub(super) fn options(list: &Value) -> Vec<PermissionOption> {
    let option = |option: &Value| {
        let kind = match option["kind"].as_str()? {
            "allow_once" => PermissionOptionKind::AllowOnce,
            "allow_always" => PermissionOptionKind::AllowAlways,
            "reject_once" => PermissionOptionKind::RejectOnce,
            "reject_always" => PermissionOptionKind::RejectAlways,
            _ => return None,
        };
        let id = option["optionId"].as_str()?;
        Some(PermissionOption { option_id: id.into(), name: option["name"].as_str().unwrap_or(id).into(), kind })
    };
    let refuses =
        |option: &PermissionOption| matches!(option.kind, PermissionOptionKind::RejectOnce | PermissionOptionKind::RejectAlways);
    let mut options: Vec<PermissionOption> = Vec::new();
    for option in list.as_array().into_iter().flatten().filter_map(option) {
        match options.iter_mut().find(|known| known.option_id == option.option_id) {
            Some(known) if refuses(&option) && !refuses(known) => *known = option,
            Some(_) => {}
            None => options.push(option),
        }
    }
    options
}
