//! Forms that the client shows to the user (ACP `elicitation/create`).

use super::barrier::Barrier;
use super::client_requests::ClientRequests;
use crate::content::{Form, FormAnswer};
use crate::id::ToolCallId;
use crate::protocol::acp;

/// Asks the client to show a form. Returns `None` if the client cannot show forms, or answered with
/// an error.
pub(super) async fn fill(requests: &ClientRequests, form: &Form, call: &ToolCallId) -> Option<FormAnswer> {
    requests.client.capabilities().elicitation?.form?;
    let schema: acp::ElicitationSchema = serde_json::from_value(form.schema.clone()).ok()?;
    // The call of a subagent is not a call of the session that the client sees.
    let known = requests.log.state(|state| state.open_tools.iter().any(|open| open.id == *call));
    let scope = acp::ElicitationSessionScope::new(requests.session());
    let scope = scope.tool_call_id(known.then(|| acp::ToolCallId::new(call.as_str())));
    let message = format!("{}: {}", form.server, form.message);
    let params = acp::CreateElicitationRequest::new(acp::ElicitationFormMode::new(scope, schema), message);
    let mut params = serde_json::to_value(params).ok()?;
    // The fields in the order of the server, which the type does not keep.
    params["requestedSchema"]["properties"] = form.schema["properties"].clone();
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
