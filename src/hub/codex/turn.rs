//! The turns of Codex: from `turn/start` to `turn/completed`.

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::conversation::{CodexConversation, LOGIN, refusal};
use super::update;
use crate::content::{Part, StopReason};
use crate::error::{Error, Kind, Result};
use crate::hub::conversation::is_compaction;
use crate::hub::driver::{Signal, TurnIo, TurnProtocol, run_turn};
use crate::hub::events::TurnEvents;
use crate::hub::peer::{AgentMessage, PeerTurn, Response};
use crate::hub::permission::Choice;
use crate::limits;
use crate::session::Turn;
use crate::session::message::WaitingMessage;

pub(super) struct CodexTurn<'a> {
    conversation: &'a CodexConversation,
    turn: &'a Turn,
    peer_turn: PeerTurn,
    id: Option<String>,
    /// The last error that Codex reported.
    error: Value,
    /// `turn` of `turn/completed`.
    completed: Option<Value>,
    /// Messages of the user for this turn that Codex has not accepted yet, with the ids of the
    /// requests that sent them.
    steering: Vec<(Value, WaitingMessage)>,
    /// True if Codex refused such a message.
    refuses_messages: bool,
    /// Time until which the ended turn waits for the answers to such messages.
    answers_until: Option<Instant>,
}

/// The next input of a turn.
pub(super) enum CodexInput {
    Message(AgentMessage),
    /// Messages of the user for this turn.
    Steering(Vec<WaitingMessage>),
    /// Codex did not answer in time to messages of the user.
    AnswersOverdue,
}

impl CodexConversation {
    /// Runs a prompt until Codex has ended its turn.
    pub(super) async fn run(&self, prompt: &[Part], io: &mut TurnIo<'_>) -> Result<StopReason> {
        run_turn(self.begin(prompt, io.events.turn()), self.peer.process(), io).await
    }

    /// Sends a prompt.
    async fn begin<'a>(&'a self, prompt: &[Part], turn: &'a Turn) -> Result<CodexTurn<'a>> {
        let (method, params) = if is_compaction(prompt) {
            ("thread/compact/start", json!({ "threadId": self.thread }))
        } else {
            let mut params = self.peer.with_state(|state| state.options.turn(&self.sandbox, &self.approval));
            params.insert("threadId".into(), self.thread.as_str().into());
            params.insert("input".into(), self.input(prompt)?.into());
            ("turn/start", params.into())
        };
        let peer_turn = self.peer.begin_turn(method, params).await?;
        Ok(CodexTurn {
            conversation: self,
            turn,
            peer_turn,
            id: None,
            error: Value::Null,
            completed: None,
            steering: Vec::new(),
            refuses_messages: false,
            answers_until: None,
        })
    }

    /// Converts a prompt to the input of a turn. Fails if Codex does not accept a part.
    fn input(&self, parts: &[Part]) -> Result<Vec<Value>> {
        let refused = |what: &str| Error::invalid_params(format!("prompt: the agent {} does not accept {what}", self.name));
        let input = |part: &Part| match part {
            Part::Image { mime_type, data } => Ok(json!({ "type": "image", "url": format!("data:{mime_type};base64,{data}") })),
            Part::Audio { .. } => Err(refused("audio")),
            Part::Document { .. } => Err(refused("documents")),
            part => Ok(json!({ "type": "text", "text": part.as_text() })),
        };
        parts.iter().map(input).collect()
    }
}

impl CodexTurn<'_> {
    fn can_be_steered(&self) -> bool {
        self.id.is_some() && self.completed.is_none() && !self.refuses_messages && !self.turn.cancel.is_cancelled()
    }

    /// Sends messages of the user to the running turn.
    async fn steer(&mut self, messages: Vec<WaitingMessage>) {
        let CodexConversation { thread, peer, .. } = self.conversation;
        for message in messages {
            match self.conversation.input(&message.message.parts) {
                Ok(input) => {
                    let params = json!({ "threadId": thread, "expectedTurnId": self.id, "input": input });
                    match peer.begin("turn/steer", params).await {
                        Ok(id) => self.steering.push((id, message)),
                        // The process has ended, which ends the turn.
                        Err(_) => self.turn.put_back(&message.message.id),
                    }
                }
                Err(error) => self.turn.reject(message.message, error).await,
            }
        }
    }

    /// Reads the response to the start of the turn or to `turn/steer`. A message of the user that
    /// was not accepted is kept in the queue.
    async fn response(&mut self, id: &Value, response: Response, events: &mut TurnEvents<'_>) -> Result<()> {
        if *id == self.peer_turn.request {
            let mut started = response.map_err(|error| self.conversation.peer.refused("turn/start", &error))?;
            // A notification has the id of the turn of a compaction.
            self.id = started["turn"]["id"].take().as_str().map(str::to_owned).or(self.id.take());
        } else if let Some(at) = self.steering.iter().position(|(steer, _)| steer == id) {
            let (_, message) = self.steering.remove(at);
            if response.is_ok() {
                events.end_text().await;
                self.turn.emit(message.message.completed()).await;
            } else {
                self.refuses_messages = true;
                self.turn.put_back(&message.message.id);
            }
        }
        Ok(())
    }

    /// Records a message, and answers to an unsupported request. Returns a permission request.
    async fn message(&mut self, message: AgentMessage, events: &mut TurnEvents<'_>) -> Result<Option<Signal>> {
        match message {
            AgentMessage::Notification { method, params } => {
                // Skip the threads of subagents.
                if params["threadId"] == self.conversation.thread.as_str() {
                    self.notified(&method, params, events).await;
                }
            }
            AgentMessage::Request { id, method, params } => match update::permission_request(&method, &params, events).await {
                Some(request) => return Ok(Some(Signal::Ask(json!([method, id]), Box::new(request)))),
                None => self.conversation.peer.respond(id, refusal(&method)).await,
            },
            AgentMessage::Response { id, result } => self.response(&id, result, events).await?,
        }
        Ok(None)
    }

    async fn notified(&mut self, method: &str, mut params: Value, events: &mut TurnEvents<'_>) {
        let CodexConversation { name, peer, .. } = self.conversation;
        match method {
            "turn/started" => self.id = params["turn"]["id"].as_str().map(String::from),
            "turn/completed" => {
                self.completed = Some(params["turn"].take());
                self.answers_until = Some(Instant::now() + limits::AGENT_CANCEL);
            }
            "error" if params["willRetry"] == true => {
                update::notice(&format!("agent {name}: trying again"), &message(&params["error"]), events).await;
            }
            "error" => self.error = params["error"].take(),
            method => {
                let mut items = peer.with_state(|state| std::mem::take(&mut state.items));
                items.record(method, &params, events, name).await;
                peer.with_state(|state| state.items = items);
            }
        }
    }

    /// Returns whether Codex has ended the turn and has answered to the messages of the user, which
    /// may take longer.
    fn has_ended(&self) -> bool {
        let answered = self.steering.is_empty() || self.answers_until.is_some_and(|until| until <= Instant::now());
        self.completed.is_some() && answered
    }
}

