//! Turns of an OpenCode session: turns for nuncio's prompts, and turns that another client of the
//! server starts.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Fuse};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::calls::{ALWAYS, ONCE, REJECT};
use super::catalog::PLAN;
use super::conversation::{OpencodeConversation, OpencodeState};
use super::events::OpencodeRecorder;
use super::stream::{ServerEvents, ServerItem, ServerState};
use crate::content::{Part, StopReason, ToolKind};
use crate::context::commands;
use crate::error::{Error, Kind, Result};
use crate::event::{Actor, PermissionOutcome};
use crate::hub::conversation::{ExternalTurn, is_compaction};
use crate::hub::driver::{Signal, TurnIo, TurnProtocol, run_turn};
use crate::hub::events::TurnEvents;
use crate::hub::opencode_server::about_session;
use crate::hub::permission::Choice;
use crate::hub::refusal::AgentRefusal;
use crate::limits;
use crate::session::Turn;

/// Maximum number of an agent's messages that are read after a reconnection.
const AGENT_MESSAGES_READ_MAX: usize = 200;

struct StartRequest {
    path: &'static str,
    body: Value,
    /// The texts of the prompt; `None` matches any text.
    own: Vec<Option<String>>,
    bound: Duration,
}

pub(super) struct OpencodeTurn<'a> {
    conversation: &'a OpencodeConversation,
    /// True if another client of the server started the turn.
    external: bool,
    recorder: OpencodeRecorder,
    stream: ServerEvents,
    /// The request that starts the turn.
    starting: Fuse<BoxFuture<'a, Result<Value>>>,
    /// True if events may be missing: then the state of the server must be read before the next
    /// event.
    must_read_state: bool,
}

/// The next input of a turn.
pub(super) enum OpencodeInput {
    Event(Value),
    /// The state of the server after events that may be missing.
    State(Box<ServerState>),
    /// The time of [`OpencodeRecorder::wake`] has come.
    Wake,
}

impl OpencodeConversation {
    fn path(&self, rest: &str) -> String {
        format!("/session/{}{rest}", self.session)
    }

    /// Converts the parts of a prompt. Fails if a part is audio.
    fn parts(&self, parts: &[Part]) -> Result<Vec<Value>> {
        let file = |mime: &str, data: &str, name: Option<&str>| json!({ "type": "file", "mime": mime, "filename": name, "url": format!("data:{mime};base64,{data}") });
        let part = |part: &Part| match part {
            Part::Image { mime_type, data } => Ok(file(mime_type, data, Some("image"))),
            Part::Document { mime_type, name, data, .. } => Ok(file(mime_type, data, Some(name.as_deref().unwrap_or("document")))),
            Part::Audio { .. } => Err(Error::invalid_params(format!("prompt: the agent {} does not accept audio", self.name))),
            part => Ok(json!({ "type": "text", "text": part.as_text() })),
        };
        parts.iter().map(part).collect()
    }

    /// Creates the request for a prompt, or for a slash command of OpenCode.
    fn request(&self, parts: &[Part]) -> Result<StartRequest> {
        let OpencodeState { agent, model, last_model, .. } = self.with_state(|state| state.clone());
        let is_known = |name: &str| self.catalog.commands.iter().any(|command| command.name == name);
        let command = commands::parse(parts).filter(|(name, _)| parts.len() == 1 && is_known(name));
        let mut request = match command {
            // The response arrives when the turn ends, after any time. OpenCode expands the command
            // to a text that nuncio does not have.
            Some((command, arguments)) => StartRequest {
                path: "/command",
                body: json!({ "command": command, "arguments": arguments }),
                own: vec![None],
                bound: Duration::MAX,
            },
            None if is_compaction(parts) => return self.compaction([model.unwrap_or_default(), last_model]),
            None => {
                let parts = self.parts(parts)?;
                let own = parts.iter().filter_map(|part| part["text"].as_str()).map(|text| Some(text.to_owned())).collect();
                let body = json!({ "parts": parts, "system": self.added_prompt });
                StartRequest { path: "/prompt_async", body, own, bound: limits::AGENT_REQUEST }
            }
        };
        if let Some(agent) = agent {
            request.body["agent"] = agent.into();
        }
        match model.as_deref().and_then(|model| Some((model, model.split_once('/')?))) {
            Some((model, _)) if command.is_some() => request.body["model"] = model.into(),
            Some((_, (provider, model))) => request.body["model"] = json!({ "providerID": provider, "modelID": model }),
            None => {}
        }
        Ok(request)
    }

    /// Creates the request for a summary of the conversation, by the first of these models that is
    /// set (`PROVIDER/MODEL`), or by the default model.
    fn compaction(&self, models: [String; 2]) -> Result<StartRequest> {
        let default = self.catalog.default_model.clone();
        let Some((provider, name)) = models.iter().chain([&default]).find_map(|model| model.split_once('/')) else {
            let message = format!("agent {}: its model is not known before the first prompt", self.name);
            return Err(Error::new(Kind::InvalidRequest, message).hint("choose a model"));
        };
        let body = json!({ "providerID": provider, "modelID": name });
        Ok(StartRequest { path: "/summarize", body, own: vec![None], bound: Duration::MAX })
    }

