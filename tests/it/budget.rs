//! The cost of model requests, and the budgets that limit requests, tokens, cost and time.

mod cost;
mod limits;
mod permission_requests;
mod tree;

use harness::Agent;
use serde_json::{Value, json};

/// Steps with a call each.
fn calls(count: usize) -> Value {
    let step = |number: usize| json!({"tool_calls": [{"name": "plan", "input": {"entries": [{"content": number.to_string()}]}}]});
    Value::from((0..count).map(step).collect::<Vec<_>>())
}

fn questions(agent: &Agent) -> Vec<String> {
    let asked = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission");
    asked.map(|frame| frame["params"]["toolCall"]["title"].as_str().unwrap().to_owned()).collect()
}

/// A cost in nano-dollars.
fn in_nanos(cost: &Value) -> i64 {
    (cost.as_f64().unwrap_or_else(|| panic!("no cost: {cost}")) * 1e9).round() as i64
}
