//! Converts the events of OpenCode to those of a turn. Messages and parts are updated by their ids,
//! so that events and the state after a reconnection are recorded in the same way.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::calls::{call_update, is_allowed, kind, permission_request};
use super::stream::ServerState;
use super::tree::SessionTree;
use crate::content::{Cost, Part, Role, StopReason, Usage};
use crate::error::{Error, Kind, Result};
use crate::event::{Body, Severity, ToolChange};
use crate::hub::call::CallUpdate;
use crate::hub::driver::Signal;
use crate::hub::events::TurnEvents;

/// Time for which a turn waits for late reports after its agent reported that it is idle.
const AGENT_SETTLE: Duration = Duration::from_secs(2);
/// How long a permission request waits for the input of its call.
const AGENT_CALL_INPUT: Duration = Duration::from_secs(1);

/// Records a turn in a session of OpenCode.
pub(super) struct OpencodeRecorder {
    /// The session and the sessions of its subagents.
    pub sessions: SessionTree,
    /// The id of the last message before the turn. Ids of later messages are greater.
    after: String,
    /// Parts of the prompt that OpenCode has not echoed yet; `None` matches any text.
    own: Vec<Option<String>>,
    /// The user's messages of the turn.
    users: HashSet<String>,
    /// The parts of the user's messages so far.
    user_parts: HashSet<String>,
    /// The name of the agent, for usage without a model.
    name: String,
    /// Tokens of the context windows, by provider and model.
    windows: HashMap<String, u64>,
    /// The assistant's messages of the turn.
    messages: BTreeMap<String, Message>,
    texts: HashMap<String, Text>,
    /// Permission requests so far.
    asked: HashSet<String>,
    /// The ids of questions with answers to choose from, which must be rejected.
    pub questions: Vec<String>,
    /// Permission requests that wait for the input of their call.
    unclear: Vec<WaitingRequest>,
    /// Time at which the session became idle.
    idle: Option<Instant>,
    /// True if the session began to work.
    pub began: bool,
    /// The id of the last message.
    pub last: String,
    /// `PROVIDER/MODEL` of the last request; empty before the first.
    pub model: String,
    /// The last error of the session: its name and message.
    problem: Option<(String, String)>,
}

#[derive(Default)]
struct Message {
    completed: bool,
    finish: String,
    /// True if the message is a summary of the session.
    summary: bool,
}

/// A text part.
struct Text {
    role: Role,
    recorded: String,
    /// True if deltas may be missing: then the text is recorded when the part is complete.
    incomplete: bool,
}

/// A permission request of OpenCode.
#[derive(Clone, Debug)]
pub(super) struct WaitingRequest {
    id: String,
    /// The id of the call in OpenCode.
    call: String,
    /// The description of the call in the request.
    metadata: Value,
    /// The call needs no permission: OpenCode asks for the hooks.
    is_check: bool,
    until: Instant,
}

impl OpencodeRecorder {
    /// Creates the state of a turn. `after` is the id of the last message before the turn. `own`
    /// contains the texts of the prompt; `None` in it matches any text.
    pub(super) fn new(
        sessions: SessionTree,
        after: String,
        own: Vec<Option<String>>,
        name: &str,
        windows: HashMap<String, u64>,
    ) -> OpencodeRecorder {
        OpencodeRecorder {
            sessions,
            last: after.clone(),
            after,
            own,
            users: HashSet::new(),
            user_parts: HashSet::new(),
            name: name.into(),
            windows,
            messages: BTreeMap::new(),
            texts: HashMap::new(),
            asked: HashSet::new(),
            questions: Vec::new(),
            unclear: Vec::new(),
            idle: None,
            began: false,
            model: String::new(),
            problem: None,
        }
    }

