//! Permission requests as elicitations of MCP: a form with the options of the request.

use std::collections::HashMap;

use rmcp::model::{ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema, ServerRequest};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::api::{AnswerPermission, AnswerPermissionParams};
use crate::content::{PermissionOption, PermissionOptionKind, ToolContent, plain_text, shortened};
use crate::id::PermissionId;
use crate::limits;
use crate::local::LocalClient;
use crate::patch::{Side, unified_diff};
use crate::workspace::one_line;

/// Returns whether the client can answer forms.
pub(super) fn supports_forms(context: &RequestContext<RoleServer>) -> bool {
    // Older versions of the protocol have only forms and announce them with an empty object.
    let forms = |capability: &rmcp::model::ElicitationCapability| capability.form.is_some() || capability.url.is_none();
    context.client_capabilities().is_some_and(|client| client.elicitation.as_ref().is_some_and(forms))
}

/// The open questions of one call.
pub(super) struct Questions {
    client: LocalClient,
    peer: Peer<RoleServer>,
    open: HashMap<PermissionId, JoinHandle<()>>,
}

impl Questions {
    /// Creates the questions of a call from `peer`.
    pub(super) fn new(client: LocalClient, peer: Peer<RoleServer>) -> Questions {
        Questions { client, peer, open: HashMap::new() }
    }

    /// Asks the client. Any response except an offered option rejects the tool call.
    pub(super) fn ask(&mut self, id: &PermissionId, title: &str, content: &[ToolContent], options: &[PermissionOption]) {
        let (client, peer, permission) = (self.client.clone(), self.peer.clone(), id.clone());
        let form = form(title, content, options);
        let asked = tokio::spawn(async move {
            let (option_id, reason) = match answer(&peer, form).await {
                Ok(option) => (Some(option), None),
                Err(reason) => (None, Some(reason)),
            };
            let outcome = option_id.is_none().then_some(PermissionOptionKind::RejectOnce);
            let params = AnswerPermissionParams::new(permission.clone(), option_id, outcome, reason);
            if client.call::<AnswerPermission>(params).await.is_err() {
                // The option was not offered, or the request was resolved.
                let (outcome, reason) =
                    (Some(PermissionOptionKind::RejectOnce), Some("the answer was not one of the options".into()));
                let params = AnswerPermissionParams::new(permission, None, outcome, reason);
                let _ = client.call::<AnswerPermission>(params).await;
            }
        });
        self.open.insert(id.clone(), asked);
    }

    /// Withdraws a question: the permission request is resolved.
    pub(super) fn resolved(&mut self, id: &PermissionId) {
        if let Some(asked) = self.open.remove(id) {
            asked.abort();
        }
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        self.open.values().for_each(JoinHandle::abort);
    }
}

/// The form of a permission request.
fn form(title: &str, content: &[ToolContent], options: &[PermissionOption]) -> Option<ElicitRequestParams> {
    let shown = content.iter().filter_map(|content| match content {
        ToolContent::Content { content } => Some(plain_text(std::slice::from_ref(content))),
        ToolContent::Diff { path, old_text, new_text } => {
            let name = one_line(path.display().to_string());
            let old = old_text.as_ref().map(|text| Side::text(&name, text));
            Some(unified_diff(old, Some(Side::text(&name, new_text))).text)
        }
        ToolContent::Terminal { .. } => None,
    });
    let message = std::iter::once(format!("Allow {title}?")).chain(shown).collect::<Vec<_>>().join("\n");
    let message = shortened(message, limits::ELICITATION_BYTES_MAX);
    let ids: Vec<&str> = options.iter().map(|option| option.option_id.as_str()).collect();
    let names: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
    let decision = json!({ "type": "string", "title": "Decision", "enum": ids, "enumNames": names });
    let schema = json!({ "type": "object", "properties": { "decision": decision }, "required": ["decision"] });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Sends the form. Returns the id of the chosen option, or why no option was chosen.
async fn answer(peer: &Peer<RoleServer>, form: Option<ElicitRequestParams>) -> Result<String, String> {
    let form = form.ok_or("the request cannot be shown as a form")?;
    let request = ElicitRequest::new(form);
    let response = peer.send_request(ServerRequest::ElicitRequest(request)).await;
    let result = match response.map_err(|error| format!("the client did not answer: {error}"))? {
        ClientResult::ElicitResult(result) => result,
        _ => return Err("the client's answer is invalid".into()),
    };
    let decision = result.content.as_ref().and_then(|content| content["decision"].as_str()).map(String::from);
    match result.action {
        ElicitationAction::Accept => decision.ok_or_else(|| "the answer has no decision".into()),
        ElicitationAction::Decline => Err("declined".into()),
        _ => Err("the question was dismissed".into()),
    }
}
