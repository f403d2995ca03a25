//! Language servers: clangd if installed, and a small test server with optional faults.

use serde_json::{Value, json};

use harness::{Agent, Home, Reply, tool};

mod clangd;
mod confinement;
mod edits;
mod server_choice;
mod server_faults;

/// A home whose settings configure the test server, with these modes, for `*.x`.
fn home(modes: &[&str]) -> Home {
    let home = Home::new();
    home.config(&setting("own", &[&["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/lsp/server.py")], modes].concat()));
    home
}

/// Settings for the language server `[lsp.NAME]` for `*.x`.
fn setting(name: &str, command: &[&str]) -> String {
    format!("[lsp.{name}]\ncommand = {}\nfiles = [\"*.x\"]\n", json!(command))
}

fn write(path: &str, content: &str) -> Value {
    json!({"tool_calls": [{"name": "write", "input": {"file_path": path, "content": content}}]})
}

fn diagnostics(path: &str) -> Value {
    json!({"tool_calls": [{"name": "diagnostics", "input": {"file_path": path}}]})
}

/// Starts a session whose model writes. Its servers are confined; if the system cannot confine
/// them, the directory is trusted and the user allows each write.
async fn writing_session(home: &Home, steps: Value) -> (Agent, String) {
    if !harness::POSIX {
        return home.session(steps, &["--mode", "auto"]).await;
    }
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Pick("allow_once");
    (agent, session)
}

/// Runs the steps, one call each. Returns the text content and the raw output of each call.
async fn outputs(home: &Home, steps: &[Value]) -> Vec<(String, Value)> {
    let (mut agent, session) = writing_session(home, json!(steps)).await;
    let outputs = turn(&mut agent, &session, steps.len()).await;
    agent.finish().await;
    outputs
}

async fn turn(agent: &mut Agent, session: &str, calls: usize) -> Vec<(String, Value)> {
    let (_, updates) = agent.turn(session, "go").await;
    (0..calls).map(|number| said(&tool(&updates, number))).collect()
}

/// The text content of a finished call, and its raw output.
fn said(call: &Value) -> (String, Value) {
    let texts = call["content"].as_array().unwrap().iter().filter_map(|content| content["content"]["text"].as_str());
    (texts.collect(), call["rawOutput"].clone())
}
