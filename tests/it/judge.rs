//! Judges requests for the mocks in Python. Reads a request per line, as an object with `path` and
//! `body`, and `provider` if the path does not tell it. Answers each with `{"refusals": […]}`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::Write;

use harness::rules::{Refusal, judge_line};
use serde_json::{Value, json};

fn main() {
    for line in std::io::stdin().lines() {
        let found: Vec<Value> = judge_line(&line.unwrap()).unwrap().iter().map(refusal).collect();
        println!("{}", json!({ "refusals": found }));
        std::io::stdout().flush().unwrap();
    }
}

fn refusal(refusal: &Refusal) -> Value {
    let Refusal { rule, place, message, status, .. } = refusal;
    json!({ "rule": rule, "place": place, "message": message, "status": status })
}