    async fn state(&self) -> Result<ServerState> {
        let server = self.server();
        let limit = AGENT_MESSAGES_READ_MAX.to_string();
        let statuses = server.get("/session/status", &[]).await?;
        Ok(ServerState {
            subagents: self.subagents(&statuses).await?,
            statuses,
            permissions: server.get("/permission", &[]).await?,
            questions: server.get("/question", &[]).await?,
            messages: server.get(&self.path("/message"), &[("limit", &limit)]).await?,
        })
    }

    /// Reads the sessions of subagents: the children of the session, and of subagents that work.
    async fn subagents(&self, statuses: &Value) -> Result<Vec<Value>> {
        let mut found: Vec<Value> = Vec::new();
        let mut parents = vec![self.session.clone()];
        while let Some(parent) = parents.pop() {
            let mut below = self.server().get(&format!("/session/{parent}/children"), &[]).await?;
            for info in below.as_array_mut().into_iter().flatten().map(Value::take) {
                let Some(id) = info["id"].as_str().filter(|id| found.iter().all(|known| known["id"] != **id)) else { continue };
                parents.extend(Some(id.to_owned()).filter(|id| !statuses[id].is_null()));
                found.push(info);
            }
        }
        Ok(found)
    }

    /// Answers a permission request.
    async fn answer(&self, id: &str, choice: &Choice) {
        let reply = match choice.option_id.as_deref() {
            // The abort closes the request, or another client answers it.
            _ if choice.outcome == PermissionOutcome::Cancelled => return,
            Some(ONCE) => json!({ "reply": ONCE }),
            None if choice.outcome.allows() => json!({ "reply": ONCE }),
            Some(ALWAYS) => json!({ "reply": ALWAYS }),
            // Without a message, the turn would end.
            _ => json!({ "reply": REJECT, "message": "The call was denied. Continue without it." }),
        };
        // Fails if another client of the server has answered, or if the process has ended.
        if let Err(error) = self.server().post(&format!("/permission/{id}/reply"), &reply).await {
            tracing::debug!(%error, "OpenCode did not take the answer to a permission request");
        }
    }

    /// Runs a prompt, or follows the turn that another client has started.
    pub(super) async fn run(&self, prompt: Option<&[Part]>, io: &mut TurnIo<'_>) -> Result<StopReason> {
        run_turn(self.begin(prompt, io.events.turn()), self.server().process(), io).await
    }

    async fn begin(&self, prompt: Option<&[Part]>, turn: &Turn) -> Result<OpencodeTurn<'_>> {
        let request = prompt.map(|parts| self.request(parts)).transpose()?;
        let own = match &request {
            Some(request) => request.own.clone(),
            None => turn.prompt.iter().map(|part| Some(part.as_text().into_owned())).collect(),
        };
        let (sessions, after) = self.with_state(|state| (state.sessions.clone(), state.last.clone()));
        let mut recorder = OpencodeRecorder::new(sessions, after, own, &self.name, self.catalog.windows.clone());
        recorder.began = request.is_none();
        let stream = ServerEvents::open(self.server().clone()).await?;
        let starting = match request {
            Some(StartRequest { path, body, bound, .. }) => {
                let path = self.path(path);
                async move { self.server().post_within(&path, &body, bound).await }.boxed()
            }
            None => std::future::pending().boxed(),
        };
        let (starting, must_read_state) = (starting.fuse(), prompt.is_none());
        Ok(OpencodeTurn { conversation: self, external: turn.external, recorder, stream, starting, must_read_state })
    }

    /// Converts the error of a request that starts a turn. An error response becomes a model error:
    /// a server that responds is usable, unless it has lost the session.
    fn refused(&self, error: Error) -> Error {
        let error = about_session(&self.name, error);
        let kind = if AgentRefusal::of(&error).is_some() { Kind::ModelError } else { error.kind };
        Error { kind, ..error }
    }

    /// Returns whether a call would change files although the agent `plan` is set. OpenCode asks
    /// about such a call instead of denying it, because the session's rules follow the agent's own.
    fn is_denied_by_mode(&self, kind: ToolKind) -> bool {
        kind == ToolKind::Edit && self.with_state(|state| state.agent.as_deref() == Some(PLAN))
    }

    /// Waits until the server works on a message that nuncio did not send.
    pub(super) async fn wait_for_external_turn(&self) -> Result<ExternalTurn> {
        let mut stream = ServerEvents::open(self.server().clone()).await?;
        let after = self.with_state(|state| state.last.clone());
        loop {
            // Read the state: the stream does not contain earlier events.
            if let Some(prompt) = external_prompt(&self.state().await?, &self.session, &after) {
                return Ok(ExternalTurn { prompt, by: Actor::OpencodeTerminal });
            }
            while let ServerItem::Event(event) = stream.next().await? {
                let properties = &event["properties"];
                let begins = match event["type"].as_str() {
                    Some("session.status") => properties["status"]["type"] != "idle",
                    // A shell command of the user.
                    Some("message.updated") => properties["info"]["role"] == "assistant",
                    _ => false,
                };
                if begins && properties["sessionID"] == self.session.as_str() {
                    break;
                }
            }
        }
    }
}

