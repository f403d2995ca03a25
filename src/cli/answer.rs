//! `nuncio sessions answer`: lists and answers the permission requests of a session.

use serde::Deserialize;
use serde_json::Value;

use super::output::print;
use crate::api::{AnswerPermission, AnswerPermissionParams, ListPermissions, ListPermissionsParams, PermissionView};
use crate::content::PermissionOptionKind;
use crate::error::{Error, Kind, Result};
use crate::local::LocalClient;
use crate::terminal_text::output_line;

/// Answers the request `id`, or the only open request of the session `id`. Without an option, lists
/// the open requests.
pub(crate) async fn run(client: &LocalClient, id: &str, option: Option<String>) -> Result<()> {
    let mut open = client.call::<ListPermissions>(ListPermissionsParams { session_id: None }).await?.permissions;
    open.retain(|request| request.permission_id.as_str() == id || request.session_id.as_str() == id);
    if let (false, None) = (open.is_empty(), &option) {
        return open.iter().try_for_each(|request| print(described(request)));
    }
    let option = option.unwrap_or_default();
    let [request] = open.as_slice() else { return Err(not_one(id, &open)) };
    let kind = PermissionOptionKind::deserialize(Value::from(option.as_str())).ok();
    let params = AnswerPermissionParams {
        permission_id: request.permission_id.clone(),
        outcome: kind,
        option_id: kind.is_none().then_some(option),
        reason: None,
        hunks: Vec::new(),
        edits: Vec::new(),
    };
    let answered = client.call::<AnswerPermission>(params).await;
    answered.map(drop).map_err(|error| match error.hint {
        None if error.kind == Kind::InvalidParams => error.hint(format!("options: {}", options(request))),
        _ => error,
    })
}

fn not_one(id: &str, open: &[PermissionView]) -> Error {
    if open.is_empty() {
        return Error::not_found(format!("{id} has no open permission request"));
    }
    let ids: Vec<&str> = open.iter().map(|request| request.permission_id.as_str()).collect();
    Error::invalid_params(format!("{id} has {} open permission requests", open.len()))
        .hint(format!("name one: nuncio sessions answer ID OPTION, with ID one of {}", ids.join(", ")))
}

fn described(request: &PermissionView) -> String {
    let title = output_line(&request.tool_call.tool.title);
    format!("{}  {title}  options: {}\n", request.permission_id, options(request))
}

fn options(request: &PermissionView) -> String {
    request.options.iter().map(|option| output_line(&option.option_id)).collect::<Vec<_>>().join(", ")
}
