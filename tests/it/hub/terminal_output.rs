//! Command output of a hosted agent in terminals of clients. The agent reports the whole output each
//! time; clients receive what is new.

use serde_json::{Value, json};

use super::{home, hosted};
use harness::tool;

/// Outputs of a command that the agent reports one after the other, and the part of the second one
/// that the client receives.
const CASES: [(&str, &str, &str); 8] = [
    ("", "one\n", "one\n"),
    ("one\n", "one\n", ""),
    ("one\n", "one\ntwo\n", "two\n"),
    ("é", "éé", "é"),
    // The beginning was omitted in the meantime.
    ("one\ntwo\n", "[…]\ntwo\nthree\n", "three\n"),
    ("[…]\ntwo\nthree\n", "[…]\nthree\nfour\n", "four\n"),
    // The final output also contains the omitted part.
    ("[…]\ntwo\n", "one\ntwo\nthree\n", "three\n"),
    // Too much output to know what was between.
    ("[…]\none\n", "[…]\nnine\n", "[…]\nnine\n"),
];

#[tokio::test]
async fn only_new_output_is_appended() {
    let home = home(&[]).await;
    let mut agent = home.start(&[]).await;
    let capabilities = json!({"_meta": {"terminal_output": true}});
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = hosted(&mut agent, &home, "other").await;
    let outputs = CASES.map(|(shown, text, _)| [shown, text]);
    let (_, updates) = agent.turn(&session, &format!("outputs {}", json!(outputs))).await;
    agent.finish().await;
    for (index, (shown, text, expected)) in CASES.into_iter().enumerate() {
        let id = &tool(&updates, index)["toolCallId"];
        let updates = updates.iter().filter(|update| update["toolCallId"] == *id);
        let received: Vec<&Value> =
            updates.map(|update| &update["_meta"]["terminal_output"]["data"]).filter(|data| !data.is_null()).collect();
        let known: Vec<&str> = [shown, expected].into_iter().filter(|output| !output.is_empty()).collect();
        assert_eq!(received, known, "{shown:?}, then {text:?}");
    }
}
