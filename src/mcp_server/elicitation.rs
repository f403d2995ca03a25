//! Permission requests as elicitations of MCP: a form with the options of the request.

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ProtocolVersion,
    ServerRequest,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::json;
use tokio::task::JoinHandle;

use super::server::{PRINCIPAL, ToolServer};
use crate::api::{AnswerPermission, AnswerPermissionParams, App};
use crate::client::SessionClient;
use crate::content::{PermissionOption, PermissionOptionKind, ToolContent, plain_text, shortened};
use crate::event::PermissionOutcome;
use crate::id::{PermissionId, SessionId};
use crate::patch::{Side, unified_diff};
use crate::runtime::InputRounds;
use crate::workspace::one_line;

/// Maximum size of the message of a permission request of `nuncio mcp serve`, in bytes.
const ELICITATION_BYTES_MAX: usize = 64 << 10;

/// Returns whether the client can answer forms.
fn supports_forms(context: &RequestContext<RoleServer>) -> bool {
    // Older versions of the protocol have only forms and announce them with an empty object.
    let forms = |capability: &rmcp::model::ElicitationCapability| capability.form.is_some() || capability.url.is_none();
    context.client_capabilities().is_some_and(|client| client.elicitation.as_ref().is_some_and(forms))
}

/// The way to send forms to the client of a call.
#[derive(Clone)]
pub(super) enum FormChannel {
    /// As requests of the server.
    Requests(Peer<RoleServer>),
    /// With the results of the call.
    Rounds(Arc<InputRounds>),
}

impl FormChannel {
    /// Returns the channel to the client of a call, or `None` if the client cannot answer forms.
    pub(super) fn new(server: &ToolServer, context: &RequestContext<RoleServer>, rounds: &Arc<InputRounds>) -> Option<FormChannel> {
        if !supports_forms(context) {
            return None;
        }
        match context.protocol_version() {
            Some(version) if version >= ProtocolVersion::V_2026_07_28 => Some(FormChannel::Rounds(rounds.clone())),
            _ => server.access.answers.then(|| FormChannel::Requests(context.peer.clone())),
        }
    }

    /// Shows a form. The error is a message.
    async fn ask(&self, id: &PermissionId, form: ElicitRequestParams) -> Result<ElicitResult, String> {
        match self {
            FormChannel::Rounds(rounds) => rounds.ask(id.as_str(), form).await,
            FormChannel::Requests(peer) => {
                let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
                match peer.send_request(request).await.map_err(|error| error.to_string())? {
                    ClientResult::ElicitResult(result) => Ok(result),
                    _ => Err("its answer is not an elicitation result".into()),
                }
            }
        }
    }
}

/// The open permission requests of one call.
pub(super) struct PermissionForms {
    app: Arc<App>,
    client: SessionClient,
    channel: FormChannel,
    session: SessionId,
    open: HashMap<PermissionId, JoinHandle<()>>,
}

/// The client's answer to a permission request.
enum FormDecision {
    /// Id of an option.
    Option(String),
    /// The user rejected, with this reason.
    Rejected(&'static str),
    /// The user decided nothing, for this reason.
    Failed(String),
}

impl PermissionForms {
    /// Creates the collection for a call that uses `session`.
    pub(super) fn new(server: &ToolServer, channel: FormChannel, session: SessionId) -> PermissionForms {
        PermissionForms { app: server.app.clone(), client: server.client.clone(), channel, session, open: HashMap::new() }
    }

    /// Asks the client. A response without an offered option denies the tool call.
    pub(super) fn ask(&mut self, id: &PermissionId, title: &str, content: &[ToolContent], options: &[PermissionOption]) {
        let (app, client, channel) = (self.app.clone(), self.client.clone(), self.channel.clone());
        let (session, permission) = (self.session.clone(), id.clone());
        let form = form(title, content, options);
        let asked = crate::task::spawn(async move {
            let decision = answer(&channel, &permission, form).await;
            let (option_id, outcome, reason) = match decision {
                FormDecision::Option(option) => (Some(option), None, None),
                FormDecision::Rejected(reason) => (None, Some(PermissionOptionKind::RejectOnce), Some(reason.into())),
                FormDecision::Failed(why) => return dismiss(&app, &session, &permission, &why),
            };
            let params = AnswerPermissionParams::new(permission.clone(), option_id, outcome, reason);
            if client.call::<AnswerPermission>(params).await.is_err() {
                // The option was not offered, or the request was resolved.
                dismiss(&app, &session, &permission, "the client's answer was not one of the options");
            }
        });
        self.open.insert(id.clone(), asked);
    }

    /// Withdraws a form, because its permission request is resolved.
    pub(super) fn withdraw(&mut self, id: &PermissionId) {
        if let Some(asked) = self.open.remove(id) {
            asked.abort();
        }
    }
}

impl Drop for PermissionForms {
    fn drop(&mut self) {
        self.open.values().for_each(JoinHandle::abort);
    }
}

/// Creates the elicitation that shows a permission request.
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
    let message = shortened(message, ELICITATION_BYTES_MAX);
    let ids: Vec<&str> = options.iter().map(|option| option.option_id.as_str()).collect();
    let names: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
    let decision = json!({ "type": "string", "title": "FormDecision", "enum": ids, "enumNames": names });
    let schema = json!({ "type": "object", "properties": { "decision": decision }, "required": ["decision"] });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Asks the client.
async fn answer(channel: &FormChannel, id: &PermissionId, form: Option<ElicitRequestParams>) -> FormDecision {
    let Some(form) = form else { return FormDecision::Failed("the request cannot be shown as a form".into()) };
    let result = match channel.ask(id, form).await {
        Ok(result) => result,
        Err(why) => return FormDecision::Failed(format!("the client did not answer the permission request: {why}")),
    };
    let decision = result.content.as_ref().and_then(|content| content["decision"].as_str()).map(String::from);
    match (result.action, decision) {
        (ElicitationAction::Accept, Some(option)) => FormDecision::Option(option),
        (ElicitationAction::Accept, None) => FormDecision::Failed("the client's answer has no decision".into()),
        (ElicitationAction::Decline, _) => FormDecision::Rejected("declined"),
        _ => FormDecision::Rejected("the question was dismissed"),
    }
}

/// Denies a permission request that the user did not decide.
fn dismiss(app: &App, session: &SessionId, id: &PermissionId, why: &str) {
    let session = app.sessions_now().and_then(|sessions| sessions.opened(session));
    if let Some(session) = session {
        session.broker.dismiss(id, PermissionOutcome::Denied, PRINCIPAL.into(), why);
    }
}
