//! Flags of `nuncio run`: files, formats and schemas of the output, sessions that are deleted.

use serde_json::{Value, json};

use super::check;
use crate::harness::Home;

/// The sessions in the store.
async fn sessions(home: &Home) -> Vec<Value> {
    home.run(&["sessions", "list", "--json"], "").await.lines()
}

#[tokio::test]
async fn title_and_mode_are_set() {
    let home = Home::new();
    let bash = json!({"tool_calls": [{"name": "bash", "input": {"command": "true"}}]});
    let model = home.script(json!([bash, {"text": "so be it"}]));
    check(&home.run(&["run", "--model", &model, "--auto", "--title", " A\n title ", "go"], "").await, 0, &["so be it"]);
    let listed = &sessions(&home).await[0];
    assert_eq!(listed["title"], "A title", "{listed}");
    let cases: &[&[&str]] = &[
        &["run", "--auto", "--mode", "plan", "go"],
        &["--mode", "auto", "run", "--auto", "go"],
        &["run", "--title", " ", "go"],
        &["run", "--title", "x", "--continue", "go"],
    ];
    for arguments in cases {
        check(&home.run(&[*arguments, &["--model", &model]].concat(), "").await, 2, &["--"]);
    }
}
