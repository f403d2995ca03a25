//! What the files of a project can start, before and after `nuncio trust`.

mod caches;
mod changed_files;
mod grants;
mod guards;
mod own_programs;
mod programs;
mod report;

use serde_json::{Value, json};

use harness::{CommandResult, Home};

const CONFIG: &str = ".nuncio/config.toml";

/// A hook of a project that runs this script with `sh`.
fn hook(event: &str, script: &str, more: &str) -> String {
    format!("[[hooks]]\nevent = \"{event}\"\ncommand = [\"sh\", \"{script}\"]\n{more}\n")
}

/// Trusts the work directory.
async fn trust(home: &Home) {
    let ran = home.run(&["trust", "."], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// Runs a prompt with a scripted model whose calls are `calls`, in this mode. Each call is the name
/// of a tool with its input.
async fn run(home: &Home, mode: &str, calls: &[(&str, Value)]) -> CommandResult {
    let mut steps: Vec<Value> = calls.iter().map(|(name, input)| json!({"tool_calls": [{"name": name, "input": input}]})).collect();
    steps.push(json!({"text": "the end"}));
    let model = home.script(json!(steps));
    home.run(&["run", "--json", "--mode", mode, "--model", &model, "go"], "").await
}

/// The results of the tool calls for the model, in order.
fn results(ran: &CommandResult) -> Vec<String> {
    let completed = ran.lines().into_iter().filter(|event| event["body"]["type"] == "tool.completed");
    completed.map(|event| event["body"]["output"].to_string()).collect()
}

/// The texts of all notices.
fn notices(ran: &CommandResult) -> String {
    let notices = ran.lines().into_iter().filter(|event| event["body"]["type"] == "notice");
    notices.map(|event| event["body"].to_string() + "\n").collect()
}
