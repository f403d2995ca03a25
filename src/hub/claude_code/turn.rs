//! A turn of Claude Code: from the user's message to the message `result`.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::conversation::{ClaudeConversation, LOGIN};
use super::hooks;
use super::update::{self, ClaudeRecorder};
use crate::content::{PDF, Part, StopReason};
use crate::error::{Error, Kind, Result};
use crate::hub::driver::{Signal, TurnIo, TurnProtocol, run_turn};
use crate::hub::events::TurnEvents;
use crate::hub::message_queue::MessageReceiver;
use crate::hub::peer::AgentMessage;
use crate::hub::permission::Choice;

pub(super) struct ClaudeTurn<'a> {
    conversation: &'a ClaudeConversation,
    inbox: MessageReceiver<AgentMessage>,
    recorder: ClaudeRecorder,
    /// The control requests that wait for a decision, by id.
    asked: HashMap<Value, Value>,
    /// The ids of the hook requests that wait for a decision.
    hooked: HashSet<Value>,
    /// The last message of the turn.
    result: Value,
}

impl ClaudeConversation {
    /// Runs a prompt until Claude Code has ended its turn.
    pub(super) async fn run(&self, prompt: &[Part], io: &mut TurnIo<'_>) -> Result<StopReason> {
        run_turn(self.begin(prompt), self.peer.process(), io).await
    }

    /// Sends a prompt.
    async fn begin(&self, prompt: &[Part]) -> Result<ClaudeTurn<'_>> {
        let inbox = self.peer.attach();
        let message = json!({ "role": "user", "content": content(&self.name, prompt)? });
        self.peer.notify("user", message).await?;
        let recorder = ClaudeRecorder::new(&self.name);
        Ok(ClaudeTurn { conversation: self, inbox, recorder, asked: HashMap::new(), hooked: HashSet::new(), result: Value::Null })
    }
}

impl TurnProtocol for ClaudeTurn<'_> {
    type Message = AgentMessage;

    async fn receive(&mut self) -> Result<AgentMessage> {
        Ok(self.inbox.next().await)
    }

    async fn record(&mut self, message: AgentMessage, events: &mut TurnEvents<'_>) -> Result<Vec<Signal>> {
        let signal = match message {
            AgentMessage::Request { id, method, mut params } if method == hooks::REQUEST => {
                let request = hooks::permission_request(&mut params);
                match update::permission_request(&request, events).await {
                    Ok(request) => {
                        self.hooked.insert(id.clone());
                        Some(Signal::Check(id, Box::new(request.call)))
                    }
                    // The permission request gets the same answer.
                    Err(_) => {
                        self.conversation.peer.respond(id, Ok(hooks::response(true))).await;
                        None
                    }
                }
            }
            AgentMessage::Request { id, params, .. } => match update::permission_request(&params, events).await {
                Ok(request) => {
                    self.asked.insert(id.clone(), params);
                    Some(Signal::Ask(id, Box::new(request)))
                }
                Err(response) => {
                    self.conversation.peer.respond(id, response).await;
                    None
                }
            },
            AgentMessage::Notification { method, mut params } => match method.as_str() {
                // Claude Code began this turn without a prompt, for a task in the background.
                "result" if params["origin"]["kind"] == "task-notification" => None,
                "result" => {
                    self.result = params;
                    Some(Signal::Ended)
                }
                "control_cancel_request" => Some(Signal::Withdrawn(params["request_id"].take())),
                _ => {
                    self.recorder.record(&params, events).await;
                    None
                }
            },
            // Ignore the response to an interrupt: the end of the turn confirms it.
            AgentMessage::Response { .. } => None,
        };
        Ok(signal.into_iter().collect())
    }

    async fn answer(&mut self, id: Value, choice: Choice) {
        let answer = match self.hooked.remove(&id) {
            true => hooks::response(choice.outcome.allows()),
            false => update::answer(&self.asked.remove(&id).unwrap_or_default(), &choice),
        };
        self.conversation.peer.respond(id, Ok(answer)).await;
    }

    async fn interrupt(&mut self) -> Result<bool> {
        self.conversation.peer.begin("interrupt", json!({})).await.map(|_| true)
    }

    async fn finish(&mut self, events: &mut TurnEvents<'_>) {
        self.conversation.peer.detach(&mut self.inbox).await;
        let cost = self.conversation.peer.with_state(|state| state.spent(&self.result));
        self.recorder.end(&self.result, cost, events).await;
    }

    /// Returns how the turn ended. `subtype` may be `success` for a failed turn.
    async fn outcome(&mut self, events: &TurnEvents<'_>) -> Result<StopReason> {
        let result = &self.result;
        let reason = result["terminal_reason"].as_str().unwrap_or_default();
        let failed = |why: &str| Error::new(Kind::ModelError, format!("agent {}: {why}", self.conversation.name));
        if reason.starts_with("aborted") {
            // nuncio sent no cancel: the user refused a call.
            return Ok(StopReason::Refusal);
        }
        if reason == "max_turns" || result["subtype"] == "error_max_turns" {
            return Ok(StopReason::MaxTurnRequests);
        }
        if result["is_error"] == true {
            let errors = result["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let errors = errors.collect::<Vec<_>>().join("; ");
            let why = result["result"].as_str().filter(|text| !text.is_empty()).unwrap_or(&errors);
            let error = failed(if why.is_empty() { "its turn failed" } else { why });
            return Err(match result["api_error_status"] == 401 || why.contains("/login") {
                true => Error { kind: Kind::Unauthenticated, ..error }.hint(LOGIN),
                false => error,
            });
        }
        match result["stop_reason"].as_str() {
            Some("max_tokens") => Ok(StopReason::MaxTokens),
            Some("refusal") => Ok(StopReason::Refusal),
            _ if events.is_answered() => Ok(StopReason::EndTurn),
            _ => Err(failed("it ended the turn without an answer")),
        }
    }
}

/// Converts a prompt to the content of a message. Fails if Claude Code does not accept a part.
fn content(name: &str, parts: &[Part]) -> Result<Vec<Value>> {
    let source = |mime_type: &str, data: &str| json!({ "type": "base64", "media_type": mime_type, "data": data });
    let block = |part: &Part| match part {
        Part::Image { mime_type, data } => Ok(json!({ "type": "image", "source": source(mime_type, data) })),
        Part::Document { mime_type, data, .. } if mime_type == PDF => {
            Ok(json!({ "type": "document", "source": source(mime_type, data) }))
        }
        Part::Audio { .. } => Err(Error::invalid_params(format!("prompt: the agent {name} does not accept audio"))),
        part => Ok(json!({ "type": "text", "text": part.as_text() })),
    };
    parts.iter().map(block).collect()
}
