//! A turn of an ACP agent: the request `session/prompt`, and the messages before its response.

use serde_json::{Value, json};

use super::conversation::{AcpConversation, needs_login};
use super::update;
use crate::content::{Part, StopReason};
use crate::error::{Error, Kind, Result};
use crate::hub::driver::{Signal, TurnIo, TurnProtocol, run_turn};
use crate::hub::events::TurnEvents;
use crate::hub::peer::{AgentMessage, PeerTurn, Response};
use crate::hub::permission::{AgentRequest, Choice};
use crate::protocol::content;

pub(super) struct AcpTurn<'a> {
    conversation: &'a AcpConversation,
    peer_turn: PeerTurn,
    /// The response to `session/prompt`; null while the turn runs.
    response: Response,
}

impl AcpConversation {
    /// Runs a prompt until the agent has ended its turn.
    pub(super) async fn run(&self, prompt: &[Part], io: &mut TurnIo<'_>) -> Result<StopReason> {
        run_turn(self.begin(prompt), self.peer.process(), io).await
    }

    /// Sends a prompt.
    async fn begin(&self, prompt: &[Part]) -> Result<AcpTurn<'_>> {
        let params = json!({ "sessionId": self.session, "prompt": self.blocks(prompt)? });
        let peer_turn = self.peer.begin_turn("session/prompt", params).await?;
        Ok(AcpTurn { conversation: self, peer_turn, response: Ok(Value::Null) })
    }

    /// Converts a prompt to content blocks. Fails if the agent does not accept a part.
    fn blocks(&self, parts: &[Part]) -> Result<Vec<Value>> {
        let refused = |what: &str| Error::invalid_params(format!("prompt: the agent {} does not accept {what}", self.name));
        let block = |part: &Part| match part {
            Part::Image { .. } if self.accepts["image"] != true => Err(refused("images")),
            Part::Audio { .. } if self.accepts["audio"] != true => Err(refused("audio")),
            Part::Document { .. } if self.accepts["embeddedContext"] != true => Err(refused("documents")),
            Part::Resource { .. } if self.accepts["embeddedContext"] != true => {
                Ok(json!({ "type": "text", "text": part.as_text() }))
            }
            part => Ok(json!(content::block(part))),
        };
        parts.iter().map(block).collect()
    }
}

impl AcpTurn<'_> {
    /// Records a message. Returns a permission request with its id.
    async fn message(&self, message: AgentMessage, events: &mut TurnEvents<'_>) -> Option<(Value, AgentRequest)> {
        let AcpConversation { name, session, peer, .. } = self.conversation;
        match message {
            AgentMessage::Notification { method, params } => {
                if method == "session/update" && params["sessionId"] == session.as_str() {
                    update::record(&params["update"], events, name, peer).await;
                }
            }
            AgentMessage::Request { id, method, params } if method == "session/request_permission" => {
                let tool_call = &params["toolCall"];
                let given = tool_call["toolCallId"].as_str().unwrap_or_default();
                events.call(given, update::call_update(tool_call)).await;
                let options = update::options(&params["options"]);
                match events.open_call(given) {
                    Some(call) if !options.is_empty() => return Some((id, AgentRequest { call: call.clone(), options })),
                    _ => self.respond(id, None).await,
                }
            }
            AgentMessage::Request { id, method, .. } => {
                let error = json!({ "code": -32601, "message": format!("{method} is not supported") });
                self.conversation.peer.respond(id, Err(error)).await;
            }
            AgentMessage::Response { .. } => {}
        }
        None
    }

    /// Answers a permission request with one of its options, or as cancelled.
    async fn respond(&self, id: Value, option: Option<&str>) {
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        self.conversation.peer.respond(id, Ok(json!({ "outcome": outcome }))).await;
    }
}

impl TurnProtocol for AcpTurn<'_> {
    type Message = AgentMessage;

    async fn receive(&mut self) -> Result<AgentMessage> {
        Ok(self.peer_turn.inbox.next().await)
    }

    async fn record(&mut self, message: AgentMessage, events: &mut TurnEvents<'_>) -> Result<Vec<Signal>> {
        let signal = match message {
            AgentMessage::Response { id, result } if id == self.peer_turn.request => {
                self.response = result;
                Some(Signal::Ended)
            }
            message => self.message(message, events).await.map(|(id, request)| Signal::Ask(id, Box::new(request))),
        };
        Ok(signal.into_iter().collect())
    }

    async fn answer(&mut self, id: Value, choice: Choice) {
        self.respond(id, choice.option_id.as_deref()).await;
    }

    async fn interrupt(&mut self) -> Result<bool> {
        let AcpConversation { peer, session, .. } = self.conversation;
        peer.notify("session/cancel", json!({ "sessionId": session })).await.map(|()| true)
    }

    /// Records the updates that arrived with the response, and the usage in the response.
    async fn finish(&mut self, events: &mut TurnEvents<'_>) {
        while let Some(message) = self.peer_turn.inbox.rest().await {
            if let Some((id, _)) = self.message(message, events).await {
                self.respond(id, None).await;
            }
        }
        if let Ok(response) = &self.response {
            update::record_usage(response, events, &self.conversation.name, &self.conversation.peer).await;
        }
    }

    /// Returns how the turn ended. Some agents report a failed model request as a normal end.
    async fn outcome(&mut self, events: &TurnEvents<'_>) -> Result<StopReason> {
        let AcpConversation { name, peer, login_methods, .. } = self.conversation;
        let failed = |why: String| Err(Error::new(Kind::ModelError, format!("agent {name}: {why}")));
        let response = match &self.response {
            Ok(response) => response,
            Err(error) => {
                let refused = Error { kind: Kind::ModelError, ..peer.refused("session/prompt", error) };
                return Err(needs_login(peer.process(), refused, login_methods, &self.peer_turn.stderr_before).await);
            }
        };
        let system_error =
            response.pointer("/_meta/codex/threadStatus").is_some_and(|status| status.to_string().contains("systemError"));
        match response["stopReason"].as_str() {
            Some("end_turn") if system_error => failed("its request to the model failed; see its last message".into()),
            Some("end_turn") if !events.is_answered() => Err(peer.process().unanswered(&self.peer_turn.stderr_before).await),
            Some("end_turn") => Ok(StopReason::EndTurn),
            Some("max_tokens") => Ok(StopReason::MaxTokens),
            Some("max_turn_requests") => Ok(StopReason::MaxTurnRequests),
            // nuncio sent no cancel: the user refused a call, or the model refused to answer.
            Some("refusal" | "cancelled") => Ok(StopReason::Refusal),
            other => failed(format!("unknown stop reason {}", other.unwrap_or("(none)"))),
        }
    }
}
