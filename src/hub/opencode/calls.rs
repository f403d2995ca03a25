//! The tool calls and permission requests of OpenCode.

use serde_json::Value;

use crate::content::{Location, PermissionOption, PermissionOptionKind, ToolContent, ToolKind, ToolStatus};
use crate::hub::call::{Call, CallUpdate};
use crate::hub::permission::AgentRequest;

/// Values of an answer to a permission request.
pub(super) const ONCE: &str = "once";
pub(super) const ALWAYS: &str = "always";
pub(super) const REJECT: &str = "reject";

/// The permissions whose actions are not `ask`. OpenCode asks about everything else, and nuncio
/// decides. Questions with answers to choose from are not supported.
const NOT_ASKED: [(&str, &str); 12] = [
    ("glob", "allow"),
    ("grep", "allow"),
    ("list", "allow"),
    ("lsp", "allow"),
    ("plan_enter", "deny"),
    ("plan_exit", "deny"),
    ("question", "deny"),
    ("skill", "allow"),
    ("task", "allow"),
    ("todoread", "allow"),
    ("todowrite", "allow"),
    ("codesearch", "allow"),
];

/// Returns the action for each permission. With hooks, OpenCode asks about each call, so that they
/// run before it.
pub(super) fn permission_actions(has_hooks: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let asked = move |(name, action)| (name, if has_hooks && action == "allow" { "ask" } else { action });
    std::iter::once(("*", "ask")).chain(NOT_ASKED.map(asked))
}

/// Returns whether calls with this permission are allowed unless a hook blocks them.
pub(super) fn is_allowed(permission: &str) -> bool {
    NOT_ASKED.contains(&(permission, "allow"))
}

pub(super) fn permission_request(call: Call) -> AgentRequest {
    let option = |id: &str, name: &str, kind| PermissionOption { option_id: id.into(), name: name.into(), kind };
    let options = vec![
        option(ONCE, "Allow once", PermissionOptionKind::AllowOnce),
        option(ALWAYS, "Allow always", PermissionOptionKind::AllowAlways),
        option(REJECT, "Reject", PermissionOptionKind::RejectOnce),
    ];
    AgentRequest { call, options }
}

/// Converts the fields of a tool call.
pub(super) fn call_update(part: &Value) -> CallUpdate {
    let tool = part["tool"].as_str().unwrap_or("tool");
    let state = &part["state"];
    let input = &state["input"];
    let path = input["filePath"].as_str();
    let status = match state["status"].as_str() {
        Some("pending") => Some(ToolStatus::Pending),
        Some("running") => Some(ToolStatus::InProgress),
        Some("completed") => Some(ToolStatus::Completed),
        Some("error") => Some(ToolStatus::Failed),
        _ => None,
    };
    let output = state["output"].as_str().or(state["error"].as_str());
    let shown = output.or(state["metadata"]["output"].as_str()).filter(|text| !text.is_empty());
    let diff = |old: Option<&str>, new: Option<&str>| {
        let content = ToolContent::Diff { path: path?.into(), old_text: old.map(String::from), new_text: new?.into() };
        Some(vec![content])
    };
    let content = match tool {
        "write" => diff(None, input["content"].as_str()),
        "edit" => diff(input["oldString"].as_str(), input["newString"].as_str()),
        _ => shown.map(|text| vec![ToolContent::text(text)]),
    };
    let title = input["command"].as_str().map(String::from);
    let title = title.or_else(|| path.map(|path| format!("{tool} {path}"))).or_else(|| state["title"].as_str().map(String::from));
    let input = Some(input).filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
    let mut update = CallUpdate::new(title.unwrap_or_else(|| tool.to_owned()), kind(tool), input.cloned());
    update.change.locations = path.map(|path| vec![Location { path: path.into(), line: None }]);
    CallUpdate { status, content, output: output.map(String::from), ..update }
}

/// Returns the kind of a tool, or of the permission with the same name.
pub(super) fn kind(tool: &str) -> ToolKind {
    match tool {
        "bash" => ToolKind::Execute,
        "edit" | "write" | "multiedit" | "patch" | "apply_patch" => ToolKind::Edit,
        "read" => ToolKind::Read,
        "glob" | "grep" | "list" | "codesearch" | "lsp" => ToolKind::Search,
        "webfetch" | "websearch" => ToolKind::Fetch,
        "todowrite" | "todoread" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}
