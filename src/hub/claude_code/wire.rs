//! The form of Claude Code's messages: both sides send control requests, and all other messages are
//! notifications, named by their type.

use serde_json::{Value, json};

use super::hooks;
use super::update::ClaudeState;
use crate::hub::peer::{AgentMessage, PeerState, Response};

/// The start of the ids of nuncio's requests, which are numbers.
const ID: &str = "nuncio-";

impl PeerState for ClaudeState {
    fn notified(&mut self, _method: &str, message: &Value) {
        self.handle(message);
    }

    fn idle_request(method: &str) -> Response {
        match method {
            hooks::REQUEST => Ok(hooks::response(false)),
            _ => Err("no turn runs".into()),
        }
    }

    fn decode(mut message: Value) -> Option<AgentMessage> {
        let method = message["type"].as_str()?.to_owned();
        Some(match method.as_str() {
            "control_response" => {
                let mut response = message["response"].take();
                let id = response["request_id"].as_str()?.strip_prefix(ID)?.parse::<u64>().ok()?.into();
                let is_success = response["subtype"] == "success";
                let result =
                    if is_success { Ok(response["response"].take()) } else { Err(json!({ "message": response["error"] })) };
                AgentMessage::Response { id, result }
            }
            "control_request" => {
                let (id, params) = (message["request_id"].take(), message["request"].take());
                AgentMessage::Request { id, method: params["subtype"].as_str().unwrap_or_default().to_owned(), params }
            }
            _ => AgentMessage::Notification { method, params: message },
        })
    }

    fn encode(message: AgentMessage) -> Value {
        match message {
            AgentMessage::Notification { method, params } => json!({ "type": method, "message": params }),
            AgentMessage::Request { id, method, mut params } => {
                params["subtype"] = method.into();
                json!({ "type": "control_request", "request_id": format!("{ID}{id}"), "request": params })
            }
            AgentMessage::Response { id, result } => {
                let response = match result {
                    Ok(response) => json!({ "subtype": "success", "request_id": id, "response": response }),
                    Err(error) => json!({ "subtype": "error", "request_id": id, "error": error }),
                };
                json!({ "type": "control_response", "response": response })
            }
        }
    }
}
