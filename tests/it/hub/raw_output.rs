//! The results of a hosted agent's tools as text.

use serde_json::{Value, json};

use super::{home, session};
use harness::tool;

/// Returns the text of finished calls with these fields, as a client shows them.
async fn shown(calls: &[Value]) -> Vec<String> {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, &format!("calls {}", json!(calls))).await;
    agent.finish().await;
    let content = (0..calls.len()).map(|index| tool(&updates, index)["content"].take());
    content.map(|content| content[0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{content}")).to_owned()).collect()
}

#[tokio::test]
async fn result_is_its_text_or_its_fields() {
    let cases = [
        (json!("plain"), "plain"),
        (json!({"stdout": "out\n", "stderr": "err\n", "exitCode": 1}), "out\nerr\n"),
        (json!({"output": "done", "metadata": {"n": 1}}), "done"),
        (json!({"content": [{"type": "text", "text": "one"}, {"type": "image", "data": "x"}]}), "one\n[image]"),
        (json!({"result": {"content": [{"type": "text", "text": "nested"}]}}), "nested"),
        (json!({"error": {"message": "no such file"}}), "no such file"),
        (json!({"name": "a", "size": 3, "tags": ["x", "y"]}), "name: a\nsize: 3\ntags:\n  - x\n  - y\n"),
        (json!({"note": "one\ntwo\n"}), "note:\none\ntwo\n"),
        (json!([{"id": 1}, {"id": 2}]), "-\n  id: 1\n-\n  id: 2\n"),
    ];
    let calls: Vec<Value> = cases.iter().map(|(output, _)| json!({"rawOutput": output})).collect();
    for ((output, expected), shown) in cases.iter().zip(shown(&calls).await) {
        assert_eq!(shown, *expected, "{output}");
    }
}

#[tokio::test]
async fn text_that_is_not_json_is_not_decoded() {
    let cases = [("{ not json", "{ not json"), ("12", "12"), (r#"{"output": "x"}"#, "x")];
    let content = |text: &str| json!({"content": [{"type": "content", "content": {"type": "text", "text": text}}]});
    let calls: Vec<Value> = cases.iter().map(|(text, _)| content(text)).collect();
    for ((text, expected), shown) in cases.iter().zip(shown(&calls).await) {
        assert_eq!(shown, *expected, "{text}");
    }
}