    /// Records an event. Returns the signal for the driver.
    pub(super) async fn handle(&mut self, event: &Value, events: &mut TurnEvents<'_>) -> Option<Signal> {
        let properties = &event["properties"];
        let kind = event["type"].as_str().unwrap_or_default();
        let session = properties["sessionID"].as_str().or(properties["part"]["sessionID"].as_str());
        if ["session.created", "session.updated"].contains(&kind) {
            self.sessions.add(&properties["info"]);
        }
        let session = session.filter(|session| self.sessions.contains(session))?;
        let own = session == self.sessions.root();
        match kind {
            "permission.asked" => return self.permission(properties, events).await,
            "permission.replied" => {
                let id = properties["requestID"].as_str()?;
                self.unclear.retain(|request| request.id != id);
                return Some(Signal::Withdrawn(id.into()));
            }
            "question.asked" => self.questions.extend(properties["id"].as_str().map(String::from)),
            "message.part.updated" => return self.part(&properties["part"], own, false, events).await,
            _ if !own => {}
            "message.updated" => self.message(&properties["info"], events).await,
            "message.part.delta" => self.delta(properties, events).await,
            "session.status" => self.status(&properties["status"], events).await,
            "session.idle" => self.set_idle(),
            "session.error" => self.error(&properties["error"]),
            _ => {}
        }
        None
    }

    /// Records the server's state after a reconnection. Returns the requests that must be answered.
    pub(super) async fn catch_up(&mut self, state: &ServerState, events: &mut TurnEvents<'_>) -> Vec<Signal> {
        let mut asked = Vec::new();
        for text in self.texts.values_mut() {
            text.incomplete = true;
        }
        for message in state.messages.as_array().into_iter().flatten() {
            self.message(&message["info"], events).await;
            for part in message["parts"].as_array().into_iter().flatten() {
                asked.extend(self.part(part, true, true, events).await);
            }
        }
        state.subagents.iter().for_each(|info| self.sessions.add(info));
        for (list, kind) in [(&state.permissions, "permission.asked"), (&state.questions, "question.asked")] {
            for properties in list.as_array().into_iter().flatten() {
                asked.extend(Box::pin(self.handle(&json!({ "type": kind, "properties": properties }), events)).await);
            }
        }
        match &state.statuses[self.sessions.root()] {
            Value::Null => self.set_idle(),
            status => self.status(status, events).await,
        }
        asked
    }

    fn set_idle(&mut self) {
        if self.began {
            self.idle.get_or_insert_with(Instant::now);
        }
    }

    async fn status(&mut self, status: &Value, events: &TurnEvents<'_>) {
        match status["type"].as_str() {
            Some("idle") => self.set_idle(),
            Some("busy") => (self.began, self.idle) = (true, None),
            Some("retry") => {
                (self.began, self.idle) = (true, None);
                let message = status["message"].as_str().unwrap_or("the request to the model failed");
                let title = format!("{} repeats its request to the model (attempt {})", self.name, status["attempt"]);
                events.turn().emit(Body::notice(Severity::Warning, title, message)).await;
            }
            _ => {}
        }
    }

    fn error(&mut self, error: &Value) {
        let name = error["name"].as_str().unwrap_or("error");
        let message = error["data"]["message"].as_str().unwrap_or(name);
        if !std::mem::replace(&mut self.began, true) {
            // No other report follows a prompt that cannot run.
            self.set_idle();
        }
        self.problem = Some((name.into(), message.into()));
    }

    /// Returns whether the turn has ended: the session is idle, and the messages are complete, or
    /// were not completed in time.
    pub(super) fn has_ended(&self) -> bool {
        let answered = self.own.is_empty() && !self.messages.is_empty();
        let complete = answered && self.messages.values().all(|message| message.completed);
        self.idle.is_some_and(|since| complete || since.elapsed() >= AGENT_SETTLE)
    }

    /// Returns the earliest time at which the result of [`OpencodeRecorder::has_ended`] or
    /// [`OpencodeRecorder::overdue`] may change without an event.
    pub(super) fn wake(&self) -> Option<Instant> {
        let settled = self.idle.map(|since| since + AGENT_SETTLE);
        settled.into_iter().chain(self.unclear.iter().map(|request| request.until)).min()
    }

