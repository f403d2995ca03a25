//! Language servers: a real one where it is installed, and a small one of our own that also misbehaves.

use serde_json::{Value, json};

use crate::harness::{Agent, Home, tool};

mod broken;
mod choice;
mod clangd;
mod edits;
mod frames;

/// A home whose settings name our own server, with these modes, for `*.x`.
fn home(modes: &[&str]) -> Home {
    let home = Home::new();
    home.config(&setting("own", &[&["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/lsp/server.py")], modes].concat()));
    home
}

/// `[lsp.NAME]` for `*.x`.
fn setting(name: &str, command: &[&str]) -> String {
    format!("[lsp.{name}]\ncommand = {}\nfiles = [\"*.x\"]\n", json!(command))
}

fn write(path: &str, content: &str) -> Value {
    json!({"tool_calls": [{"name": "write", "input": {"file_path": path, "content": content}}]})
}

fn diagnostics(path: &str) -> Value {
    json!({"tool_calls": [{"name": "diagnostics", "input": {"file_path": path}}]})
}

/// Runs the steps, a call each, in mode auto; gives what each call told the model beyond its own first part, and its details.
async fn outputs(home: &Home, steps: &[Value]) -> Vec<(String, Value)> {
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    let outputs = turn(&mut agent, &session, steps.len()).await;
    agent.finish().await;
    outputs
}

async fn turn(agent: &mut Agent, session: &str, calls: usize) -> Vec<(String, Value)> {
    let (_, updates) = agent.turn(session, "go").await;
    (0..calls).map(|number| said(&tool(&updates, number))).collect()
}

/// What a finished call showed in texts, and its details.
fn said(call: &Value) -> (String, Value) {
    let texts = call["content"].as_array().unwrap().iter().filter_map(|content| content["content"]["text"].as_str());
    (texts.collect(), call["rawOutput"].clone())
}
