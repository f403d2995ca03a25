//! `nuncio sessions answer`: lists and answers the permission requests of a session.

use serde::Deserialize;
use serde_json::Value;

use super::output::print;
use crate::api::{AnswerPermission, AnswerPermissionParams, ListPermissions, ListPermissionsParams, PermissionView};
use crate::client::SessionClient;
use crate::content::PermissionOptionKind;
use crate::error::{Error, Kind, Result};
use crate::terminal_text::output_line;

/// Answers the request `id`, or the only open request of the session `id`. Without an option, lists
/// the open requests.
pub(crate) async fn run(client: &SessionClient, id: &str, option: Option<String>) -> Result<()> {
    let open = selected(client.call::<ListPermissions>(ListPermissionsParams { session_id: None }).await?.permissions, id);
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
    let chosen =
        request.options.iter().find(|option| Some(option.kind) == kind || Some(&option.option_id) == params.option_id.as_ref());
    let name = chosen.map_or_else(String::new, |option| format!("{}: ", output_line(&option.name)));
    client.call::<AnswerPermission>(params).await.map_err(|error| match error.hint {
        None if error.kind == Kind::InvalidParams => error.hint(format!("options: {}", options(request))),
        _ => error,
    })?;
    print(format!("answered {}  {name}{}\n", request.permission_id, output_line(&request.tool_call.tool.title)))
}

/// Returns the requests whose id, or the id of whose session, is `id`. If there are none, `id` is
/// the start of an id, with or without its prefix.
fn selected(open: Vec<PermissionView>, id: &str) -> Vec<PermissionView> {
    let ids = |request: &PermissionView| [request.permission_id.to_string(), request.session_id.to_string()];
    let starts = |known: &String| known.starts_with(id) || known.split_once('_').is_some_and(|(_, bare)| bare.starts_with(id));
    let exact = open.iter().any(|request| ids(request).iter().any(|known| known == id));
    let fits = |request: &PermissionView| ids(request).iter().any(|known| if exact { known == id } else { starts(known) });
    open.into_iter().filter(|request| fits(request)).collect()
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