    /// Returns how a turn ended that nuncio did not cancel. An external turn was started by another
    /// client; its summaries and commands may have no answer.
    pub(super) fn outcome(&self, active: bool, external: bool) -> Result<StopReason> {
        let failed = |why: &str| Err(Error::new(Kind::ModelError, format!("agent {}: {why}", self.name)));
        match &self.problem {
            // Another client of the server stopped the turn.
            Some((name, _)) if name == "MessageAbortedError" && external => Ok(StopReason::Cancelled),
            Some((name, _)) if name == "MessageAbortedError" => Ok(StopReason::Refusal),
            Some((_, message)) => failed(message),
            None if !active && !external => failed("it ended the turn without an answer"),
            None => Ok(match self.messages.values().next_back().map_or("", |message| message.finish.as_str()) {
                "length" => StopReason::MaxTokens,
                "content-filter" => StopReason::Refusal,
                _ => StopReason::EndTurn,
            }),
        }
    }

    async fn message(&mut self, info: &Value, events: &TurnEvents<'_>) {
        let Some(id) = info["id"].as_str().filter(|id| *id > self.after.as_str()) else { return };
        if id > self.last.as_str() {
            self.last = id.into();
        }
        if info["role"] != "assistant" {
            self.users.insert(id.into());
            return;
        }
        self.began = true;
        if !self.messages.contains_key(id) {
            // The agent continues after the error, or the report is about an earlier turn.
            (self.problem, self.idle) = (None, None);
        }
        let message = self.messages.entry(id.into()).or_default();
        message.summary = info["summary"] == true;
        if let Some(finish) = info["finish"].as_str() {
            message.finish = finish.into();
        }
        let completes = !message.completed && !info["time"]["completed"].is_null();
        message.completed |= completes;
        if !info["error"].is_null() {
            self.error(&info["error"]);
        }
        if completes {
            self.usage(info, events).await;
        }
    }

    async fn usage(&mut self, info: &Value, events: &TurnEvents<'_>) {
        let tokens = |path: &str| info["tokens"].pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let (read, write) = (tokens("/cache/read"), tokens("/cache/write"));
        let usage = Usage {
            input_tokens: tokens("/input") + read + write,
            output_tokens: tokens("/output") + tokens("/reasoning"),
            cache_read_tokens: read,
            cache_write_tokens: write,
        };
        if usage == Usage::default() {
            return;
        }
        let model = match (info["providerID"].as_str(), info["modelID"].as_str()) {
            (Some(provider), Some(model)) => format!("{provider}/{model}"),
            _ => self.name.clone(),
        };
        let cost = info["cost"].as_f64().filter(|cost| *cost > 0.0).map(Cost::from);
        let window = self.windows.get(&model).copied().unwrap_or(0);
        self.model.clone_from(&model);
        events.usage(model, usage, cost, (usage.input_tokens + usage.output_tokens, window)).await;
    }

    async fn delta(&mut self, properties: &Value, events: &mut TurnEvents<'_>) {
        let (Some(id), Some(delta)) = (properties["partID"].as_str(), properties["delta"].as_str()) else { return };
        let Some(text) = self.texts.get_mut(id).filter(|text| !text.incomplete && properties["field"] == "text") else { return };
        text.recorded.push_str(delta);
        events.text(text.role, Some(id), delta).await;
    }

    /// Records a part of a message. Returns a permission request that waited for it.
    async fn part(&mut self, part: &Value, own: bool, read: bool, events: &mut TurnEvents<'_>) -> Option<Signal> {
        let message = part["messageID"].as_str().and_then(|id| self.messages.get(id));
        let (kind, id) = (part["type"].as_str()?, part["id"].as_str()?);
        match kind {
            "text" if part["messageID"].as_str().is_some_and(|id| self.users.contains(id)) => {
                self.user_text(id, part, events).await;
                None
            }
            "text" | "reasoning" if message.is_some_and(|message| !message.summary) => {
                let role = if kind == "text" { Role::Assistant } else { Role::Thought };
                self.text(role, id, part, read, events).await;
                None
            }
            "tool" => {
                self.sessions.add_of_call(part);
                let call = part["callID"].as_str()?;
                // Record a subagent's call only if it needs permission.
                if (own && message.is_some()) || events.open_call(call).is_some() {
                    events.call(call, call_update(part)).await;
                }
                let place = self.unclear.iter().position(|request| request.call == call)?;
                if part["state"]["status"] == "pending" {
                    return None;
                }
                let request = self.unclear.remove(place);
                asked(request, events).await
            }
            _ => None,
        }
    }

