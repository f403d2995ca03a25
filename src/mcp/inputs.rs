//! Answers the requests of a server in a result (protocol 2026-07-28): the client then repeats its
//! call with the answers.

use std::sync::Arc;

use rmcp::model::{InputRequest, InputRequests, InputResponses};
use serde_json::{Value, json};

use super::handler::McpHandler;
use super::open_calls::ServerRequests;
use super::server_requests;
use crate::content::FormAnswer;

/// Answers the requests in order. Without `requests`, the user and the model cannot be asked. The
/// error is a message.
pub(super) async fn answer(
    handler: &McpHandler,
    asked: InputRequests,
    requests: Option<&Arc<dyn ServerRequests>>,
) -> Result<InputResponses, String> {
    let mut responses = InputResponses::new();
    for (key, request) in asked {
        let response = match request {
            InputRequest::ListRoots(_) => serde_json::to_value(handler.roots()),
            InputRequest::Elicitation(request) => {
                let form = server_requests::form(&handler.name, request.params);
                let link = form.as_ref().and_then(|form| form.link.clone());
                let answer = match (form, requests) {
                    (Some(form), Some(requests)) => requests.fill(form).await,
                    _ => FormAnswer::Declined,
                };
                serde_json::to_value(server_requests::form_result(answer, link.as_ref()))
            }
            InputRequest::CreateMessage(request) => {
                let query = server_requests::query(&handler.name, &handler.identity, request.params)?;
                let requests = requests.filter(|_| handler.sampling).ok_or("it asked for sampling, which is off")?;
                serde_json::to_value(server_requests::query_result(requests.query(query).await?))
            }
            _ => Ok(json!(null)),
        };
        responses.insert(key, response.unwrap_or(Value::Null));
    }
    Ok(responses)
}