impl TurnProtocol for CodexTurn<'_> {
    type Message = CodexInput;

    async fn receive(&mut self) -> Result<CodexInput> {
        let (can_be_steered, answers_until) = (self.can_be_steered(), self.answers_until);
        Ok(tokio::select! {
            biased;
            () = sleep_until(answers_until.unwrap_or_else(Instant::now)), if answers_until.is_some() => CodexInput::AnswersOverdue,
            messages = self.turn.wait_for_steered(), if can_be_steered => CodexInput::Steering(messages),
            message = self.peer_turn.inbox.next() => CodexInput::Message(message),
        })
    }

    async fn record(&mut self, input: CodexInput, events: &mut TurnEvents<'_>) -> Result<Vec<Signal>> {
        let asked = match input {
            CodexInput::Message(message) => self.message(message, events).await?,
            CodexInput::Steering(messages) => {
                self.steer(messages).await;
                None
            }
            CodexInput::AnswersOverdue => None,
        };
        Ok(asked.into_iter().chain(self.has_ended().then_some(Signal::Ended)).collect())
    }

    async fn answer(&mut self, token: Value, choice: Choice) {
        let (method, id) = (token[0].as_str().unwrap_or_default(), token[1].clone());
        let response = match &choice.option_id {
            Some(option) => Ok(update::answer(method, option)),
            None => refusal(method),
        };
        self.conversation.peer.respond(id, response).await;
    }

    async fn interrupt(&mut self) -> Result<bool> {
        let Some(id) = &self.id else { return Ok(false) };
        let params = json!({ "threadId": self.conversation.thread, "turnId": id });
        // Ignore the response: the end of the turn confirms the interrupt.
        self.conversation.peer.begin("turn/interrupt", params).await.map(|_| true)
    }

    async fn finish(&mut self, _events: &mut TurnEvents<'_>) {
        self.conversation.peer.detach(&mut self.peer_turn.inbox).await;
    }

    async fn outcome(&mut self, events: &TurnEvents<'_>) -> Result<StopReason> {
        let CodexConversation { name, peer, .. } = self.conversation;
        let failed = |why: String| Error::new(Kind::ModelError, format!("agent {name}: {why}"));
        let completed = self.completed.take().unwrap_or_default();
        match completed["status"].as_str() {
            Some("completed") if events.is_answered() => Ok(StopReason::EndTurn),
            Some("completed") => Err(peer.process().unanswered(&self.peer_turn.stderr_before).await),
            // nuncio sent no cancel: the user refused a call.
            Some("interrupted") => Ok(StopReason::Refusal),
            Some("failed") => {
                let error = if completed["error"].is_null() { &self.error } else { &completed["error"] };
                let failed = failed(message(error));
                let info = &error["codexErrorInfo"];
                let status = info.as_object().and_then(|info| info.values().find_map(|detail| detail["httpStatusCode"].as_u64()));
                Err(match info == "unauthorized" || status == Some(401) {
                    true => Error { kind: Kind::Unauthenticated, ..failed }.hint(LOGIN),
                    false => failed,
                })
            }
            other => Err(failed(format!("unknown status of a turn: {}", other.unwrap_or("(none)")))),
        }
    }
}

impl Drop for CodexTurn<'_> {
    /// Returns the messages of the user that Codex did not accept to the queue.
    fn drop(&mut self) {
        for (_, message) in &self.steering {
            self.turn.put_back(&message.message.id);
        }
    }
}

/// Returns the message of an error of Codex, with its details. The message may be a JSON response
/// of the model provider; then its inner message is used.
fn message(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("an error without a message");
    let response = serde_json::from_str::<Value>(message).unwrap_or_default();
    let message = response["error"]["message"].as_str().unwrap_or(message);
    match error["additionalDetails"].as_str().filter(|details| !message.contains(*details)) {
        Some(details) => format!("{message}: {details}"),
        None => message.into(),
    }
}
