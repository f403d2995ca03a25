//! Judges requests for the mocks in Python. Reads a request per line, as an object with `path` and
//! `body`, and `provider` if the path does not tell it. Answers each with `{"refusals": […]}`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::Write;

use harness::rules::{JudgedRequest, Platform, Refusal, recognize, refusals, without_surrogates};
use serde_json::{Value, json};

fn main() {
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let request: Value = serde_json::from_str(&without_surrogates(&line)).unwrap();
        let found: Vec<Value> = judge(&request, &line).iter().map(refusal).collect();
        println!("{}", json!({ "refusals": found }));
        std::io::stdout().flush().unwrap();
    }
}

/// Judges a request. The line contains the body with its escapes.
fn judge(request: &Value, line: &str) -> Vec<Refusal> {
    let (path, body) = (request["path"].as_str().unwrap_or_default(), &request["body"]);
    let Some((protocol, platform, model)) = recognize(path, body) else { return Vec::new() };
    let platform = request["provider"].as_str().and_then(Platform::from_name).unwrap_or(platform);
    refusals(&JudgedRequest { protocol, platform, model: &model, path, body, text: line })
}

fn refusal(refusal: &Refusal) -> Value {
    let Refusal { rule, place, message, status, .. } = refusal;
    json!({ "rule": rule, "place": place, "message": message, "status": status })
}