    async fn text(&mut self, role: Role, id: &str, part: &Value, read: bool, events: &mut TurnEvents<'_>) {
        let complete = !part["time"]["end"].is_null();
        let text = self.texts.entry(id.into()).or_insert_with(|| Text { role, recorded: String::new(), incomplete: read });
        let whole = part["text"].as_str().unwrap_or_default();
        let rest = whole.strip_prefix(text.recorded.as_str()).unwrap_or_default();
        if complete || !text.incomplete {
            text.recorded.push_str(rest);
            events.text(role, Some(id), rest).await;
        }
    }

    /// Records a text of the user that is not part of the prompt.
    async fn user_text(&mut self, id: &str, part: &Value, events: &mut TurnEvents<'_>) {
        let Some(text) = part["text"].as_str().filter(|_| self.user_parts.insert(id.into())) else { return };
        let is_own = |own: &Option<String>| own.as_ref().is_none_or(|own| own.trim() == text.trim());
        if let Some(place) = self.own.iter().position(is_own) {
            self.own.remove(place);
        } else if part["synthetic"] != true {
            events.part(Role::User, Part::text(text)).await;
        }
    }

    async fn permission(&mut self, properties: &Value, events: &mut TurnEvents<'_>) -> Option<Signal> {
        let id = properties["id"].as_str().filter(|id| self.asked.insert((*id).to_owned()))?;
        let call = properties["tool"]["callID"].as_str().unwrap_or(id);
        let metadata = properties["metadata"].clone();
        let permission = properties["permission"].as_str().unwrap_or_default();
        let (is_check, until) = (is_allowed(permission), Instant::now() + AGENT_CALL_INPUT);
        let request = WaitingRequest { id: id.into(), call: call.into(), metadata, is_check, until };
        if events.open_call(call).is_none() {
            events.call(call, CallUpdate::new(permission, kind(permission), None)).await;
        }
        match events.open_call(call) {
            Some(known) if known.details.input == json!({}) && !properties["tool"].is_null() => {
                // The input of the call follows.
                self.unclear.push(request);
                None
            }
            _ => asked(request, events).await,
        }
    }

    /// Removes and returns the permission requests that waited too long for the input of their
    /// call.
    pub(super) async fn overdue(&mut self, events: &mut TurnEvents<'_>) -> Vec<Signal> {
        let now = Instant::now();
        let (overdue, waiting): (Vec<WaitingRequest>, Vec<WaitingRequest>) =
            std::mem::take(&mut self.unclear).into_iter().partition(|request| request.until <= now);
        self.unclear = waiting;
        let mut found = Vec::new();
        for request in overdue {
            found.extend(asked(request, events).await);
        }
        found
    }
}

/// Creates the signal for a permission request. Returns `None` if its call has ended.
async fn asked(request: WaitingRequest, events: &mut TurnEvents<'_>) -> Option<Signal> {
    let WaitingRequest { id, call, metadata, is_check, .. } = request;
    if events.open_call(&call)?.details.input == json!({}) && metadata.is_object() {
        let change = ToolChange { input: Some(metadata), ..ToolChange::default() };
        events.call(&call, CallUpdate { change, ..CallUpdate::default() }).await;
    }
    let call = events.open_call(&call)?.clone();
    Some(match is_check {
        true => Signal::Check(id.into(), Box::new(call)),
        false => Signal::Ask(id.into(), Box::new(permission_request(call))),
    })
}
