//! Subagents: the tool `task`, child sessions, their permissions and their end.

mod background;
mod client_sessions;
mod definitions;
mod depth;
mod parent_end;
mod permissions;
mod problem_report;
mod results;

use serde_json::{Value, json};

pub use crate::harness::bash;
use crate::harness::{Agent, Home};

/// Writes an agent definition of the user whose model follows `steps`. `head` has further lines of
/// the frontmatter.
pub fn define(home: &Home, name: &str, head: &str, steps: Value) {
    let model = home.script(steps);
    let text = format!("---\nname: {name}\ndescription: Does {name}.\nmodel: {model}\n{head}---\nYou are {name}.\n");
    let directory = home.data().join("agents");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(format!("{name}.md")), text).unwrap();
}

/// A call of `task`.
pub fn task(agent: &str, prompt: &str) -> Value {
    json!({"name": "task", "input": {"agent": agent, "prompt": prompt}})
}

/// A step with these calls.
pub fn calls(calls: &[Value]) -> Value {
    json!({ "tool_calls": calls })
}

/// A step with text, which requires `expect` in the request.
pub fn says(expect: &str, text: &str) -> Value {
    json!({"expect": expect, "text": text})
}

/// The bodies of the events of a type.
pub fn bodies<'a>(log: &'a [Value], kind: &str) -> Vec<&'a Value> {
    log.iter().map(|event| &event["body"]).filter(|body| body["type"] == kind).collect()
}

/// The ids of the child sessions of a session, oldest first.
pub async fn children(agent: &mut Agent, session: &str) -> Vec<String> {
    let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
    let children = view["children"].as_array().cloned().unwrap_or_default();
    children.iter().map(|child| child["sessionId"].as_str().unwrap().to_string()).collect()
}
