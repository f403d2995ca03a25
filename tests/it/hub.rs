//! Hosted agents: other agents that work in nuncio's sessions.

use serde_json::{Value, json};

use harness::{Agent, Home, Reply, text};

mod acp;
mod agents_add;
mod answers;
mod claude_code;
mod codex;
mod codex_asks;
mod compare;
mod invalid_messages;
mod login;
mod many_agents;
mod mcp;
mod mcp_http;
mod native;
mod opencode;
mod opencode_lost;
mod opencode_subagents;
mod permissions;
mod processes;
mod project_config;
mod raw_output;
mod session_settings;
mod settings;
mod status;
mod terminal_output;
mod terminals;
mod titles;
mod turn_ends;
mod turn_policies;
mod turn_review;
mod turn_size;
mod untrusted_projects;

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hub/agent.py");

/// The kinds of agents that scripts play, with the scripts. All scripts know these words of a
/// prompt: `say` text, `run` a command after a question, `wait` and `fork` until a cancel, `error`,
/// `crash` and `history`.
const PLAYED: [(&str, &str); 4] =
    [("acp", AGENT), ("claude-code", claude_code::CLAUDE), ("codex", codex::CODEX), ("opencode", opencode::SERVER)];

/// Settings that allow these agents.
fn allowed(names: &[&str]) -> String {
    format!("[agents]\nallowed = {}\n", json!(names))
}

/// Settings for the agent `[agents.NAME]`, played by a script with these flags.
fn played(name: &str, kind: &str, script: &str, flags: &[&str]) -> String {
    let command: Vec<&str> = ["python3", script].into_iter().chain(flags.iter().copied()).collect();
    format!("[agents.{name}]\nkind = \"{kind}\"\ncommand = {}\n", json!(command))
}

/// Settings for the test agent `[agents.NAME]` with these flags.
fn setting(name: &str, flags: &[&str]) -> String {
    allowed(&[name]) + &played(name, "acp", AGENT, flags)
}

/// A home with the test agent `other`, whose work directory is trusted.
async fn home(flags: &[&str]) -> Home {
    let home = Home::new();
    home.config(&setting("other", flags));
    trust(&home).await;
    home
}

/// A home with the agent `other` of this kind, played by a script, whose work directory is trusted.
/// `more` are other settings of the agent.
async fn home_of(kind: &str, script: &str, flags: &[&str], more: &str) -> Home {
    let home = Home::new();
    home.config(&(allowed(&["other"]) + &played("other", kind, script, flags) + more));
    trust(&home).await;
    home
}

async fn trust(home: &Home) {
    let ran = home.run(&["trust"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// Creates a session of the agent `name`.
async fn hosted(agent: &mut Agent, home: &Home, name: &str) -> String {
    let params = json!({"cwd": home.work(), "mcpServers": [], "_meta": {"nuncio": {"agent": name}}});
    agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned()
}

/// Starts nuncio and creates a session of the agent `other`.
async fn session(home: &Home, flags: &[&str]) -> (Agent, String) {
    let mut agent = home.start(flags).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = hosted(&mut agent, home, "other").await;
    (agent, session)
}

/// The bodies of the events of these types in the log of a session.
async fn bodies(home: &Home, session: &str, types: &[&str]) -> Vec<Value> {
    let log = home.log(session).await;
    let bodies = log.into_iter().map(|mut event| event["body"].take());
    bodies.filter(|body| types.contains(&body["type"].as_str().unwrap())).collect()
}

/// Runs a turn whose questions get these replies. Returns its text and its updates.
async fn turn(agent: &mut Agent, session: &str, prompt: &str, replies: &[Reply]) -> (String, Vec<Value>) {
    agent.replies = replies.iter().cloned().collect();
    agent.otherwise = Reply::Error;
    let (_, updates) = agent.turn(session, prompt).await;
    (text(&updates, "agent_message_chunk"), updates)
}
