//! A turn of Claude Code: from the user's message to the message `result`.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::conversation::{ClaudeConversation, LOGIN};
use super::peer::{NO_TURN, failure, success};
use super::update::{self, ClaudeRecorder};
use crate::content::{PDF, Part, StopReason};
use crate::error::{Error, Kind, Result};
use crate::hub::driver::{Signal, TurnProtocol, run_turn};
use crate::hub::events::TurnEvents;
use crate::hub::message_queue::MessageReceiver;
use crate::hub::open_requests::OpenRequests;
use crate::hub::permission::Choice;

/// A running turn.
pub(super) struct ClaudeTurn<'a> {
    conversation: &'a ClaudeConversation,
    inbox: MessageReceiver<Value>,
    recorder: ClaudeRecorder,
    /// The control requests that wait for a decision, by id.
    asked: HashMap<Value, Value>,
    /// The last message of the turn.
    result: Value,
}

impl ClaudeConversation {
    /// Runs a prompt until Claude Code has ended its turn.
    pub(super) async fn run(
        &self,
        prompt: &[Part],
        events: &mut TurnEvents<'_>,
        requests: &mut OpenRequests<'_>,
    ) -> Result<StopReason> {
        run_turn(self.begin(prompt), self.peer.process(), events, requests).await
    }

    /// Sends a prompt.
    async fn begin(&self, prompt: &[Part]) -> Result<ClaudeTurn<'_>> {
        let inbox = self.peer.attach();
        let message = json!({ "role": "user", "content": content(&self.name, prompt)? });
        self.peer.send(&json!({ "type": "user", "message": message })).await?;
        let recorder = ClaudeRecorder::new(&self.name);
        Ok(ClaudeTurn { conversation: self, inbox, recorder, asked: HashMap::new(), result: Value::Null })
    }
}

impl ClaudeTurn<'_> {
    async fn respond(&self, response: Value) {
        // Fails if the process has ended, which ends the turn.
        let _ = self.conversation.peer.send(&response).await;
    }
}

impl TurnProtocol for ClaudeTurn<'_> {
    type Message = Value;

    async fn receive(&mut self) -> Result<Value> {
        Ok(self.inbox.next().await)
    }

    async fn record(&mut self, mut message: Value, events: &mut TurnEvents<'_>) -> Result<Vec<Signal>> {
        let id = message["request_id"].clone();
        let signal = match message["type"].as_str() {
            // Claude Code began this turn without a prompt, for a task in the background.
            Some("result") if message["origin"]["kind"] == "task-notification" => None,
            Some("result") => {
                self.result = message;
                Some(Signal::Ended)
            }
            Some("control_request") => match update::permission_request(&message["request"], events).await {
                Ok(request) => {
                    self.asked.insert(id.clone(), message["request"].take());
                    Some(Signal::Ask(id, request))
                }
                Err(Some(denial)) => {
                    self.respond(success(&id, denial)).await;
                    None
                }
                Err(None) => {
                    self.respond(failure(&id, "not supported")).await;
                    None
                }
            },
            Some("control_cancel_request") => Some(Signal::Withdrawn(id)),
            _ => {
                self.recorder.record(&message, events).await;
                None
            }
        };
        Ok(signal.into_iter().collect())
    }

    async fn answer(&mut self, id: Value, choice: Choice) {
        let request = self.asked.remove(&id).unwrap_or_default();
        self.respond(success(&id, update::answer(&request, &choice))).await;
    }

    async fn interrupt(&mut self) -> Result<bool> {
        // The end of the turn is the response that matters.
        self.conversation.peer.begin(json!({ "subtype": "interrupt" })).await.map(|_| true)
    }

    async fn finish(&mut self, events: &mut TurnEvents<'_>) {
        while let Some(message) = self.inbox.rest().await {
            if message["type"] == "control_request" {
                self.respond(failure(&message["request_id"], NO_TURN)).await;
            }
        }
        let cost = self.conversation.peer.with(|state| state.spent(&self.result));
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
            _ if events.active => Ok(StopReason::EndTurn),
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
