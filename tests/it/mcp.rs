//! MCP servers: a small test server with optional faults.

use std::path::Path;

use serde_json::{Value, json};

use harness::{Agent, Home, Watch, WatchFlags, tool};

mod calls;
mod client_servers;
mod command;
mod faults;
mod form_fields;
mod lists;
mod messages;
mod modern_protocol;
mod oauth;
mod oauth_challenge;
mod prompts;
mod readable;
mod remembered_permissions;
mod requests;
mod steering;
mod terminal;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/mcp/server.py");

/// Settings for the test server `[mcp.NAME]` with these modes.
fn setting(name: &str, modes: &[&str]) -> String {
    let command: Vec<&str> = ["python3", SERVER].into_iter().chain(modes.iter().copied()).collect();
    format!("[mcp.{name}]\ncommand = {}\n", json!(command))
}

/// A home whose settings have the test server `docs` with these modes.
pub fn home(modes: &[&str]) -> Home {
    let home = Home::new();
    home.config(&setting("docs", modes));
    home
}

/// Waits until the log of a server, an existing file, has `count` lines that start with `line`.
async fn logged(log: &Path, line: &str, count: usize) {
    let watch = Watch::new(log, WatchFlags::MODIFY);
    let reached = || std::fs::read_to_string(log).unwrap().lines().filter(|one| one.starts_with(line)).count() >= count;
    while !reached() {
        watch.next().await;
    }
}

/// Starts an agent whose client shows notices, and creates a session, in mode auto.
async fn session(home: &Home, steps: Value) -> (Agent, String) {
    let model = home.script(steps);
    let mut agent = home.start(&["--model", &model, "--mode", "auto"]).await;
    let capabilities = json!({"session": {"notices": {}}});
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(home).await;
    (agent, session)
}

/// Runs the steps, one call each, in mode auto. Returns the finished calls.
async fn calls(home: &Home, steps: &[Value]) -> Vec<Value> {
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    let finished = turn(&mut agent, &session, steps.len()).await;
    agent.finish().await;
    finished
}

/// Runs a turn. Returns its first `calls` tool calls.
async fn turn(agent: &mut Agent, session: &str, calls: usize) -> Vec<Value> {
    let (_, updates) = agent.turn(session, "go").await;
    (0..calls).map(|number| tool(&updates, number)).collect()
}

/// The text content of a call.
fn text(call: &Value) -> String {
    let content = call["content"].as_array().unwrap_or_else(|| panic!("no content: {call}"));
    content.iter().filter_map(|content| content["content"]["text"].as_str()).collect()
}
