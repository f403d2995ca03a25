//! Converts the requests of servers, and the answers to them.

#![expect(deprecated, reason = "a later version of the protocol has no sampling; servers still use it")]

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, Role, SamplingMessage,
    SamplingMessageContentBlock,
};
use serde_json::{Value, json};

use crate::content::{Form, FormAnswer, FormLink, ModelQuery, ModelReply, Part, QueryMessage, StopReason};

/// Maximum size of the message and the schema of a form of an MCP server, in bytes.
const MCP_FORM_BYTES_MAX: usize = 64 << 10;
/// Maximum size of the messages of a request of an MCP server to the model, in bytes.
const MCP_SAMPLING_BYTES_MAX: usize = 256 << 10;
/// Maximum number of tokens of the answer that an MCP server requests.
const MCP_SAMPLING_TOKENS_MAX: u32 = 8_192;

/// Converts a form, or a page that the user is asked to open. Returns `None` for a request that is
/// too large, and for a page that is not on the web.
pub(super) fn form(server: &str, params: ElicitRequestParams) -> Option<Form> {
    let (message, schema, link) = match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            (message, serde_json::to_value(requested_schema).ok()?, None)
        }
        ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id, .. } => {
            if !is_web(&url) {
                return None;
            }
            (message, json!({ "type": "object", "properties": {} }), Some(FormLink { url, id: elicitation_id }))
        }
        _ => return None,
    };
    let link_bytes = link.as_ref().map_or(0, |link| link.url.len() + link.id.len());
    let fits = message.len() + schema.to_string().len() + link_bytes <= MCP_FORM_BYTES_MAX;
    fits.then(|| Form { server: server.into(), message, schema, link })
}

/// Returns whether an address that the user is asked to open is on the web.
pub(super) fn is_web(url: &str) -> bool {
    let unusual = |character: char| character.is_whitespace() || character.is_control();
    (url.starts_with("https://") || url.starts_with("http://")) && !url.contains(unusual)
}

pub(super) fn form_result(answer: FormAnswer, link: Option<&FormLink>) -> ElicitResult {
    match answer {
        FormAnswer::Accepted(_) if link.is_some() => ElicitResult::new(ElicitationAction::Accept),
        FormAnswer::Accepted(content) => ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content)),
        FormAnswer::Declined => ElicitResult::new(ElicitationAction::Decline),
        FormAnswer::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
    }
}

/// Converts a request to the model. Preferences, such as a temperature, are not used. The error is
/// a message.
pub(super) fn query(server: &str, identity: &str, params: CreateMessageRequestParams) -> Result<ModelQuery, String> {
    if params.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err("tools are not supported".into());
    }
    let mut bytes = params.system_prompt.as_ref().map_or(0, String::len);
    let mut messages = Vec::new();
    for SamplingMessage { role, content, .. } in params.messages {
        let mut parts = Vec::new();
        for block in content.into_vec() {
            match block {
                SamplingMessageContentBlock::Text(text) => {
                    bytes += text.text.len();
                    parts.push(Part::text(text.text));
                }
                SamplingMessageContentBlock::Image(image) if role == Role::User => {
                    bytes += image.data.len();
                    parts.push(Part::Image { mime_type: image.mime_type, data: image.data });
                }
                _ => return Err("only texts, and images of the user, are supported".into()),
            }
        }
        parts.retain(|part| !matches!(part, Part::Text { text } if text.is_empty()));
        if !parts.is_empty() {
            messages.push(QueryMessage { by_model: role == Role::Assistant, parts });
        }
    }
    if bytes > MCP_SAMPLING_BYTES_MAX {
        return Err(format!("the messages have {bytes} bytes; {} are allowed", MCP_SAMPLING_BYTES_MAX));
    }
    if messages.first().is_none_or(|first| first.by_model) || messages.last().is_none_or(|last| last.by_model) {
        return Err("the first and the last message must be messages of the user".into());
    }
    let max_tokens = params.max_tokens.clamp(1, MCP_SAMPLING_TOKENS_MAX);
    let (server, identity) = (server.into(), identity.into());
    Ok(ModelQuery { server, identity, system: params.system_prompt.unwrap_or_default(), messages, max_tokens })
}

pub(super) fn query_result(reply: ModelReply) -> CreateMessageResult {
    let stop = match reply.stop {
        StopReason::MaxTokens => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        _ => CreateMessageResult::STOP_REASON_END_TURN,
    };
    CreateMessageResult::new(SamplingMessage::assistant_text(reply.text), reply.model).with_stop_reason(stop)
}
