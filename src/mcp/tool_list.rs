//! The tools of a server that a model can call. A malformed tool is omitted; the server is still
//! used.

use rmcp::model::{ListToolsResult, MetaObject, Tool};
use serde_json::{Map, Value, json};

use crate::content::{listed, shortened};
use crate::limits;

/// Key of the list of omitted tools in the `_meta` of a result of `tools/list`.
const OMITTED: &str = "nuncio/omitted";

/// Removes the tools that cannot be called from a result of `tools/list`, and adds the reasons to
/// its `_meta`. Other results are unchanged.
pub(super) fn omit_unusable(result: &mut Value) {
    let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) else { return };
    let mut omitted = Vec::new();
    tools.retain_mut(|tool| match fault(tool) {
        None => true,
        Some(why) => {
            let name = tool["name"].as_str().unwrap_or("a tool without a name").to_owned();
            omitted.push(format!("{}: {why}", shortened(name, limits::MCP_FIELD_BYTES_MAX)));
            false
        }
    });
    if !omitted.is_empty() {
        // Replace a `_meta` that is not an object: it would make the result malformed.
        if !result["_meta"].is_object() {
            result["_meta"] = Value::Object(Map::new());
        }
        result["_meta"][OMITTED] = json!(omitted);
    }
}

/// Returns the reason why a tool cannot be called, if any.
fn fault(tool: &Value) -> Option<String> {
    if !tool["name"].is_string() {
        return Some("name: expected a string".into());
    }
    if !tool["inputSchema"].is_object() {
        return Some("inputSchema: expected an object".into());
    }
    if tool["execution"]["taskSupport"] == "required" {
        return Some("it runs only as a task (taskSupport), which nuncio does not support".into());
    }
    serde_json::from_value::<Tool>(tool.clone()).err().map(|error| error.to_string())
}

/// Returns the reasons why tools were omitted from a result.
pub(super) fn omitted_tools(result: &ListToolsResult) -> Vec<String> {
    let texts = result.meta.as_ref().and_then(|meta: &MetaObject| meta.get(OMITTED)).and_then(Value::as_array);
    texts.into_iter().flatten().filter_map(Value::as_str).map(String::from).collect()
}

/// Describes the omitted tools in one line.
pub(crate) fn describe_omitted(omitted: &[String]) -> String {
    let texts: Vec<&str> = omitted.iter().map(String::as_str).collect();
    format!("not offered: {}", listed(&texts, limits::MCP_NAMES_SHOWN))
}