impl TurnProtocol for OpencodeTurn<'_> {
    type Message = OpencodeInput;

    async fn receive(&mut self) -> Result<OpencodeInput> {
        let wake = self.recorder.wake();
        loop {
            tokio::select! {
                biased;
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => return Ok(OpencodeInput::Wake),
                started = &mut self.starting => drop(started.map_err(|error| self.conversation.refused(error))?),
                state = self.conversation.state(), if self.must_read_state => {
                    self.must_read_state = false;
                    return Ok(OpencodeInput::State(Box::new(state?)));
                }
                item = self.stream.next(), if !self.must_read_state => match item? {
                    ServerItem::Event(event) => return Ok(OpencodeInput::Event(event)),
                    ServerItem::Reopened => self.must_read_state = true,
                },
            }
        }
    }

    async fn record(&mut self, input: OpencodeInput, events: &mut TurnEvents<'_>) -> Result<Vec<Signal>> {
        let found = match input {
            OpencodeInput::Event(event) => self.recorder.handle(&event, events).await.into_iter().collect(),
            OpencodeInput::State(state) => self.recorder.catch_up(&state, events).await,
            OpencodeInput::Wake => self.recorder.overdue(events).await,
        };
        for id in std::mem::take(&mut self.recorder.questions) {
            // Fails if another client of the server has answered.
            let _ = self.conversation.server().post(&format!("/question/{id}/reject"), &json!({})).await;
        }
        let mut signals = Vec::new();
        for signal in found {
            match signal {
                Signal::Ask(id, request) if self.conversation.is_denied_by_mode(request.call.details.kind) => {
                    let denied = Choice { outcome: PermissionOutcome::Denied, option_id: Some(REJECT.into()) };
                    self.answer(id, denied).await;
                }
                signal => signals.push(signal),
            }
        }
        signals.extend(self.recorder.has_ended().then_some(Signal::Ended));
        Ok(signals)
    }

    async fn answer(&mut self, id: Value, choice: Choice) {
        self.conversation.answer(id.as_str().unwrap_or_default(), &choice).await;
    }

    async fn interrupt(&mut self) -> Result<bool> {
        if self.recorder.began {
            self.conversation.server().post(&self.conversation.path("/abort"), &json!({})).await?;
        }
        Ok(self.recorder.began)
    }

    async fn finish(&mut self, _events: &mut TurnEvents<'_>) {}

    async fn outcome(&mut self, events: &TurnEvents<'_>) -> Result<StopReason> {
        self.recorder.outcome(events.is_answered(), self.external)
    }
}

impl Drop for OpencodeTurn<'_> {
    /// Keeps the state for later turns.
    fn drop(&mut self) {
        let OpencodeRecorder { sessions, last, model, .. } = &self.recorder;
        self.conversation.with_state(|state| {
            (state.sessions, state.last) = (sessions.clone(), last.clone());
            if !model.is_empty() {
                state.last_model.clone_from(model);
            }
        });
    }
}

/// Returns the texts of the first user message after the message `after`. Returns `None` if there
/// is no such message, or if the session is idle and no assistant message follows it.
fn external_prompt(state: &ServerState, session: &str, after: &str) -> Option<Vec<Part>> {
    let messages: Vec<&Value> = state.messages.as_array().into_iter().flatten().collect();
    let id = |message: &Value| message["info"]["id"].as_str().unwrap_or_default().to_owned();
    let is_new = |message: &&&Value| message["info"]["role"] == "user" && id(message).as_str() > after;
    let prompt = messages.iter().find(is_new)?;
    let is_answer = |message: &&Value| message["info"]["role"] == "assistant" && id(message) > id(prompt);
    if state.statuses[session].is_null() && !messages.iter().any(is_answer) {
        return None;
    }
    let texts = |synthetic: bool| -> Vec<Part> {
        let parts = prompt["parts"].as_array().into_iter().flatten();
        let shown = parts.filter(|part| part["type"] == "text" && (synthetic || part["synthetic"] != true));
        shown.filter_map(|part| part["text"].as_str()).map(Part::text).collect()
    };
    [texts(false), texts(true), vec![Part::text("(a prompt without text)")]].into_iter().find(|parts| !parts.is_empty())
}
