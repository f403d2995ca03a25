//! Definitions of subagents, and their sessions.

use serde_json::{Value, json};

use super::{Agent, Home};

/// Writes an agent definition of the user whose model follows `steps`. `head` has further lines of
/// the frontmatter.
pub fn define(home: &Home, name: &str, head: &str, steps: Value) {
    let model = home.script(steps);
    let text = format!("---\nname: {name}\ndescription: Does {name}.\nmodel: {model}\n{head}---\nYou are {name}.\n");
    let directory = home.data().join("agents");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(format!("{name}.md")), text).unwrap();
}

/// The ids of the child sessions of a session, oldest first.
pub async fn children(agent: &mut Agent, session: &str) -> Vec<String> {
    let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
    let children = view["children"].as_array().cloned().unwrap_or_default();
    children.iter().map(|child| child["sessionId"].as_str().unwrap().to_string()).collect()
}
