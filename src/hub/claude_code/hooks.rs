//! The hook requests of Claude Code: before each call, also one that needs no permission, it asks
//! nuncio and waits for the answer.

use serde_json::{Value, json};

/// The subtype of the requests.
pub(super) const REQUEST: &str = "hook_callback";

/// The id with which nuncio registers.
const BEFORE: &str = "before";

/// Seconds after which Claude Code refuses a call whose request has no answer. nuncio's hooks have
/// shorter limits.
const TIMEOUT_S: u64 = 3600;

/// Returns the field `hooks` of the request `initialize`.
pub(super) fn registration() -> Value {
    json!({ "PreToolUse": [{ "hookCallbackIds": [BEFORE], "timeout": TIMEOUT_S }] })
}

/// Converts a hook request to the form of a permission request.
pub(super) fn permission_request(request: &mut Value) -> Value {
    let id = request["tool_use_id"].take();
    let input = &mut request["input"];
    json!({
        "subtype": "can_use_tool",
        "tool_name": input["tool_name"].take(),
        "input": input["tool_input"].take(),
        "tool_use_id": if id.is_null() { input["tool_use_id"].take() } else { id },
    })
}

/// Creates the response. Without a decision, Claude Code goes on as it would without hooks. An
/// error as the response would let the call run.
pub(super) fn response(allows: bool) -> Value {
    match allows {
        true => json!({}),
        false => json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "A hook of the user denied this call.",
        } }),
    }
}
