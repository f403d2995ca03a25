//! Forms and pages that the client shows to the user (ACP `elicitation/create`).

use super::barrier::Barrier;
use super::client_requests::ClientRequests;
use crate::content::{Form, FormAnswer};
use crate::id::ToolCallId;
use crate::protocol::acp;

/// Asks the client to show a form, or to open a page. Returns `None` if the client cannot, or
/// answered with an error.
pub(super) async fn fill(requests: &ClientRequests, form: &Form, call: &ToolCallId) -> Option<FormAnswer> {
    let supported = requests.client.capabilities().elicitation?;
    // The call of a subagent is not a call of the session that the client sees.
    let known = requests.log.state(|state| state.open_tools.iter().any(|open| open.has_id(call)));
    let scope = acp::ElicitationSessionScope::new(requests.session());
    let scope = scope.tool_call_id(known.then(|| acp::ToolCallId::new(call.as_str())));
    let message = format!("{}: {}", form.server, form.message);
    let mode: acp::ElicitationMode = match &form.link {
        None => {
            supported.form?;
            let schema: acp::ElicitationSchema = serde_json::from_value(form.schema.clone()).ok()?;
            acp::ElicitationFormMode::new(scope, schema).into()
        }
        Some(link) => {
            supported.url?;
            // Version 2026-07-28 of MCP has no id of the request.
            let id = if link.id.is_empty() { call.as_str() } else { &link.id };
            acp::ElicitationUrlMode::new(scope, acp::ElicitationId::new(id), link.url.clone()).into()
        }
    };
    let mut params = serde_json::to_value(acp::CreateElicitationRequest::new(mode, message)).ok()?;
    if form.link.is_none() {
        // The fields in the order of the server, which the type does not keep.
        params["requestedSchema"]["properties"] = form.schema["properties"].clone();
    }
    let barrier = Barrier::after(requests.log.id.clone(), requests.log.head());
    let answer = requests.connection.request("elicitation/create", params, barrier).await;
    let answer: acp::CreateElicitationResponse =
        answer.inspect_err(|error| tracing::info!(session = %requests.log.id, ?error, "the client did not show a form")).ok()?;
    match answer.action {
        acp::ElicitationAction::Accept(accepted) => {
            let content = serde_json::to_value(accepted.content.unwrap_or_default()).ok()?;
            Some(FormAnswer::Accepted(content.as_object().cloned().unwrap_or_default()))
        }
        acp::ElicitationAction::Decline => Some(FormAnswer::Declined),
        _ => Some(FormAnswer::Cancelled),
    }
}
